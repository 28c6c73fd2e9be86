//! `tenantry migrate`: the catalog's schema, before instances start.
//!
//! An instance does the same when it starts. As a command of its own it can stand before a roll-out, which then stops here
//! and not with new instances that do not come up.

use clap::Args;
use sqlx::postgres::PgConnectOptions;
use tenant_management::MigrateError;

use super::{config::ConfigFile, failure::Failure, output::print};
use crate::serve::settings;

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
    let config = arguments.config.load()?;
    let options = settings::catalog(&config.catalog).map_err(Failure::usage)?;
    let version = migrate(options).await?;
    print(&format!("The catalog's schema is up to date: version {version}."))
}

async fn migrate(options: PgConnectOptions) -> Result<i32, Failure> {
    let user = options.get_username().to_owned();
    let database = options.get_database().unwrap_or(&user).to_owned();
    tenant_management::migrate_catalog(options)
        .await
        .map_err(|error| failure(&error, &user, &database))
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
    Failure::operation(format_args!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use sandbox::Cluster;
    use sqlx::{Connection, Executor, PgConnection};

    use super::*;

    #[tokio::test]
    async fn a_database_that_is_missing_is_said_and_many_may_migrate_at_once() {
        // given a server without the catalog's database
        let cluster = Cluster::builder().start().await.unwrap();
        let options = |database| cluster.primary().connect_options(database);

        // then it says how to make it
        let refusal = migrate(options("catalog")).await.unwrap_err().to_string();
        assert!(
            refusal.contains("create database \"catalog\" owner \"postgres\";"),
            "{refusal}"
        );

        // when it is there
        let mut connection = PgConnection::connect_with(&options("postgres")).await.unwrap();
        connection.execute("create database catalog").await.unwrap();

        // then any number bring it to the same version, and so does another one later
        let first = futures::future::join_all((0..8).map(|_| migrate(options("catalog")))).await;
        let versions: Vec<i32> = first.into_iter().map(Result::unwrap).collect();
        assert_eq!(versions, vec![versions[0]; 8]);
        assert!(versions[0] > 0);
        assert_eq!(migrate(options("catalog")).await.unwrap(), versions[0]);
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_said() {
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(1)
            .username("nobody");
        let refusal = migrate(options).await.unwrap_err().to_string();
        assert!(refusal.contains("could not be reached"), "{refusal}");
        assert!(refusal.contains("refused"), "{refusal}");
    }
}
