-- People: who they are, where they belong, what they are doing at the moment, and who operates the service.
--
-- Instances do not follow these rows one by one. They believe what they have read until `identity_revision` shows that
-- something of it has ended or changed, and for a bounded time.

alter table catalog_revision add column identity_revision bigint not null default 0;

create table users (
    id uuid primary key,
    -- in lower case: one person, one row
    email text not null unique,
    -- argon2id, in the PHC string format
    password_hash text not null,
    created_at timestamptz not null default now(),
    password_changed_at timestamptz not null default now()
);

create table memberships (
    tenant uuid not null references tenants (uuid),
    user_id uuid not null references users (id),
    role text not null check (role in ('viewer', 'member', 'admin')),
    created_at timestamptz not null default now(),
    primary key (tenant, user_id)
);
create index memberships_user on memberships (user_id);

create table invitations (
    id text primary key,
    tenant uuid not null references tenants (uuid),
    email text not null,
    role text not null check (role in ('viewer', 'member', 'admin')),
    secret_sha256 bytea not null check (length(secret_sha256) = 32),
    invited_by text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
);
-- A second invitation of the same person takes the place of the first. An accepted or withdrawn one is removed.
create unique index invitations_person on invitations (tenant, email);

create table sessions (
    -- not the id itself: who reads the catalog must not be able to take a session over
    id_sha256 bytea primary key check (length(id_sha256) = 32),
    user_id uuid not null references users (id),
    -- the only tenant that the session is good for; absent, it is good for all of the person's
    tenant uuid references tenants (uuid),
    created_at timestamptz not null default now(),
    idle_until timestamptz not null,
    ends_at timestamptz not null
);
create index sessions_user on sessions (user_id);
create index sessions_end on sessions (least(idle_until, ends_at));

-- Attempts to log in, as GCRA counts them: one row for each account and each address that had some lately.
create table login_attempts (
    key_sha256 bytea primary key check (length(key_sha256) = 32),
    -- when the allowance will be whole again
    whole_at timestamptz not null
);
create index login_attempts_whole on login_attempts (whole_at);

create table operator_tokens (
    id text primary key,
    name text not null,
    role text not null check (role in ('read', 'write')),
    secret_sha256 bytea not null check (length(secret_sha256) = 32),
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);
-- The audit trail speaks of operators by their names.
create unique index operator_tokens_name on operator_tokens (name) where revoked_at is null;

alter table api_keys add column last_used_at timestamptz;

-- From where, and how often: failed attempts that look the same are counted together.
alter table audit_events add column address text;
alter table audit_events add column times integer not null default 1;
create index audit_events_action on audit_events (action, id);
