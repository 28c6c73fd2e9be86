"""docker-compose.yml and the Dockerfile: pinned images, health checks, an order of starting, three instances, secrets that are
examples, and every crate in the build."""

import re
import tomllib

import yaml

RESERVED = 15


def check(root):
    file = yaml.safe_load((root / "docker-compose.yml").read_text())
    settings = tomllib.loads((root / "deploy" / "compose" / "tenantry.toml").read_text())
    services = file["services"]
    problems = [problem for name, service in services.items() for problem in wrong_with(root, name, service, services)]
    problems += instances(services)
    problems += connections(services, settings)
    problems += secrets(root, services)
    problems += dockerfile(root)
    return problems, len(services)


def wrong_with(root, name, service, services):
    problems = []
    image = service.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    # What is built here has no version of its own.
    exact = re.match(r"v?\d+\.\d+", tag) or image == "tenantry:local"
    if not exact:
        problems.append(f"{name}: image {image!r} has no exact version")
    if not service.get("healthcheck", {}).get("test"):
        problems.append(f"{name}: no health check")
    for other, how in service.get("depends_on", {}).items():
        if other not in services:
            problems.append(f"{name}: depends on {other}, which is not there")
        elif how.get("condition") != "service_healthy":
            problems.append(f"{name}: starts before {other} is healthy")
    for port in service.get("ports", []):
        if not port.startswith("127.0.0.1:"):
            problems.append(f"{name}: port {port} is open to other machines, and the secrets are examples")
    for volume in service.get("volumes", []):
        source = volume.partition(":")[0]
        if source.startswith("./") and not (root / source).is_file():
            problems.append(f"{name}: {source} is not there")
    return problems


def instances(services):
    found = {name: one for name, one in services.items() if one.get("image") == "tenantry:local"}
    building = [name for name, one in found.items() if "build" in one]
    problems = []
    if len(found) != 3:
        problems.append(f"{len(found)} instances of tenantry instead of 3")
    if len(building) != 1:
        problems.append(f"{len(building)} services build the image instead of one")
    problems += [
        f"{name}: does not wait for {building[0]}, which builds its image"
        for name, one in found.items()
        if name not in building and not set(building) & set(one.get("depends_on", {}))
    ]
    return problems


def connections(services, settings):
    [allowed] = [
        int(argument.partition("=")[2])
        for argument in services["postgres-primary"]["command"]
        if argument.startswith("-cmax_connections=")
    ]
    needed = 3 * (settings["clusters"][0]["max_connections"] + settings["catalog"]["max_connections"])
    if needed + RESERVED <= allowed:
        return []
    return [f"three instances may open {needed} connections, {RESERVED} are for others, and max_connections is {allowed}"]


def secrets(root, services):
    """Everything that looks like a secret says that it is an example."""
    values = [
        (f"{name}: {key}", value)
        for name, service in services.items()
        for key, value in service.get("environment", {}).items()
        if re.search("PASS|SECRET|TOKEN", key)
    ]
    text = (root / "deploy" / "compose" / "tenantry.toml").read_text()
    values += [("tenantry.toml", value) for value in re.findall(r"://\w+:([^@]+)@", text)]
    return [f"{where} does not look like an example" for where, value in values if not value.startswith("example-only-")]


def dockerfile(root):
    """The compiler is the one that Cargo.toml names, and every crate of the workspace reaches the build."""
    text = (root / "Dockerfile").read_text()
    cargo = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
    ignored = (root / ".dockerignore").read_text().splitlines()
    wanted = cargo["package"]["rust-version"]
    problems = []
    if not re.search(rf"^FROM rust:{re.escape(wanted)}\.\d+-", text, re.MULTILINE):
        problems.append(f"Dockerfile: the compiler is not rust {wanted}, as in Cargo.toml")
    [empty] = re.findall(r"^RUN for crate in (.*); do", text, re.MULTILINE)
    for crate in cargo["members"]:
        if f"COPY {crate}/Cargo.toml {crate}/\n" not in text or crate not in empty.split():
            problems.append(f"Dockerfile: {crate} is not among the crates whose dependencies are built first")
        if f"!{crate}" not in ignored:
            problems.append(f".dockerignore: {crate} does not reach the build")
    return problems
