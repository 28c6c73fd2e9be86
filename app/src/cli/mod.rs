//! The command line: what can be typed, and the way from there to the code that does it.
//!
//! Owns arguments, help texts, what a person sees, and exit codes: 0 done, 1 the operation failed, 2 wrong usage or
//! configuration. Refuses to know the catalog: everything but `serve`, `dev`, `config`, `migrate` and `health` goes through the REST API, with
//! the operator's credentials, like anybody else's program.

mod api_keys;
mod audit;
mod client;
mod clusters;
mod config;
mod failure;
mod health;
mod instances;
mod migrate;
mod operations;
mod operator_tokens;
mod output;
mod progress;
mod serve;
mod signals;
mod tenants;
mod users;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use client::ApiClient;
pub use failure::Failure;
pub(crate) use output::print;
pub(crate) use progress::Progress;
pub(crate) use signals::StopSignals;

use crate::dev;

/// A service with a PostgreSQL database per tenant.
#[derive(Debug, Parser)]
#[command(name = "tenantry", version, propagate_version = true, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tenantry dev                              everything on this machine, to try things out
  tenantry serve --config tenantry.toml     one instance of the service
  tenantry tenants create acme --region eu  a tenant with its database
  tenantry api-keys create acme --name ci   a key for the tenant's own API

Exit codes: 0 done, 1 the operation failed, 2 wrong usage or configuration.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything on this machine: a private PostgreSQL cluster and one instance.
    Dev(dev::DevArguments),
    /// Run one instance of the service.
    Serve(serve::ServeArguments),
    /// Bring the catalog's schema up to date, and end.
    Migrate(migrate::MigrateArguments),
    /// Ask one instance whether it is ready for requests.
    Health(health::HealthArguments),
    /// Look at configuration files.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Create and look at tenants.
    Tenants(tenants::TenantsArguments),
    /// Create, list and revoke the keys of tenants' own APIs.
    ApiKeys(api_keys::ApiKeysArguments),
    /// Invite, list and remove the people who may log in to a tenant.
    Users(users::UsersArguments),
    /// Create, list and revoke the tokens of other operators.
    OperatorTokens(operator_tokens::OperatorTokensArguments),
    /// Show what was done in the control plane, and who tried to get in.
    Audit(audit::AuditArguments),
    /// Look at control-plane work that goes on in the background.
    Operations(operations::OperationsArguments),
    /// Look at database clusters.
    Clusters(clusters::ClustersArguments),
    /// List the running instances of the service, and how far each has followed the catalog.
    Instances(instances::InstancesArguments),
}

impl Cli {
    /// Does what was typed. What went wrong is told on standard error, once.
    pub async fn run(self) -> ExitCode {
        let result = match self.command {
            Command::Dev(arguments) => dev::run(arguments).await,
            Command::Serve(arguments) => serve::run(arguments).await,
            Command::Migrate(arguments) => migrate::run(arguments).await,
            Command::Health(arguments) => health::run(arguments).await,
            Command::Config(command) => config::run(&command),
            Command::Tenants(arguments) => tenants::run(arguments).await,
            Command::ApiKeys(arguments) => api_keys::run(arguments).await,
            Command::Users(arguments) => users::run(arguments).await,
            Command::OperatorTokens(arguments) => operator_tokens::run(arguments).await,
            Command::Audit(arguments) => audit::run(arguments).await,
            Command::Operations(arguments) => operations::run(arguments).await,
            Command::Clusters(arguments) => clusters::run(arguments).await,
            Command::Instances(arguments) => instances::run(arguments).await,
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("{failure}");
                failure.exit_code()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn wrong_usage_has_exit_code_2() {
        for line in [
            "tenantry",
            "tenantry fly",
            "tenantry tenants create",
            "tenantry tenants show A_B",
            "tenantry serve",
        ] {
            let refusal = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(refusal.exit_code(), 2, "{line}");
        }
    }
}
