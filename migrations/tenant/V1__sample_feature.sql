-- The sample feature's tables in each tenant's own database. Whoever owns a new table, the
-- group role `tenantry_tenant` may read and write its rows (default privileges set before the first migration runs), and
-- never its schema. A table that deserves less says so.

create table invoices (
    id uuid primary key,
    customer text not null check (length(customer) between 1 and 200),
    amount_cents bigint not null check (amount_cents between 0 and 1000000000000),
    paid_cents bigint not null default 0 check (paid_cents between 0 and amount_cents),
    currency text not null check (currency ~ '^[A-Z]{3}$'),
    status text not null default 'open' check (status in ('open', 'paid', 'void')),
    due_on date,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    constraint invoices_paid_in_full check (status <> 'paid' or paid_cents = amount_cents)
);
create index invoices_status on invoices (status, id);
create index invoices_created on invoices (created_at);

create table payments (
    -- the payment service's name for it: the same reference is the same payment
    reference text primary key check (length(reference) between 1 and 200),
    invoice_id uuid not null references invoices (id),
    amount_cents bigint not null check (amount_cents between 1 and 1000000000000),
    received_at timestamptz not null default now()
);
create index payments_invoice on payments (invoice_id);

create table profile (
    only_row boolean primary key default true check (only_row),
    display_name text not null check (length(display_name) between 1 and 200),
    notification_email text check (octet_length(notification_email) <= 254),
    updated_at timestamptz not null default now()
);

create table report_settings (
    only_row boolean primary key default true check (only_row),
    include_today boolean not null default true,
    updated_at timestamptz not null default now()
);

create table audit_log (
    id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    principal text not null,
    action text not null,
    subject text
);

-- What a creating request was answered, written in the transaction that did what it asked for.
create table idempotency_keys (
    key text primary key check (length(key) between 1 and 255),
    -- SHA-256 of the operation and its body
    fingerprint bytea not null check (length(fingerprint) = 32),
    -- absent only within the transaction that is still at work
    response jsonb,
    created_at timestamptz not null default now()
);
create index idempotency_keys_age on idempotency_keys (created_at);

-- What happened stays: rows are added and read, never changed.
revoke update, delete on audit_log from tenantry_tenant;
