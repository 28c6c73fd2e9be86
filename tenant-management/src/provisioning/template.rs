//! The template of a cluster: an already migrated database that nobody can connect to, so that copying it never fails
//! because somebody is looking at it.
//!
//! Its name carries the migrations it was made from. A template made from others is never taken by mistake, and two
//! versions of the service can run side by side.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::server::{GROUP_ROLE, ServerAdmin, ServerError, failed, is};
use crate::migrate::TenantMigrations;

/// The template while it is being made; a remainder of an interrupted attempt is dropped.
const WORKSHOP: &str = "tenantry_template_workshop";
/// Key of the advisory lock under which a cluster is prepared: the bytes of `template`.
const LOCK: i64 = 0x7465_6d70_6c61_7465;
/// SQLSTATE: a role of this name exists.
const DUPLICATE_OBJECT: &str = "42710";
/// SQLSTATE: two sessions did the same at the same moment.
const UNIQUE_VIOLATION: &str = "23505";

/// The name of the template made from these migrations.
pub(crate) fn template_name(migrations: &TenantMigrations) -> String {
    format!(
        "tenantry_template_v{}_{:08x}",
        migrations.version(),
        migrations.checksum()
    )
}

/// Makes a cluster ready for tenants: the group role, closed doors, the template. Run again, it changes nothing.
pub(crate) async fn prepare_cluster(
    admin: &ServerAdmin,
    migrations: &TenantMigrations,
) -> Result<(), ServerError> {
    // A connection of its own holds the lock, and gives it back by closing whatever happens.
    let mut lock = PgConnection::connect_with(&admin.options)
        .await
        .map_err(failed("the cluster cannot be reached"))?;
    sqlx::query("set statement_timeout = 0")
        .execute(&mut lock)
        .await
        .map_err(failed("the lock could not be taken"))?;
    loop {
        let taken: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)")
            .bind(LOCK)
            .fetch_one(&mut lock)
            .await
            .map_err(failed("the lock could not be taken"))?;
        if taken {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let outcome = prepare(admin, migrations).await;
    lock.close().await.ok();
    outcome
}

async fn prepare(admin: &ServerAdmin, migrations: &TenantMigrations) -> Result<(), ServerError> {
    let group = format!("create role {GROUP_ROLE} nologin");
    match admin.run("the group role could not be created", group).await {
        Err(error) if is(&error, &[DUPLICATE_OBJECT, UNIQUE_VIOLATION]) => {}
        outcome => outcome?,
    }
    close_doors(admin).await?;
    let name = template_name(migrations);
    if !exists(admin, &name).await? {
        make_template(admin, migrations, &name).await?;
        tracing::info!(
            template.name = name,
            "The template for new tenants' databases is ready."
        );
    }
    Ok(())
}

/// By default everybody may connect to every database. Tenants' roles may reach their own only, so PUBLIC loses that right
/// on each database of the cluster where it has it; administrators and owners keep theirs.
async fn close_doors(admin: &ServerAdmin) -> Result<(), ServerError> {
    let open: Vec<(String, bool)> = sqlx::query_as(
        r#"
        select datname::text, pg_has_role(datdba, 'usage')
        from pg_database
        where datallowconn and has_database_privilege($1, oid, 'connect')
        "#,
    )
    .bind(GROUP_ROLE)
    .fetch_all(admin.pool())
    .await
    .map_err(failed("the databases could not be listed"))?;
    for (database, ours) in open {
        if ours {
            let quoted = database.replace('"', "\"\"");
            let statement = format!("revoke all on database \"{quoted}\" from public");
            admin
                .run("a database could not be closed to tenants", statement)
                .await?;
        } else {
            tracing::warn!(
                db.name = database,
                "Tenants' roles can connect to a database that the administrator does not own. Have its owner run: revoke \
                 connect on database … from public."
            );
        }
    }
    Ok(())
}

async fn exists(admin: &ServerAdmin, name: &str) -> Result<bool, ServerError> {
    sqlx::query_scalar("select exists (select from pg_database where datname = $1 and not datallowconn)")
        .bind(name)
        .fetch_one(admin.pool())
        .await
        .map_err(failed("the template could not be looked for"))
}

async fn make_template(
    admin: &ServerAdmin,
    migrations: &TenantMigrations,
    name: &str,
) -> Result<(), ServerError> {
    let statement = format!("drop database if exists {WORKSHOP} with (force)");
    admin
        .run("an earlier attempt could not be removed", statement)
        .await?;
    let statement = format!("create database {WORKSHOP} template template0 encoding 'UTF8'");
    admin.run("the template could not be created", statement).await?;
    let statement = format!("revoke all on database {WORKSHOP} from public");
    admin.run("the template could not be closed", statement).await?;
    fill(admin, migrations).await?;
    // The last connection's server process may need a moment to end; the flags keep new ones out meanwhile.
    let statement = format!("alter database {WORKSHOP} with is_template true allow_connections false");
    admin.run("the template could not be closed", statement).await?;
    rename_when_left(admin, name).await
}

/// Rights and tables of every tenant's database.
async fn fill(admin: &ServerAdmin, migrations: &TenantMigrations) -> Result<(), ServerError> {
    let mut connection = PgConnection::connect_with(&admin.options.clone().database(WORKSHOP))
        .await
        .map_err(failed("the template cannot be reached"))?;
    let rights = format!(
        r#"
        create schema tenantry;
        revoke all on schema public from public;
        grant usage on schema public to {GROUP_ROLE};
        alter default privileges in schema public grant select, insert, update, delete on tables to {GROUP_ROLE};
        alter default privileges in schema public grant usage, select on sequences to {GROUP_ROLE};
        "#
    );
    let prepared = sqlx::raw_sql(AssertSqlSafe(rights))
        .execute(&mut connection)
        .await;
    prepared.map_err(failed("the template's rights could not be set"))?;
    migrations.run(&mut connection).await?;
    connection
        .close()
        .await
        .map_err(failed("the template could not be left"))
}

async fn rename_when_left(admin: &ServerAdmin, name: &str) -> Result<(), ServerError> {
    /// SQLSTATE: somebody is connected.
    const OBJECT_IN_USE: &str = "55006";
    let mut tries = 0;
    loop {
        let statement = format!("alter database {WORKSHOP} rename to {name}");
        match admin.run("the template could not be named", statement).await {
            Err(error) if is(&error, &[OBJECT_IN_USE]) && tries < 100 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            outcome => return outcome,
        }
    }
}
