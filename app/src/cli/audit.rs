//! `tenantry audit`

use clap::Args;

use super::{client::Connection, failure::Failure, output::Column};

/// Arguments of `tenantry audit`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenantry audit
  tenantry audit --action api-key.revoke
  tenantry audit --actor operator:configured --output json")]
pub(super) struct AuditArguments {
    #[command(flatten)]
    connection: Connection,
    /// Only what concerns the tenant with this uuid, as `tenantry tenants show` shows it
    #[arg(long, value_name = "UUID")]
    tenant: Option<uuid::Uuid>,
    /// Only what this one did, such as operator:configured
    #[arg(long)]
    actor: Option<String>,
    /// Only this, such as api-key.revoke
    #[arg(long)]
    action: Option<String>,
    /// How many events to show, the newest first
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
}

const COLUMNS: &[Column] = &[
    ("at", "/at"),
    ("actor", "/actor"),
    ("action", "/action"),
    ("tenant", "/tenant"),
    ("subject", "/subject"),
    ("from", "/address"),
    ("times", "/times"),
    ("request", "/request_id"),
];

pub(super) async fn run(arguments: AuditArguments) -> Result<(), Failure> {
    let output = arguments.connection.output();
    let client = arguments.connection.client()?;
    let filters = [
        ("tenant", arguments.tenant.map(|tenant| tenant.to_string())),
        ("actor", arguments.actor),
        ("action", arguments.action),
        ("limit", Some(arguments.limit.to_string())),
    ];
    let filters: Vec<(&str, String)> = filters
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    let events = client.page(&["control", "v1", "audit-events"], &filters).await?;
    output.list(&events, COLUMNS, "No such events.")
}
