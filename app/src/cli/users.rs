//! `tenantry users …`

use clap::{Args, Subcommand};
use serde_json::json;
use tenant_management::TenantId;

use super::{
    api_keys::RoleName,
    client::Connection,
    failure::Failure,
    output::{Column, Output, print},
};

/// Arguments of `tenantry users`.
#[derive(Debug, Args)]
pub(super) struct UsersArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: UsersCommand,
}

#[derive(Debug, Subcommand)]
enum UsersCommand {
    /// Invite a person into a tenant. The invitation's secret is shown this once; bring it to the person.
    #[command(after_help = "\
Examples:
  tenantry users invite acme ann@acme.example --role admin
  tenantry users invite acme bob@acme.example")]
    Invite {
        /// The tenant's id, such as acme
        #[arg(value_parser = TenantId::parse_reference)]
        tenant: TenantId,
        /// The person's e-mail address, with which they will log in
        email: String,
        /// What they may do
        #[arg(long, value_enum, default_value_t = RoleName::Member)]
        role: RoleName,
    },
    /// List a tenant's users.
    List {
        /// The tenant's id, such as acme
        #[arg(value_parser = TenantId::parse_reference)]
        tenant: TenantId,
    },
    /// Remove a person from a tenant. Their account and their other tenants stay.
    #[command(after_help = "Example:\n  tenantry users remove acme 0199a3c1-d2e3-7f4a-8b9c-0d1e2f3a4b5c")]
    Remove {
        /// The tenant's id, such as acme
        #[arg(value_parser = TenantId::parse_reference)]
        tenant: TenantId,
        /// The user's id, as `tenantry users list` shows it
        user: String,
    },
}

const COLUMNS: &[Column] = &[
    ("id", "/id"),
    ("email", "/email"),
    ("role", "/role"),
    ("since", "/since"),
];

const INVITED: &[Column] = &[
    ("id", "/id"),
    ("email", "/email"),
    ("role", "/role"),
    ("secret", "/secret"),
    ("expires", "/expires_at"),
];

pub(super) async fn run(arguments: UsersArguments) -> Result<(), Failure> {
    let output = arguments.connection.output();
    let client = arguments.connection.client()?;
    match arguments.command {
        UsersCommand::Invite { tenant, email, role } => {
            let body = json!({ "email": email, "role": role.as_str() });
            let client = client.in_tenant(tenant);
            let invited = client.post(&["v1", "invitations"], &body).await?;
            output.one(&invited, INVITED)?;
            if output == Output::Table {
                eprintln!(
                    "Bring the secret to {email} now: it is not shown again. They accept by POST /v1/invitations/accept."
                );
            }
            Ok(())
        }
        UsersCommand::List { tenant } => {
            let users = client.in_tenant(tenant).list(&["v1", "users"], &[]).await?;
            let none = format!("No users. Invite one with `tenantry users invite {tenant} EMAIL`.");
            output.list(&users, COLUMNS, &none)
        }
        UsersCommand::Remove { tenant, user } => {
            let removed = client.in_tenant(tenant).delete(&["v1", "users", &user]).await?;
            match output {
                Output::Table => print(&format!("User {user} is removed from tenant {tenant}.")),
                Output::Json => output.one(&removed, &[]),
            }
        }
    }
}
