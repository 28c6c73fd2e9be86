//! `tenantry tenants …`

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenant_management::{ClusterName, TenantId, TenantState};

use super::{
    client::{ApiClient, Connection},
    failure::Failure,
    output::Column,
    progress::Progress,
};

/// Arguments of `tenantry tenants`.
#[derive(Debug, Args)]
pub(super) struct TenantsArguments {
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: TenantsCommand,
}

#[derive(Debug, Subcommand)]
enum TenantsCommand {
    /// Create a tenant with its database. The same command again changes nothing and is no error.
    #[command(after_help = "\
Examples:
  tenantry tenants create acme
  tenantry tenants create acme --display-name 'Acme Corporation' --region eu
  tenantry tenants create acme --domain portal.acme.example --label tier=gold")]
    Create(CreateArguments),
    /// List tenants.
    #[command(after_help = "\
Examples:
  tenantry tenants list
  tenantry tenants list --state CREATED --label tier=gold --output json")]
    List(ListArguments),
    /// Show one tenant.
    #[command(after_help = "Example:\n  tenantry tenants show acme --output json")]
    Show {
        /// The tenant's id, such as acme
        #[arg(value_parser = TenantId::parse_reference)]
        tenant: TenantId,
    },
    /// Let a tenant answer nobody until it is resumed. Its data is kept.
    #[command(after_help = "Example:\n  tenantry tenants suspend acme")]
    Suspend {
        /// The tenant's id, such as acme
        #[arg(value_parser = TenantId::parse_reference)]
        tenant: TenantId,
    },
    /// Let a suspended tenant answer again.
    #[command(after_help = "Example:\n  tenantry tenants resume acme")]
    Resume {
        /// The tenant's id, such as acme
        #[arg(value_parser = TenantId::parse_reference)]
        tenant: TenantId,
    },
}

#[derive(Debug, Args)]
struct CreateArguments {
    /// The tenant's id: 2 to 40 characters of a-z, 0-9 and hyphens, starting with a letter
    #[arg(value_parser = TenantId::parse_new)]
    tenant: TenantId,
    /// Name for people; the id when absent
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
    /// Only clusters of this region will do
    #[arg(long)]
    region: Option<String>,
    /// Only this cluster will do
    #[arg(long, value_parser = ClusterName::parse)]
    cluster: Option<ClusterName>,
    /// A host name that means this tenant; can be given several times
    #[arg(long = "domain", value_name = "HOST")]
    domains: Vec<String>,
    /// A label for the operator's own use; can be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
}

#[derive(Debug, Args)]
struct ListArguments {
    /// Only tenants in this state, such as CREATED or SUSPENDED
    #[arg(long)]
    state: Option<TenantState>,
    /// Only tenants on this cluster
    #[arg(long, value_parser = ClusterName::parse)]
    cluster: Option<ClusterName>,
    /// Only tenants with this label, or with this value of it
    #[arg(long, value_name = "KEY[=VALUE]")]
    label: Option<String>,
}

fn parse_label(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text
        .split_once('=')
        .ok_or("a label has the form KEY=VALUE, such as tier=gold")?;
    if key.is_empty() {
        Err("a label has a key before the `=`")
    } else {
        Ok((key.to_owned(), value.to_owned()))
    }
}

const COLUMNS: &[Column] = &[
    ("id", "/id"),
    ("state", "/state"),
    ("cluster", "/cluster"),
    ("region", "/region"),
    ("display name", "/display_name"),
    ("labels", "/labels"),
    ("created", "/created_at"),
];

const FIELDS: &[Column] = &[
    ("id", "/id"),
    ("uuid", "/uuid"),
    ("display name", "/display_name"),
    ("state", "/state"),
    ("cluster", "/cluster"),
    ("region", "/region"),
    ("domains", "/domains"),
    ("labels", "/labels"),
    ("schema version", "/schema_version"),
    ("revision", "/revision"),
    ("created", "/created_at"),
    ("updated", "/updated_at"),
];

const PROPAGATION: &[Column] = &[
    ("live instances", "/propagation/live_instances"),
    ("of them informed", "/propagation/applied_instances"),
    ("not yet informed", "/propagation/pending"),
];

pub(super) async fn run(arguments: TenantsArguments) -> Result<(), Failure> {
    let output = arguments.connection.output();
    let client = arguments.connection.client()?;
    match arguments.command {
        TenantsCommand::Create(arguments) => {
            let tenant = create(&client, &arguments).await?;
            output.one(&tenant, &[FIELDS, PROPAGATION].concat())
        }
        TenantsCommand::List(arguments) => {
            let tenants = client
                .list(&["control", "v1", "tenants"], &filters(arguments))
                .await?;
            output.list(
                &tenants,
                COLUMNS,
                "No tenants. Create one with `tenantry tenants create acme`.",
            )
        }
        TenantsCommand::Show { tenant } => output.one(
            &client.get(&["control", "v1", "tenants", tenant.as_str()]).await?,
            FIELDS,
        ),
        TenantsCommand::Suspend { tenant } => {
            let suspended = command(&client, &tenant, "suspend").await?;
            output.one(&suspended, &[FIELDS, PROPAGATION].concat())
        }
        TenantsCommand::Resume { tenant } => {
            let resumed = command(&client, &tenant, "resume").await?;
            output.one(&resumed, &[FIELDS, PROPAGATION].concat())
        }
    }
}

/// A command about a tenant that needs no more than its name.
async fn command(client: &ApiClient, tenant: &TenantId, name: &str) -> Result<Value, Failure> {
    let path = ["control", "v1", "tenants", tenant.as_str(), name];
    client.post(&path, &json!({})).await
}

async fn create(client: &ApiClient, arguments: &CreateArguments) -> Result<Value, Failure> {
    let mut body = json!({ "id": arguments.tenant });
    let optional = [
        (
            "display_name",
            arguments.display_name.as_ref().map(|name| json!(name)),
        ),
        ("region", arguments.region.as_ref().map(|region| json!(region))),
        (
            "cluster",
            arguments.cluster.as_ref().map(|cluster| json!(cluster)),
        ),
        (
            "domains",
            (!arguments.domains.is_empty()).then(|| json!(arguments.domains)),
        ),
        (
            "labels",
            (!arguments.labels.is_empty())
                .then(|| json!(arguments.labels.iter().cloned().collect::<BTreeMap<_, _>>())),
        ),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            body[field] = value;
        }
    }
    let _progress = Progress::start(format_args!("Creating tenant {}", arguments.tenant));
    client.post(&["control", "v1", "tenants"], &body).await
}

fn filters(arguments: ListArguments) -> Vec<(&'static str, String)> {
    let state = arguments.state.map(|state| ("state", state.to_string()));
    let cluster = arguments.cluster.map(|cluster| ("cluster", cluster.to_string()));
    let label = arguments.label.map(|label| ("label", label));
    [state, cluster, label].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_split_at_the_first_equals_sign() {
        assert_eq!(
            parse_label("tier=gold"),
            Ok(("tier".to_owned(), "gold".to_owned()))
        );
        assert_eq!(
            parse_label("query=a=b"),
            Ok(("query".to_owned(), "a=b".to_owned()))
        );
        assert_eq!(parse_label("empty="), Ok(("empty".to_owned(), String::new())));
        assert!(parse_label("tier").is_err());
        assert!(parse_label("=gold").is_err());
    }
}
