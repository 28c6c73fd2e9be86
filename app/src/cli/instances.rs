//! `tenantry instances`

use clap::Args;

use super::{client::Connection, failure::Failure, output::Column};

/// Arguments of `tenantry instances`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenantry instances
  tenantry instances --output json")]
pub(super) struct InstancesArguments {
    #[command(flatten)]
    connection: Connection,
}

const COLUMNS: &[Column] = &[
    ("id", "/id"),
    ("address", "/address"),
    ("version", "/version"),
    ("live", "/live"),
    ("applied revision", "/applied_revision"),
    ("behind", "/behind"),
    ("started", "/started_at"),
    ("lease until", "/lease_until"),
];

pub(super) async fn run(arguments: InstancesArguments) -> Result<(), Failure> {
    let output = arguments.connection.output();
    let client = arguments.connection.client()?;
    let instances = client.list(&["control", "v1", "instances"], &[]).await?;
    output.list(
        &instances,
        COLUMNS,
        "No instances, although one has answered: its lease has ended long ago.",
    )
}
