"""`tenantry config check` accepts the configuration files, with secrets that are made up."""

import subprocess
import tempfile
from pathlib import Path

import yaml
from overlays import of_kind

# Files that the operator's Secrets become, as k8s/README.md describes them.
SECRETS = "/run/secrets/tenantry"
MADE_UP = {
    "catalog-url": "postgres://tenantry:made-up@tenantry-catalog-rw:5432/tenantry?sslmode=verify-full",
    "broker-url": "amqp://made-up:made-up@tenantry-broker:5672/%2f",
    "master-key": "ZXhhbXBsZS1vbmx5LW5vdC1hLXJlYWwta2V5LTAwMDA=",
    "earlier-master-keys": "",
    "operator-token": "made-up",
    "main-primary-url": "postgres://made-up:made-up@tenantry-main-node-1:5432/postgres?sslmode=verify-full",
    "main-replica-urls": "\n".join(
        f"postgres://made-up:made-up@tenantry-main-node-{number}:5432/postgres?sslmode=verify-full" for number in (2, 3)
    ),
}


def check_overlay(resources, program):
    problems = []
    for config_map in of_kind(resources, "ConfigMap"):
        for name, text in config_map["data"].items():
            if name.endswith(".toml"):
                problems += refused(program, text)
    return problems


def check_compose(root, program):
    text = (root / "deploy" / "compose" / "tenantry.toml").read_text()
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    return refused(program, text, services["tenantry-1"]["environment"])


def refused(program, text, environment=None):
    with tempfile.TemporaryDirectory() as folder:
        for name, value in MADE_UP.items():
            (Path(folder) / name).write_text(value)
        file = Path(folder) / "tenantry.toml"
        file.write_text(text.replace(SECRETS, folder))
        command = [str(program), "config", "check", "--config", str(file)]
        checked = subprocess.run(command, env=environment or {}, capture_output=True, text=True)
    return [checked.stderr.strip().replace(folder, SECRETS)] if checked.returncode else []
