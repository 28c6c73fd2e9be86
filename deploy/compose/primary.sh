#!/usr/bin/env bash
# Run once by the image of PostgreSQL, when the primary's folder is new: the catalog's role and database, the role and the slots
# that replicas stream with, and the right to connect for them.
set -euo pipefail

# A value reaches SQL as a variable of psql, which quotes it.
psql --set=ON_ERROR_STOP=1 --no-psqlrc --quiet --username="$POSTGRES_USER" --dbname=postgres \
    --set=catalog_password="$CATALOG_PASSWORD" --set=replication_password="$REPLICATION_PASSWORD" <<'SQL'
create role tenantry login password :'catalog_password';
create database tenantry owner tenantry;
-- Tenants' roles live on the same server and have no business in the catalog.
revoke all on database tenantry from public;
create role replicator replication login password :'replication_password';
-- `true` keeps what is written from now on: a replica that is not there yet misses nothing.
select pg_create_physical_replication_slot('replica_1', true);
select pg_create_physical_replication_slot('replica_2', true);
SQL

# `all` in the lines that the image writes does not include replication.
echo 'host replication replicator all scram-sha-256' >>"$PGDATA/pg_hba.conf"
