"""Numbers that depend on each other: connections that instances may open, and the time that a pod is given to stop."""

import re

import tomllib
from overlays import label, named, of_kind

# For the operator of the servers, for people, and for superusers.
RESERVED = 15
# How long an instance's background tasks may take after everything else: the last part of a stop.
LAST_TASKS = 5


def check(resources):
    deployment = named(resources, "Deployment", "tenantry")
    settings = settings_of(resources)
    return connections(resources, deployment, settings) + stopping(deployment, settings)


def settings_of(resources):
    pod_config = next(one for one in of_kind(resources, "ConfigMap") if "tenantry.toml" in one["data"])
    return tomllib.loads(pod_config["data"]["tenantry.toml"])


def connections(resources, deployment, settings):
    scaler = named(resources, "HorizontalPodAutoscaler", deployment["metadata"]["name"])
    most = scaler["spec"]["maxReplicas"] if scaler else deployment["spec"]["replicas"]
    most += deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    # One more connection to the catalog while a pod migrates or starts.
    needs = {"tenantry-catalog": most * (settings["catalog"]["max_connections"] + 1)}
    for cluster in settings["clusters"]:
        needs[f"tenantry-{cluster['name']}"] = most * cluster["max_connections"]
    problems = []
    for name, needed in needs.items():
        server = named(resources, "Cluster", name)
        if not server:
            problems.append(f"the configuration has a cluster that nothing makes: {name}")
            continue
        allowed = int(server["spec"]["postgresql"]["parameters"]["max_connections"])
        if needed + RESERVED > allowed:
            problems.append(
                f"{label(server)}: {most} instances may open {needed} connections, {RESERVED} are for others, "
                f"and max_connections is {allowed}"
            )
    return problems


def stopping(deployment, settings):
    needed = seconds(settings["http"]["shutdown_delay"]) + seconds(settings["http"]["shutdown_grace"]) + LAST_TASKS
    given = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    if needed < given:
        return []
    return [f"{label(deployment)}: a stop may take {needed} s, and terminationGracePeriodSeconds is {given}"]


def seconds(period):
    number, unit = re.fullmatch(r"(\d+)(s|m)", period).groups()
    return int(number) * {"s": 1, "m": 60}[unit]
