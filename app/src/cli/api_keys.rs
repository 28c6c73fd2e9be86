//! `tenantry api-keys …`

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use tenant_management::TenantId;

use super::{
    client::Connection,
    failure::Failure,
    output::{Column, Output, print},
};

/// Arguments of `tenantry api-keys`.
#[derive(Debug, Args)]
pub(super) struct ApiKeysArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: ApiKeysCommand,
}

#[derive(Debug, Subcommand)]
enum ApiKeysCommand {
    /// Create a key for a tenant's own API. Its secret is shown this once.
    #[command(after_help = "\
Examples:
  tenantry api-keys create acme --name ci
  tenantry api-keys create acme --name dashboard --role viewer
  tenantry api-keys create acme --name guest --expires-at 2027-01-01T00:00:00Z")]
    Create {
        /// The tenant's id, such as acme
        #[arg(value_parser = TenantId::parse_reference)]
        tenant: TenantId,
        /// Name for people, such as what the key is used by
        #[arg(long)]
        name: String,
        /// What the key may do
        #[arg(long, value_enum, default_value_t = RoleName::Member)]
        role: RoleName,
        /// When it stops to work, such as 2027-01-01T00:00:00Z; never when absent
        #[arg(long, value_name = "TIME")]
        expires_at: Option<DateTime<Utc>>,
    },
    /// List a tenant's keys, without their secrets.
    List {
        /// The tenant's id, such as acme
        #[arg(value_parser = TenantId::parse_reference)]
        tenant: TenantId,
    },
    /// Revoke a key: it stops to work on every instance.
    #[command(after_help = "Example:\n  tenantry api-keys revoke acme k7f3q2k7f3q2k7f3")]
    Revoke {
        /// The tenant's id, such as acme
        #[arg(value_parser = TenantId::parse_reference)]
        tenant: TenantId,
        /// The key's id, as `tenantry api-keys list` shows it
        key: String,
    },
}

/// A role, as it is typed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum RoleName {
    /// Reads
    Viewer,
    /// Reads and writes
    Member,
    /// Also manages the tenant's keys and users
    Admin,
}

impl RoleName {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }
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

pub(super) async fn run(arguments: ApiKeysArguments) -> Result<(), Failure> {
    let output = arguments.connection.output();
    let client = arguments.connection.client()?;
    let keys_of =
        |tenant: &TenantId| ["control", "v1", "tenants", tenant.as_str(), "api-keys"].map(str::to_owned);
    match arguments.command {
        ApiKeysCommand::Create {
            tenant,
            name,
            role,
            expires_at,
        } => {
            let body = json!({ "name": name, "role": role.as_str(), "expires_at": expires_at });
            let key = client
                .post(&keys_of(&tenant).each_ref().map(String::as_str), &body)
                .await?;
            output.one(&key, CREATED)?;
            if output == Output::Table {
                eprintln!(
                    "Keep the secret now: it is not shown again. Send it as `Authorization: Bearer <secret>`."
                );
            }
            Ok(())
        }
        ApiKeysCommand::List { tenant } => {
            let keys = client
                .list(&keys_of(&tenant).each_ref().map(String::as_str), &[])
                .await?;
            let none = format!("No keys. Create one with `tenantry api-keys create {tenant} --name NAME`.");
            output.list(&keys, COLUMNS, &none)
        }
        ApiKeysCommand::Revoke { tenant, key } => {
            let path = ["control", "v1", "tenants", tenant.as_str(), "api-keys", &key];
            let revoked = client.delete(&path).await?;
            match output {
                Output::Table => print(&format!("Key {key} of tenant {tenant} is revoked.")),
                Output::Json => output.one(&revoked, &[]),
            }
        }
    }
}
