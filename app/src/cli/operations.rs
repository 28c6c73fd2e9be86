//! `tenantry operations …`

use clap::{Args, Subcommand};
use uuid::Uuid;

use super::{client::Connection, failure::Failure, output::Column};

/// Arguments of `tenantry operations`.
#[derive(Debug, Args)]
pub(super) struct OperationsArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: OperationsCommand,
}

#[derive(Debug, Subcommand)]
enum OperationsCommand {
    /// Show how far an operation has got.
    Show {
        /// The operation's id, as an answer of the API names it
        operation: Uuid,
    },
}

const FIELDS: &[Column] = &[
    ("id", "/id"),
    ("kind", "/kind"),
    ("tenant", "/tenant"),
    ("state", "/state"),
    ("step", "/step"),
    ("steps", "/steps"),
    ("error", "/error"),
    ("started", "/started_at"),
    ("finished", "/finished_at"),
];

pub(super) async fn run(arguments: OperationsArguments) -> Result<(), Failure> {
    let output = arguments.connection.output();
    let client = arguments.connection.client()?;
    match arguments.command {
        OperationsCommand::Show { operation } => output.one(
            &client
                .get(&["control", "v1", "operations", &operation.to_string()])
                .await?,
            FIELDS,
        ),
    }
}
