"""What a resource names exists: pods for selectors, ports, ConfigMaps, accounts, and Secrets in the tree or in k8s/README.md."""

import re

from overlays import label, named, of_kind


def check(root, resources):
    pods = all_pods(resources)
    documented = secrets_in_readme(root)
    problems = []
    for resource in resources:
        problems += unmatched_selectors(resource, pods)
        problems += missing_names(resource, resources, documented)
        problems += ports_of_service(resource, resources)
    for monitor in of_kind(resources, "ServiceMonitor"):
        problems += ports_of_monitor(monitor, resources)
    for scaler in of_kind(resources, "HorizontalPodAutoscaler"):
        target = scaler["spec"]["scaleTargetRef"]
        if not named(resources, target["kind"], target["name"]):
            problems.append(f"{label(scaler)}: there is no {target['kind']} {target['name']}")
    return problems


def all_pods(resources):
    """The labels of every pod that there will be. Those of custom resources are what their operators give."""
    pods = [one["spec"]["template"]["metadata"]["labels"] for one in of_kind(resources, "Deployment")]
    for cluster in of_kind(resources, "Cluster"):
        name = cluster["metadata"]["name"]
        pods += [
            {"cnpg.io/cluster": name, "cnpg.io/instanceName": f"{name}-{number}"}
            for number in range(1, cluster["spec"]["instances"] + 1)
        ]
    for broker in of_kind(resources, "RabbitmqCluster"):
        pods.append({"app.kubernetes.io/name": broker["metadata"]["name"], "app.kubernetes.io/component": "rabbitmq"})
    return pods


def unmatched_selectors(resource, pods):
    if resource["kind"] == "ServiceMonitor":
        return []
    return [
        f"{label(resource)}: {where} matches no pod: {selector}"
        for where, selector in selectors(resource)
        if not any(matches(selector, pod) for pod in pods)
    ]


def selectors(resource):
    """The selectors of pods of this namespace, with where they stand."""
    spec = resource.get("spec") or {}
    if resource["kind"] == "Service":
        yield "selector", {"matchLabels": spec.get("selector", {})}
        return
    yield from walk(spec, "spec")


def walk(value, path):
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from walk(one, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, one in value.items():
            # Pods of another namespace are not known here.
            elsewhere = key == "podSelector" and "namespaceSelector" in value
            if key in ("selector", "labelSelector", "podSelector") and isinstance(one, dict) and not elsewhere:
                yield f"{path}.{key}", one
            else:
                yield from walk(one, f"{path}.{key}")


def matches(selector, pod):
    labels = selector.get("matchLabels") or {}
    if any(pod.get(key) != value for key, value in labels.items()):
        return False
    for one in selector.get("matchExpressions") or []:
        has, values = pod.get(one["key"]), one.get("values", [])
        fits = {
            "In": has in values,
            "NotIn": has not in values,
            "Exists": has is not None,
            "DoesNotExist": has is None,
        }
        if not fits[one["operator"]]:
            return False
    return True


def missing_names(resource, resources, documented):
    problems = []
    for kind, name, optional in named_in(resource):
        there = named(resources, kind, name) or (kind == "Secret" and name in documented)
        if not there and not optional:
            hint = ", nor a row for it in k8s/README.md" if kind == "Secret" else ""
            problems.append(f"{label(resource)}: there is no {kind} {name}{hint}")
    return problems


def named_in(resource):
    """Every ConfigMap, Secret and ServiceAccount that a resource names."""
    if resource["kind"] == "Cluster":
        secret = resource["spec"].get("bootstrap", {}).get("initdb", {}).get("secret")
        if secret:
            yield "Secret", secret["name"], False
    if resource["kind"] != "Deployment":
        return
    pod = resource["spec"]["template"]["spec"]
    yield "ServiceAccount", pod.get("serviceAccountName", "default"), False
    for volume in pod.get("volumes", []):
        yield from named_in_volume(volume)
        for source in volume.get("projected", {}).get("sources", []):
            yield from named_in_volume(source)
    for container in pod.get("initContainers", []) + pod["containers"]:
        for source in container.get("envFrom", []) + [one.get("valueFrom", {}) for one in container.get("env", [])]:
            for key, kind in ENVIRONMENT.items():
                if key in source:
                    yield kind, source[key]["name"], source[key].get("optional", False)


ENVIRONMENT = {
    "configMapRef": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
    "secretRef": "Secret",
    "secretKeyRef": "Secret",
}


def named_in_volume(volume):
    if "configMap" in volume:
        yield "ConfigMap", volume["configMap"]["name"], volume["configMap"].get("optional", False)
    if "secret" in volume:
        secret = volume["secret"]
        yield "Secret", secret.get("secretName") or secret["name"], secret.get("optional", False)


def secrets_in_readme(root):
    """The names in the first column of the tables of k8s/README.md."""
    rows = (root / "k8s" / "README.md").read_text().splitlines()
    return {found[1] for row in rows if (found := re.match(r"\|\s*`([a-z0-9-]+)`\s*\|", row))}


def ports_of_service(resource, resources):
    """A port that a Service names is a port of each container-bearing pod that it selects."""
    if resource["kind"] != "Service":
        return []
    problems = []
    for deployment in of_kind(resources, "Deployment"):
        template = deployment["spec"]["template"]
        if not matches({"matchLabels": resource["spec"]["selector"]}, template["metadata"]["labels"]):
            continue
        ports = {one["name"] for container in template["spec"]["containers"] for one in container.get("ports", [])}
        for port in resource["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            if isinstance(target, str) and target not in ports:
                problems.append(f"{label(resource)}: {label(deployment)} has no port {target}")
    return problems


def ports_of_monitor(monitor, resources):
    services = [
        one for one in of_kind(resources, "Service") if matches(monitor["spec"]["selector"], one["metadata"].get("labels", {}))
    ]
    if not services:
        return [f"{label(monitor)}: selector matches no Service"]
    ports = {port.get("name") for service in services for port in service["spec"]["ports"]}
    return [
        f"{label(monitor)}: no Service that it selects has a port {one['port']}"
        for one in monitor["spec"]["endpoints"]
        if one["port"] not in ports
    ]
