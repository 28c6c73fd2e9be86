# Everything a person does with this project. `make` alone lists it.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# Crash points for the tests that kill the service at each step of provisioning.
FEATURES := --features app/failpoints

# Tests start many servers whose data nobody keeps: in memory, where there is plenty.
ROOMY := $(shell df --output=avail -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 6000000 { print "/dev/shm" }')
ifneq ($(ROOMY),)
export SANDBOX_TMPDIR ?= $(ROOMY)
endif

# Tests of what depends on the version of PostgreSQL: what servers do, what is stored in them, and what is read from them.
ON_SERVERS := $(basename $(notdir $(wildcard tenant-management/tests/*.rs read-your-writes/tests/*.rs))) \
	nodes sample replicas cluster node replication

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## the whole thing on this machine: a private PostgreSQL cluster, the service, two tenants (ARGS="--help" for its options)
	@scripts/need cargo postgresql
	cargo run --release --package app -- dev $(ARGS)

test: check manifests test-15 test-18 tour contract ## every check and every test; installs what is missing
	@echo "All checks and tests have passed."

check: ## formatting, lints, and whether the descriptions of SQL statements are up to date
	@scripts/need cargo postgresql
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(FEATURES) -- --deny warnings
	scripts/prepare-queries --check

manifests: ## k8s/ and docker-compose.yml, compared with what Kubernetes knows and with themselves; needs no cluster
	@scripts/need cargo python kubectl
	cargo build --workspace --bins $(FEATURES)
	scripts/check-manifests

test-15: ## all tests on the system's PostgreSQL and RabbitMQ
	@scripts/need cargo postgresql rabbitmq
	cargo test --workspace $(FEATURES)

test-18: ## the tests of what depends on the version of PostgreSQL, on 18
	@scripts/need cargo rabbitmq
	PG_BIN="$$(scripts/postgresql-18)" cargo test --workspace $(FEATURES) $(foreach test,$(ON_SERVERS),--test $(test))

tour: ## runs the files in http/ against a started service
	@scripts/need cargo postgresql node
	cargo build --workspace --bins $(FEATURES)
	scripts/with-service scripts/http-tour

contract: ## compares the service's answers with its OpenAPI document
	@scripts/need cargo postgresql python
	cargo build --workspace --bins $(FEATURES)
	scripts/with-service scripts/contract

# The last one is kept: it writes what it measured beside the other measurements.
soak: ## the long storms: minutes without broker and catalog, replicas that stop and go, an idle minute, a million answers
	@scripts/need cargo postgresql rabbitmq
	AWAY_SECONDS=60 CONVERGENCE_ROUNDS=100 cargo test --release --package app $(FEATURES) --test many -- --nocapture --test-threads 1
	STORM_SECONDS=60 STORM_READS=20000 cargo test --release --package app $(FEATURES) --test replicas -- --nocapture storm
	ORDER_SECONDS=60 cargo test --release --package tenant-management --test catalog_order -- --nocapture a_cursor
	IDLE_SECONDS=60 cargo test --release --package read-your-writes --test nodes -- --nocapture while_nothing_is_written
	cargo run --release --package benchmark -- run --only isolation-race

bench: ## all measurements, into benchmark/RESULTS.md
	@scripts/need cargo postgresql rabbitmq
	cargo run --release --package benchmark -- run
	cargo run --release --package benchmark -- report

queries: ## describes the SQL statements again, after a change to one or to a migration
	@scripts/need cargo postgresql
	scripts/prepare-queries

.PHONY: help run test check manifests test-15 test-18 tour contract soak bench queries
