"""Each field of each resource is one that Kubernetes, or the operator whose resource it is, knows."""

from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml
from kubernetes_validate.utils import schema_contents
from overlays import label

# The oldest version that the manifests are for, and the newest that there is a schema of.
VERSIONS = ["1.31", kubernetes_validate.latest_version()]
CUSTOM = yaml.safe_load((Path(__file__).parent / "custom-resources.yaml").read_text())
# Kubernetes' own types, which custom resources have among their fields.
CORE = schema_contents(f"kubernetes-json-schema/v{VERSIONS[-1]}-local-strict/_definitions.json", VERSIONS[-1])["$defs"]
BUILT_IN_GROUPS = ("", "apps", "autoscaling", "batch", "policy")


def check(resources):
    return [problem for resource in resources for problem in wrong_with(resource)]


def wrong_with(resource):
    kind = f"{resource['apiVersion']} {resource['kind']}"
    if kind in CUSTOM["kinds"]:
        return wrong_with_custom(resource, kind)
    group = resource["apiVersion"].rpartition("/")[0]
    # The schemas are found by the first word of a group, so a wrong rest of it would not be noticed.
    if group not in BUILT_IN_GROUPS and not group.endswith(".k8s.io"):
        return [f"{label(resource)}: {kind} is neither Kubernetes' own nor in custom-resources.yaml"]
    problems = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(resource, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            where = ".".join(str(step) for step in error.path)
            problems.append(f"{label(resource)}: {where or 'top level'}: {error.message} (Kubernetes {version})")
        except kubernetes_validate.SchemaNotFoundError:
            problems.append(f"{label(resource)}: Kubernetes {version} has no {kind}")
    return problems


def wrong_with_custom(resource, kind):
    schema = {
        "type": "object",
        "required": ["metadata", "spec"],
        "properties": {
            "apiVersion": {},
            "kind": {},
            "metadata": {"$ref": "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
            "spec": closed(CUSTOM["kinds"][kind]),
        },
        "additionalProperties": False,
        "$defs": CORE | closed(CUSTOM["$defs"]),
    }
    return [
        f"{label(resource)}: {'.'.join(str(step) for step in error.path) or 'top level'}: {error.message}"
        for error in jsonschema.Draft202012Validator(schema).iter_errors(resource)
    ]


def closed(value):
    """The same, but a field that is not listed is wrong."""
    if isinstance(value, list):
        return [closed(one) for one in value]
    if not isinstance(value, dict):
        return value
    result = {key: closed(one) for key, one in value.items()}
    if value.get("type") == "object":
        result.setdefault("additionalProperties", False)
    return result
