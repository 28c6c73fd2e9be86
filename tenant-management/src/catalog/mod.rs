//! The catalog: the control-plane database, and all SQL that touches it.
//!
//! Each file owns the statements about one kind of thing. Refuses to know what a cluster's servers do and what instances
//! make of what they read.

pub(crate) mod api_keys;
pub(crate) mod audit;
pub(crate) mod changes;
pub(crate) mod clusters;
pub(crate) mod digest;
pub(crate) mod idempotency;
pub(crate) mod instances;
pub(crate) mod invitations;
pub(crate) mod login_attempts;
pub(crate) mod operations;
pub(crate) mod operator_tokens;
pub(crate) mod revision;
pub(crate) mod sessions;
pub(crate) mod spares;
pub(crate) mod tenants;
pub(crate) mod users;
pub(crate) mod word;

use std::{sync::Arc, time::Duration};

use sqlx::{
    Connection, PgConnection, PgPool, PgTransaction, Postgres,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::sync::watch;

use crate::{
    ids::Revision,
    migrate::{self, MigrateError},
    secret::{KeyRing, OpenError},
};

/// How long a command waits for a connection to the catalog before it says that the catalog is unreachable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// How connections to the catalog are named on its server.
const APPLICATION: &str = "tenantry/catalog";

/// Brings the schema of the catalog up to date and says its version. [`crate::Tenancy::start`] does so too; this is for who
/// wants it done before. Safe to call from many processes at once, and again.
///
/// # Errors
///
/// When the database cannot be reached (it has to exist), a migration fails, or another process takes too long.
pub async fn migrate_catalog(options: PgConnectOptions) -> Result<i32, MigrateError> {
    let mut connection = PgConnection::connect_with(&options.application_name(APPLICATION)).await?;
    let migrated = migrate::migrate_catalog(&mut connection).await;
    connection.close().await?;
    migrated
}

/// Access to the catalog. Clones share their connections.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    pool: PgPool,
    keys: KeyRing,
    committed: Arc<watch::Sender<Revision>>,
}

/// Why the catalog did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// It cannot be reached, or is starting, stopping or full. Trying again later can help.
    #[error("the catalog cannot be reached at the moment")]
    Unreachable(#[source] sqlx::Error),
    /// It refused a statement: a fault of this program or of the catalog's schema.
    #[error("the catalog refused a statement")]
    Statement(#[source] sqlx::Error),
    /// A sealed value does not open.
    #[error(transparent)]
    Sealed(#[from] OpenError),
    /// A row says something that this program does not understand.
    #[error("the catalog holds a value that this version does not understand: {0}")]
    NotUnderstood(&'static str),
}

impl From<sqlx::Error> for CatalogError {
    fn from(error: sqlx::Error) -> Self {
        if is_unreachable(&error) {
            Self::Unreachable(error)
        } else {
            Self::Statement(error)
        }
    }
}

impl CatalogError {
    /// It has not answered for so long that it is given up.
    pub(crate) fn silent() -> Self {
        Self::Unreachable(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))
    }
}

/// Whether an error says that a server cannot be reached at the moment: no connection, or one of the SQLSTATE classes for
/// connections (08), resources (53) and shutdown or start (57P0x).
pub(crate) fn is_unreachable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(database) => database
            .code()
            .is_some_and(|code| code.starts_with("08") || code.starts_with("53") || code.starts_with("57P")),
        _ => false,
    }
}

impl Catalog {
    /// Connects and brings the schema up to date.
    pub(crate) async fn open(
        options: PgConnectOptions,
        max_connections: u32,
        keys: KeyRing,
    ) -> Result<Self, MigrateError> {
        let options = options.application_name(APPLICATION);
        migrate_catalog(options.clone()).await?;
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options);
        Ok(Self {
            pool,
            keys,
            committed: Arc::default(),
        })
    }

    async fn connection(&self) -> Result<PoolConnection<Postgres>, CatalogError> {
        Ok(self.pool.acquire().await?)
    }

    async fn begin(&self) -> Result<PgTransaction<'static>, CatalogError> {
        Ok(self.pool.begin().await?)
    }

    /// Whether the catalog answers.
    pub(crate) async fn ping(&self) -> Result<(), CatalogError> {
        Ok(self.connection().await?.ping().await?)
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}
