#!/usr/bin/env bash
# Starts a streaming replica of $PRIMARY_HOST that holds its place there in the slot $SLOT. The first start copies the primary.
# The arguments are those of the server.
set -euo pipefail

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    # Beside its place: a copy that is cut short must not look like a complete one at the next start.
    copy=$PGDATA.copy
    rm -rf "$copy"
    # Writes standby.signal, and into postgresql.auto.conf how to reach the primary and which slot to use.
    PGPASSWORD=$REPLICATION_PASSWORD pg_basebackup --pgdata="$copy" --wal-method=stream --checkpoint=fast \
        --write-recovery-conf --slot="$SLOT" \
        --dbname="host=$PRIMARY_HOST port=5432 user=replicator application_name=$SLOT"
    chmod 700 "$copy"
    rm -rf "$PGDATA"
    mv "$copy" "$PGDATA"
fi

exec "$@"
