"""The PrometheusRule is monitoring/alerts.yaml, and nothing else."""

import yaml
from overlays import named

HEADER = """\
# The rules of monitoring/alerts.yaml, word for word. Change them there, then run `scripts/check-manifests --write-alerts`;
# `make manifests` fails when the two differ.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: tenantry
spec:
"""


def check(root, resources):
    rule = named(resources, "PrometheusRule", "tenantry")
    if rule and rule["spec"] == yaml.safe_load(source(root)):
        return []
    return ["the PrometheusRule differs from monitoring/alerts.yaml: run `scripts/check-manifests --write-alerts`"]


def write(root):
    lines = source(root).splitlines(keepends=True)
    indented = "".join(f"  {line}" if line.strip() else line for line in lines)
    (root / "k8s" / "base" / "alerts.yaml").write_text(HEADER + indented)


def source(root):
    return (root / "monitoring" / "alerts.yaml").read_text()
