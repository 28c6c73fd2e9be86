//! `tenantry clusters …`

use clap::{Args, Subcommand};

use super::{client::Connection, failure::Failure, output::Column};

/// Arguments of `tenantry clusters`.
#[derive(Debug, Args)]
pub(super) struct ClustersArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: ClustersCommand,
}

#[derive(Debug, Subcommand)]
enum ClustersCommand {
    /// List the clusters that hold tenants' databases.
    List,
}

const COLUMNS: &[Column] = &[
    ("name", "/name"),
    ("region", "/region"),
    ("tenants", "/tenants"),
    ("spares", "/spares"),
    ("accepts tenants", "/accepts_tenants"),
    ("max connections", "/max_connections"),
];

pub(super) async fn run(arguments: ClustersArguments) -> Result<(), Failure> {
    let output = arguments.connection.output();
    let client = arguments.connection.client()?;
    match arguments.command {
        ClustersCommand::List => {
            let clusters = client.list(&["control", "v1", "clusters"], &[]).await?;
            output.list(
                &clusters,
                COLUMNS,
                "No clusters. They are registered from the configuration at the first start.",
            )
        }
    }
}
