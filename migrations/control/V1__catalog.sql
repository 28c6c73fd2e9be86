-- The catalog: what exists, where it lives and who may reach it.
--
-- Every table that instances follow carries `revision`: the value of `catalog_revision` at the change that last touched the
-- row. A change takes the next value as the last statement of its transaction and holds the row lock until it commits, so
-- that changes become visible in the order of their revisions and `revision > $cursor` never skips one.

create table catalog_revision (
    only_row boolean primary key default true check (only_row),
    revision bigint not null default 0
);
insert into catalog_revision default values;

create table clusters (
    name text primary key,
    region text not null,
    max_connections integer not null check (max_connections >= 4),
    -- a cluster that is full or on its way out takes no new tenants
    accepts_tenants boolean not null default true,
    created_at timestamptz not null default now(),
    revision bigint not null
);

create table nodes (
    cluster text not null references clusters (name),
    name text not null,
    role text not null check (role in ('primary', 'replica')),
    -- connection string of the administrator, sealed with the master key
    url_sealed bytea not null,
    created_at timestamptz not null default now(),
    revision bigint not null,
    primary key (cluster, name)
);
create unique index nodes_one_primary on nodes (cluster) where role = 'primary';

create table tenants (
    uuid uuid primary key,
    slug text not null check (slug ~ '^[a-z][a-z0-9-]{0,38}[a-z0-9]$'),
    display_name text not null,
    state text not null check (
        state in ('IN_PROGRESS', 'CREATED', 'FAILED', 'SUSPENDED', 'MOVING', 'DELETED', 'PURGED')
    ),
    cluster text not null references clusters (name),
    labels jsonb not null default '{}',
    schema_version integer not null default 0,
    -- grows when placement or credentials change; connection pools are keyed by it
    generation bigint not null default 1,
    password_sealed bytea not null,
    -- the creating request, so that the same request again is recognised after later changes
    request jsonb not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    revision bigint not null
);
-- A name is free again only after its purge.
create unique index tenants_slug on tenants (slug) where state <> 'PURGED';
create index tenants_revision on tenants (revision);
create index tenants_cluster on tenants (cluster);

create table tenant_domains (
    domain text primary key,
    tenant uuid not null references tenants (uuid) on delete cascade
);
create index tenant_domains_tenant on tenant_domains (tenant);

-- A database that is ready for a tenant which has no name yet. Its UUID becomes the tenant's.
create table spare_databases (
    uuid uuid primary key,
    cluster text not null references clusters (name),
    state text not null check (state in ('MAKING', 'READY')),
    password_sealed bytea not null,
    schema_version integer not null default 0,
    -- who is making it, and until when nobody else may
    owner uuid,
    lease_until timestamptz,
    generation bigint not null default 1,
    created_at timestamptz not null default now()
);
create index spare_databases_ready on spare_databases (cluster, created_at) where state = 'READY';

create table operations (
    id uuid primary key,
    kind text not null,
    tenant uuid not null references tenants (uuid),
    state text not null check (state in ('RUNNING', 'SUCCEEDED', 'FAILED')),
    step text not null,
    steps_done integer not null default 0,
    error text,
    attempts integer not null default 1,
    owner uuid,
    lease_until timestamptz,
    -- fencing: grows with each new owner, and a result is recorded only by the owner of the current one
    generation bigint not null default 1,
    next_attempt_at timestamptz,
    started_at timestamptz not null default now(),
    finished_at timestamptz
);
create index operations_open on operations (lease_until) where state <> 'SUCCEEDED';
create index operations_tenant on operations (tenant, started_at);

create table api_keys (
    id text primary key,
    tenant uuid not null references tenants (uuid),
    name text not null,
    role text not null check (role in ('viewer', 'member', 'admin')),
    secret_sha256 bytea not null check (length(secret_sha256) = 32),
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    revision bigint not null
);
create index api_keys_tenant on api_keys (tenant, id);
create index api_keys_revision on api_keys (revision);

create table instances (
    id uuid primary key,
    address text not null,
    applied_revision bigint not null,
    started_at timestamptz not null default now(),
    lease_until timestamptz not null
);

create table idempotency_keys (
    scope text not null,
    key text not null,
    fingerprint bytea not null,
    -- absent while the first request is still at work
    status smallint,
    -- sealed, because an answer can hand over a new credential
    response_sealed bytea,
    lease_until timestamptz,
    created_at timestamptz not null default now(),
    primary key (scope, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);

create table audit_events (
    id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    actor text not null,
    action text not null,
    tenant uuid,
    subject text,
    request_id text,
    detail jsonb not null default '{}'
);
create index audit_events_tenant on audit_events (tenant, id);
