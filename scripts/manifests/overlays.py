"""What an overlay comes to."""

import os
import subprocess

import yaml


def names(root):
    return sorted(folder.name for folder in (root / "k8s" / "overlays").iterdir() if folder.is_dir())


def render(root, overlay):
    """The resources, and what kustomize complains about. A warning is a complaint: it announces what stops working."""
    folder = root / "k8s" / "overlays" / overlay
    built = subprocess.run([os.environ["KUBECTL"], "kustomize", str(folder)], capture_output=True, text=True)
    complaints = [line for line in built.stderr.splitlines() if line.strip()]
    if built.returncode:
        raise SystemExit(f"k8s/overlays/{overlay} cannot be rendered:\n{built.stderr}")
    return [resource for resource in yaml.safe_load_all(built.stdout) if resource], complaints


def label(resource):
    """How messages name a resource."""
    return f"{resource['kind']} {resource['metadata']['name']}"


def of_kind(resources, kind):
    return [resource for resource in resources if resource["kind"] == kind]


def named(resources, kind, name):
    return next((one for one in of_kind(resources, kind) if one["metadata"]["name"] == name), None)
