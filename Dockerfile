# The image of one instance: the program, the certificates of well-known authorities and the C library. No shell, no package
# manager, not root.
#
#   docker build -t tenantry:local .
#   docker run --rm tenantry:local --help
#
# It needs nothing that only BuildKit has, so that older builders make it too.

# The compiler is that of `rust-version` in Cargo.toml. Debian 12 below, so that the C library is the one that it runs with.
FROM rust:1.95.0-bookworm AS build
WORKDIR /src

# First the dependencies alone, with empty crates in the places of ours: this layer is made again when a manifest or the lock
# file changes, and not for every change of a source file.
COPY Cargo.toml Cargo.lock ./
COPY app/Cargo.toml app/
COPY auth/Cargo.toml auth/
COPY benchmark/Cargo.toml benchmark/
COPY read-your-writes/Cargo.toml read-your-writes/
COPY sandbox/Cargo.toml sandbox/
COPY tenant-management/Cargo.toml tenant-management/
RUN for crate in app auth benchmark read-your-writes sandbox tenant-management; do \
        mkdir -p "$crate/src" && : > "$crate/src/lib.rs" || exit 1; \
    done \
    && echo 'fn main() {}' > app/src/main.rs \
    && cargo build --release --locked --package app --bin tenantry

# Then ours. SQL statements are checked against their committed descriptions, so no database is asked.
COPY . .
# Cargo goes by the time of a change, and the empty crates are newer than sources that were checked out earlier.
RUN find app auth read-your-writes sandbox tenant-management -name '*.rs' -exec touch {} + \
    && SQLX_OFFLINE=true cargo build --release --locked --package app --bin tenantry \
    && target/release/tenantry --version

# Distroless images have no version tags: this one moves with Debian 12's security updates. Who needs the same bytes each time
# appends the digest of the day (`@sha256:…`).
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/tenantry /usr/local/bin/tenantry
# By number: Kubernetes' `runAsNonRoot` cannot look a name up.
USER 65532:65532
EXPOSE 8080
# SIGTERM is the orderly end: not ready first, then what is in flight, then the rest.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=3 CMD ["/usr/local/bin/tenantry", "health"]
ENTRYPOINT ["/usr/local/bin/tenantry"]
CMD ["serve", "--config", "/etc/tenantry/tenantry.toml"]
