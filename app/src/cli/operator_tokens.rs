//! `tenantry operator-tokens …`

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::{
    client::Connection,
    failure::Failure,
    output::{Column, Output, print},
};

/// Arguments of `tenantry operator-tokens`.
#[derive(Debug, Args)]
pub(super) struct OperatorTokensArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: OperatorTokensCommand,
}

#[derive(Debug, Subcommand)]
enum OperatorTokensCommand {
    /// Create a token for another operator. Its secret is shown this once.
    #[command(after_help = "\
Examples:
  tenantry operator-tokens create deployment --role write
  tenantry operator-tokens create monitoring
  tenantry operator-tokens create guest --expires-at 2027-01-01T00:00:00Z")]
    Create {
        /// The operator's name in the audit trail
        name: String,
        /// What the token may do
        #[arg(long, value_enum, default_value_t = RoleName::Read)]
        role: RoleName,
        /// When it stops to work, such as 2027-01-01T00:00:00Z; never when absent
        #[arg(long, value_name = "TIME")]
        expires_at: Option<DateTime<Utc>>,
    },
    /// List tokens, without their secrets and without the one in the configuration.
    List,
    /// Revoke a token: it stops to work on every instance.
    #[command(after_help = "Example:\n  tenantry operator-tokens revoke k7f3q2k7f3q2k7f3")]
    Revoke {
        /// The token's id, as `tenantry operator-tokens list` shows it
        token: String,
    },
}

/// A role, as it is typed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    /// Looks, in the control plane and in tenants
    Read,
    /// Changes, too
    Write,
}

const COLUMNS: &[Column] = &[
    ("id", "/id"),
    ("name", "/name"),
    ("role", "/role"),
    ("created", "/created_at"),
    ("expires", "/expires_at"),
    ("revoked", "/revoked_at"),
    ("last used", "/last_used_at"),
];

const CREATED: &[Column] = &[
    ("id", "/id"),
    ("name", "/name"),
    ("role", "/role"),
    ("secret", "/secret"),
    ("created", "/created_at"),
    ("expires", "/expires_at"),
];

const PATH: [&str; 3] = ["control", "v1", "operator-tokens"];

pub(super) async fn run(arguments: OperatorTokensArguments) -> Result<(), Failure> {
    let output = arguments.connection.output();
    let client = arguments.connection.client()?;
    match arguments.command {
        OperatorTokensCommand::Create {
            name,
            role,
            expires_at,
        } => {
            let role = match role {
                RoleName::Read => "read",
                RoleName::Write => "write",
            };
            let body = json!({ "name": name, "role": role, "expires_at": expires_at });
            let token = client.post(&PATH, &body).await?;
            output.one(&token, CREATED)?;
            if output == Output::Table {
                eprintln!(
                    "Keep the secret now: it is not shown again. Its operator sets TENANTRY_OPERATOR_TOKEN to it."
                );
            }
            Ok(())
        }
        OperatorTokensCommand::List => {
            let tokens = client.list(&PATH, &[]).await?;
            let none = "No tokens but the one in the configuration. Create one with `tenantry operator-tokens create NAME`.";
            output.list(&tokens, COLUMNS, none)
        }
        OperatorTokensCommand::Revoke { token } => {
            let path = [PATH.as_slice(), &[&token]].concat();
            let revoked = client.delete(&path).await?;
            match output {
                Output::Table => print(&format!("The operator's token {token} is revoked.")),
                Output::Json => output.one(&revoked, &[]),
            }
        }
    }
}
