"""Checks k8s/ and docker-compose.yml, says everything that is wrong, and fails when anything is."""

import argparse
import os
import sys
from pathlib import Path

import alerts
import budget
import compose
import configuration
import overlays
import references
import schemas

ROOT = Path(__file__).resolve().parents[2]


def arguments():
    default = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "tenantry"
    parser = argparse.ArgumentParser(prog="scripts/check-manifests", description=__doc__)
    parser.add_argument("--tenantry", type=Path, default=default, metavar="PROGRAM", help="reads the configuration files")
    parser.add_argument("--write-alerts", action="store_true", help="copies monitoring/alerts.yaml into k8s/base/alerts.yaml")
    return parser.parse_args()


def main():
    options = arguments()
    if options.write_alerts:
        alerts.write(ROOT)
        return 0
    if not os.access(options.tenantry, os.X_OK):
        print(f"{options.tenantry} is not there: run `cargo build --bin tenantry`, or name one with --tenantry", file=sys.stderr)
        return 2
    problems = []
    for overlay in overlays.names(ROOT):
        resources, found = overlays.render(ROOT, overlay)
        found += schemas.check(resources)
        found += references.check(ROOT, resources)
        found += alerts.check(ROOT, resources)
        refused = configuration.check_overlay(resources, options.tenantry)
        # Sums of settings that are not there would say nothing.
        found += refused or budget.check(resources)
        problems += [f"k8s/overlays/{overlay}: {problem}" for problem in found]
        print(f"k8s/overlays/{overlay}: {len(resources)} resources")
    found, services = compose.check(ROOT)
    found += configuration.check_compose(ROOT, options.tenantry)
    problems += [f"Compose: {problem}" for problem in found]
    print(f"docker-compose.yml: {services} services")
    for problem in problems:
        print(f"wrong: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
