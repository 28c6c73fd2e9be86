//! `tenantry migrate`: the catalog's schema, before instances start.
//!
//! An instance does the same when it starts. As a command of its own it can stand before a roll-out, which then stops here
//! and not with new instances that do not come up.

use std::error::Error;

use clap::Args;
use tenant_management::MigrateError;

use super::{config::ConfigFile, failure::Failure, output::print};
use crate::{config::Config, serve::settings};

/// SQLSTATE 3D000, `invalid_catalog_name`: PostgreSQL's word for a database that does not exist.
const NO_SUCH_DATABASE: &str = "3D000";

/// Arguments of `tenantry migrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tenantry migrate --config tenantry.toml

It can be repeated, and any number may run at once: they take turns. Tenants' databases are not touched.
It connects as catalog.url says; the database has to exist.")]
pub(super) struct MigrateArguments {
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) async fn run(arguments: MigrateArguments) -> Result<(), Failure> {
    let Config { catalog, .. } = arguments.config.load()?;
    let options = settings::catalog(&catalog).map_err(Failure::usage)?;
    let (user, database) = (
        options.get_username().to_owned(),
        options.get_database().map(str::to_owned),
    );
    let version = tenant_management::migrate_catalog(options)
        .await
        .map_err(|error| failure(&error, &user, database.as_deref().unwrap_or(&user)))?;
    print(&format!("The catalog's schema is up to date: version {version}."))
}

/// What went wrong, and for a database that is not there, how to make it.
fn failure(error: &MigrateError, user: &str, database: &str) -> Failure {
    let MigrateError::Sql(cause) = error else {
        return Failure::operation(error);
    };
    let missing = cause
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .is_some_and(|code| code == NO_SUCH_DATABASE);
    if missing {
        return Failure::operation(format_args!(
            "the catalog's database does not exist. Make it on that server, as an administrator:\n  \
             create database \"{database}\" owner \"{user}\";\n  \
             revoke connect on database \"{database}\" from public;"
        ));
    }
    let cause = cause
        .source()
        .map_or_else(|| cause.to_string(), |root| format!("{cause}: {root}"));
    Failure::operation(format_args!("{error}: {cause}"))
}
