//! What the control plane does on a cluster's primary as its administrator: roles, databases, grants.
//!
//! Every statement can be repeated. Refuses to know the catalog. Names in statements come from UUIDs and fixed words; the
//! only text that somebody typed is a tenant's name, in a comment, quoted by the server.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::{
    AssertSqlSafe, Connection, Executor, PgConnection, PgPool, Row,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::steps::Step;
use crate::{ids::TenantUuid, secret::scram_verifier, tenant_id::TenantId};

/// The group role that owns what all tenants' roles may do.
pub(crate) const GROUP_ROLE: &str = "tenantry_tenant";
/// The database-level setting that says whose a database is.
pub(crate) const MARKER: &str = "tenantry.tenant";
/// Databases that are made at the same time on one cluster: copying is bound by the disk, and each needs a connection of
/// the administrator and one to verify.
pub(crate) const PARALLEL_CREATIONS: usize = 2;
/// Connections of the administrator: for each creation one that makes the role while another copies the template.
const ADMINISTRATIVE: u32 = 2 * PARALLEL_CREATIONS as u32;
/// Connections of the cluster's budget that provisioning may use: the administrative ones, and a verifying one for each
/// creation.
pub(crate) const RESERVED_CONNECTIONS: u32 = ADMINISTRATIVE + PARALLEL_CREATIONS as u32;
/// How many creations may wait for their turn on one cluster before further ones are refused.
const QUEUE: usize = 256;
/// How long one statement may take. A copy of a template takes tens of milliseconds, on a loaded disk seconds.
const STATEMENT_LIMIT: &str = "60s";
/// How long to wait for a connection to the cluster.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// SQLSTATE: a role of this name exists.
const DUPLICATE_OBJECT: &str = "42710";
/// SQLSTATE: a database of this name exists.
const DUPLICATE_DATABASE: &str = "42P04";
/// SQLSTATE: two sessions did the same at the same moment.
const UNIQUE_VIOLATION: &str = "23505";

/// Why a step on a cluster did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// The server cannot be reached, or refused a statement.
    #[error("{what}: {}", summary(.source))]
    Sql { what: &'static str, source: sqlx::Error },
    /// The database exists and is not what it should be.
    #[error("verification failed: {0}")]
    NotAsItShouldBe(String),
    /// The template could not be migrated.
    #[error("the template could not be made: {0}")]
    Template(#[from] crate::migrate::MigrateError),
    /// Too many databases are being made on this cluster.
    #[error("more than {QUEUE} databases are waiting to be made on this cluster")]
    QueueFull,
}

/// The server's message without the statement or anything that was bound to it.
fn summary(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(database) => {
            format!(
                "{} (SQLSTATE {})",
                database.message(),
                database.code().unwrap_or_default()
            )
        }
        other => other.to_string(),
    }
}

pub(super) fn failed(what: &'static str) -> impl FnOnce(sqlx::Error) -> ServerError {
    move |source| ServerError::Sql { what, source }
}

/// What is known about a tenant database that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blueprint<'b> {
    pub(crate) uuid: TenantUuid,
    pub(crate) password: &'b SecretString,
    pub(crate) template: &'b str,
    /// Whose it will be. A spare has yet to find out.
    pub(crate) tenant: Option<&'b TenantId>,
}

/// The administrator of one cluster's primary.
#[derive(Debug)]
pub(crate) struct ServerAdmin {
    pub(super) options: PgConnectOptions,
    pool: PgPool,
    turns: Semaphore,
    queue: Semaphore,
}

/// The right to make a database now.
pub(crate) struct Turn<'a> {
    _place: SemaphorePermit<'a>,
    _turn: SemaphorePermit<'a>,
}

impl ServerAdmin {
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        let options = options
            .application_name("tenantry/provisioning")
            .options([("statement_timeout", STATEMENT_LIMIT), ("lock_timeout", "10s")]);
        let pool = PgPoolOptions::new()
            .max_connections(ADMINISTRATIVE)
            .acquire_timeout(CONNECT_LIMIT)
            .idle_timeout(Duration::from_secs(10))
            .connect_lazy_with(options.clone());
        Self {
            options,
            pool,
            turns: Semaphore::new(PARALLEL_CREATIONS),
            queue: Semaphore::new(QUEUE),
        }
    }

    /// Waits for a turn to make a database: first come, first served.
    pub(crate) async fn turn(&self) -> Result<Turn<'_>, ServerError> {
        let place = self.queue.try_acquire().map_err(|_| ServerError::QueueFull)?;
        let turn = self.turns.acquire().await.expect("the semaphore is never closed");
        Ok(Turn {
            _place: place,
            _turn: turn,
        })
    }

    pub(super) async fn run(&self, what: &'static str, statement: String) -> Result<(), ServerError> {
        self.pool
            .execute(AssertSqlSafe(statement))
            .await
            .map(drop)
            .map_err(failed(what))
    }

    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Carries out a step that touches the cluster. Tenants and spares go through the same.
    pub(crate) async fn carry_out(&self, step: Step, blueprint: Blueprint<'_>) -> Result<(), ServerError> {
        match step {
            Step::CreateRole => self.create_role(blueprint).await,
            Step::CreateDatabase => self.create_database(blueprint).await,
            Step::Assign => self.assign(blueprint).await,
            Step::Verify => self.verify(blueprint).await,
            Step::Label => self.label(blueprint).await,
            Step::Record => Ok(()),
        }
    }

    /// Step: the role. One that is there already is ours, since its name is a UUID of ours; it gets the password again.
    async fn create_role(&self, blueprint: Blueprint<'_>) -> Result<(), ServerError> {
        let name = blueprint.uuid.physical_name();
        let verifier = scram_verifier(blueprint.password);
        let attributes = "login nosuperuser nocreatedb nocreaterole noreplication nobypassrls";
        let create = format!("create role {name} {attributes} password '{verifier}' in role {GROUP_ROLE}");
        match self.run("the role could not be created", create).await {
            Err(error) if is(&error, &[DUPLICATE_OBJECT, UNIQUE_VIOLATION]) => {
                // Only a superuser may so much as mention the other attributes; they are verified.
                let alter = format!("alter role {name} login password '{verifier}'");
                self.run("the role could not be altered", alter).await?;
                self.run(
                    "the role could not join its group",
                    format!("grant {GROUP_ROLE} to {name}"),
                )
                .await
            }
            outcome => outcome,
        }
    }

    /// Step: the database. `CREATE DATABASE` happens whole or not at all; only a `DROP DATABASE` that was interrupted leaves
    /// half a database, which PostgreSQL marks, and which is dropped and made again.
    async fn create_database(&self, blueprint: Blueprint<'_>) -> Result<(), ServerError> {
        let name = blueprint.uuid.physical_name();
        let create = format!("create database {name} template {}", blueprint.template);
        match self
            .run("the database could not be created", create.clone())
            .await
        {
            Err(error) if is(&error, &[DUPLICATE_DATABASE, UNIQUE_VIOLATION]) => {
                if self.is_half_dropped(&name).await? {
                    self.run(
                        "half a database could not be dropped",
                        format!("drop database {name}"),
                    )
                    .await?;
                    return self.run("the database could not be created", create).await;
                }
                Ok(())
            }
            outcome => outcome,
        }
    }

    async fn is_half_dropped(&self, database: &str) -> Result<bool, ServerError> {
        // -2 is PostgreSQL's mark for a database whose DROP was interrupted (commit c66a7d75e, in 15.4 and later).
        let half: Option<bool> =
            sqlx::query_scalar("select datconnlimit = -2 from pg_database where datname = $1")
                .bind(database)
                .fetch_optional(&self.pool)
                .await
                .map_err(failed("the database could not be inspected"))?;
        Ok(half.unwrap_or(false))
    }

    /// Step: nobody but the tenant's role may connect, and the database says whose it is. One message with several statements
    /// is one transaction: the server waits for its disk once.
    async fn assign(&self, blueprint: Blueprint<'_>) -> Result<(), ServerError> {
        let name = blueprint.uuid.physical_name();
        let statements = format!(
            "revoke all on database {name} from public; grant connect on database {name} to {name}; \
             alter database {name} set {MARKER} = '{}'; {}",
            blueprint.uuid,
            comment(blueprint).unwrap_or_default()
        );
        let assigned = sqlx::raw_sql(AssertSqlSafe(statements)).execute(&self.pool).await;
        assigned
            .map(drop)
            .map_err(failed("the database could not be given to its tenant"))
    }

    /// Step: the tenant's public name, for people.
    async fn label(&self, blueprint: Blueprint<'_>) -> Result<(), ServerError> {
        match comment(blueprint) {
            Some(statement) => self.run("the database could not be labelled", statement).await,
            None => Ok(()),
        }
    }

    /// Step: a connection as the tenant's role arrives where it should and can do no more than it should.
    async fn verify(&self, blueprint: Blueprint<'_>) -> Result<(), ServerError> {
        let name = blueprint.uuid.physical_name();
        let options = self
            .options
            .clone()
            .username(&name)
            .password(blueprint.password.expose_secret())
            .database(&name)
            .application_name("tenantry/verification");
        let connect = tokio::time::timeout(CONNECT_LIMIT, PgConnection::connect_with(&options));
        let mut connection = connect
            .await
            .unwrap_or(Err(sqlx::Error::PoolTimedOut))
            .map_err(failed("the tenant's role cannot connect to its database"))?;
        let findings = findings(&mut connection, blueprint.uuid).await;
        let closed = connection.close().await;
        let findings = findings.map_err(failed("the new database could not be verified"))?;
        closed.map_err(failed("the verifying connection could not be closed"))?;
        if findings.is_empty() {
            Ok(())
        } else {
            Err(ServerError::NotAsItShouldBe(findings.join("; ")))
        }
    }

    /// Names of all databases and roles on the cluster that have the form of a tenant's.
    pub(crate) async fn inventory(&self) -> Result<Inventory, ServerError> {
        let list = |names: Vec<String>| {
            names
                .iter()
                .filter_map(|name| TenantUuid::from_physical_name(name))
                .collect()
        };
        let inspect = "the cluster could not be inspected";
        let databases =
            sqlx::query_scalar("select datname::text from pg_database where datname like 't\\_%'")
                .fetch_all(&self.pool)
                .await
                .map_err(failed(inspect))?;
        let roles = sqlx::query_scalar("select rolname::text from pg_roles where rolname like 't\\_%'")
            .fetch_all(&self.pool)
            .await
            .map_err(failed(inspect))?;
        Ok(Inventory {
            databases: list(databases),
            roles: list(roles),
        })
    }
}

fn comment(blueprint: Blueprint<'_>) -> Option<String> {
    // The grammar of names has no quote and no backslash.
    let name = blueprint.uuid.physical_name();
    blueprint
        .tenant
        .map(|tenant| format!("comment on database {name} is '{tenant}'"))
}

/// Tenants' databases and roles that a cluster has, by identity.
pub(crate) struct Inventory {
    pub(crate) databases: Vec<TenantUuid>,
    pub(crate) roles: Vec<TenantUuid>,
}

pub(super) fn is(error: &ServerError, codes: &[&str]) -> bool {
    let ServerError::Sql {
        source: sqlx::Error::Database(database),
        ..
    } = error
    else {
        return false;
    };
    database.code().is_some_and(|code| codes.contains(&code.as_ref()))
}

/// What is wrong with a new database as its role sees it. In one message: a statement that is used once is not worth
/// preparing, on a connection whose caches are empty.
async fn findings(connection: &mut PgConnection, uuid: TenantUuid) -> sqlx::Result<Vec<String>> {
    let name = uuid.physical_name();
    let checks = format!(
        r#"
        select finding
        from (values
            (current_database() = '{name}', 'another database answered'),
            (current_user = '{name}', 'another role answered'),
            (exists (
                select from pg_db_role_setting
                where setdatabase = (select oid from pg_database where datname = current_database())
                    and setrole = 0 and '{MARKER}={uuid}' = any (setconfig)
            ), 'the database is not marked as this tenant''s'),
            (has_schema_privilege('public', 'usage'), 'the role cannot use its tables'),
            (not has_schema_privilege('public', 'create'), 'the role can create tables'),
            (not has_database_privilege(current_database(), 'create'), 'the role can create schemas'),
            (not has_database_privilege(current_database(), 'temporary'), 'the role can create temporary tables'),
            (not (select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls
                  from pg_roles where rolname = current_user), 'the role has attributes it must not have')
        ) as checks (ok, finding)
        where ok is not true
        "#
    );
    let found = sqlx::raw_sql(AssertSqlSafe(checks)).fetch_all(connection).await?;
    found.iter().map(|row| row.try_get("finding")).collect()
}
