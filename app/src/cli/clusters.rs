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
    /// Show one cluster and its servers, as the answering instance sees them.
    #[command(after_help = "Example:\n  tenantry clusters show main")]
    Show {
        /// The cluster's name
        cluster: String,
    },
}

const COLUMNS: &[Column] = &[
    ("name", "/name"),
    ("region", "/region"),
    ("tenants", "/tenants"),
    ("spares", "/spares"),
    ("accepts tenants", "/accepts_tenants"),
    ("max connections", "/max_connections"),
];

const NODE_COLUMNS: &[Column] = &[
    ("node", "/name"),
    ("role", "/role"),
    ("address", "/address"),
    ("eligible", "/eligible"),
    ("staleness ms", "/staleness_ms"),
    ("lag bytes", "/lag_bytes"),
    ("connections", "/connections"),
    ("reason", "/reason"),
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
        ClustersCommand::Show { cluster } => {
            let cluster = client.get(&["control", "v1", "clusters", &cluster]).await?;
            output.one(&cluster, COLUMNS)?;
            output.part(&cluster, "/nodes", NODE_COLUMNS)
        }
    }
}
