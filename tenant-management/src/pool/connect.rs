//! Opening a tenant's connection, and the proof that it leads to the tenant's own database.

use std::time::Duration;

use secrecy::ExposeSecret;
use sqlx::{
    ConnectOptions, FromRow, PgConnection,
    postgres::{PgConnectOptions, PgRow},
};

use super::{
    connection::{Backend, Physical},
    error::AcquireError,
    settings::{NodeSettings, PoolLimits},
};
use crate::{ids::TenantUuid, route::Route, secret::KeyRing};

/// Asked once on each new connection, in one round trip: where it leads, and which process serves it. The tenant's mark is
/// a setting of the *database* (`setrole = 0`); a role can change its own settings, and so could fake it there.
const PROOF: &str = "
    select
        current_database()::text as database,
        current_user::text as role,
        pg_is_in_recovery() as in_recovery,
        pg_backend_pid() as pid,
        (extract(epoch from activity.backend_start) * 1000000)::int8 as started,
        (
            select substr(setting, length('tenantry.tenant=') + 1)
            from pg_db_role_setting as own, unnest(own.setconfig) as setting
            where own.setdatabase = here.oid and own.setrole = 0 and starts_with(setting, 'tenantry.tenant=')
        ) as tenant
    from pg_database as here, pg_stat_get_activity(pg_backend_pid()) as activity
    where here.datname = current_database()";

#[derive(FromRow)]
struct Proof {
    database: String,
    role: String,
    in_recovery: bool,
    pid: i32,
    started: i64,
    tenant: Option<String>,
}

/// A connection could not be opened.
pub(super) struct ConnectFailure {
    pub(super) error: AcquireError,
    pub(super) left: Left,
}

/// What a failed attempt has left on the server.
pub(super) enum Left {
    /// Nothing: the server itself refused, or was never reached.
    Nothing,
    /// Perhaps a process, which is not known.
    Unknown,
    /// A connection that must not be used.
    Connection(Box<Physical>),
}

/// Opens a connection for a route within the time limit, and proves it.
pub(super) async fn connect(
    settings: &NodeSettings,
    keys: &KeyRing,
    route: &Route,
) -> Result<Physical, ConnectFailure> {
    let limit = settings.limits.connect_timeout;
    tokio::time::timeout(limit, connect_and_prove(settings, keys, route))
        .await
        .unwrap_or(Err(ConnectFailure {
            error: AcquireError::ConnectTimeout { limit },
            left: Left::Unknown,
        }))
}

async fn connect_and_prove(
    settings: &NodeSettings,
    keys: &KeyRing,
    route: &Route,
) -> Result<Physical, ConnectFailure> {
    let password = keys.open_text(&Route::secret_owner(route.uuid), &route.password);
    let password = password.map_err(|error| ConnectFailure {
        error: AcquireError::Password(error.into()),
        left: Left::Nothing,
    })?;
    let name = route.uuid.physical_name();
    let mut connection = without_logging(settings.admin.clone())
        .username(&name)
        .database(&name)
        .password(password.expose_secret())
        .application_name(&format!("tenantry/{}", route.tenant))
        .options(session_settings(&settings.limits))
        .connect()
        .await
        .map_err(failed_to_open)?;
    let proof = sqlx::raw_sql(PROOF).fetch_one(&mut connection).await;
    let proof = proof
        .and_then(|row: PgRow| Proof::from_row(&row))
        .map_err(|error| ConnectFailure {
            error: AcquireError::Unreachable(error.into()),
            left: Left::Unknown,
        })?;
    judge(connection, &proof, route.uuid)
}

fn judge(connection: PgConnection, proof: &Proof, uuid: TenantUuid) -> Result<Physical, ConnectFailure> {
    let name = uuid.physical_name();
    let marked = proof
        .tenant
        .as_deref()
        .is_some_and(|tenant| tenant == uuid.to_string());
    let proved = proof.database == name && proof.role == name && marked;
    let backend = Backend {
        pid: proof.pid,
        started: proof.started,
    };
    let physical = Physical {
        connection,
        backend,
        reused: false,
        opened_on_standby: proof.in_recovery,
    };
    if proved {
        return Ok(physical);
    }
    tracing::error!(
        tenant.uuid = %uuid,
        db.name = proof.database,
        db.user = proof.role,
        db.tenant = proof.tenant,
        "A connection led to a database that is not this tenant's; it is closed."
    );
    Err(ConnectFailure {
        error: AcquireError::WrongDatabase,
        left: Left::Connection(Box::new(physical)),
    })
}

fn failed_to_open(error: sqlx::Error) -> ConnectFailure {
    // A server that refuses does so before the session shows anywhere.
    let left = match &error {
        sqlx::Error::Database(_) => Left::Nothing,
        sqlx::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => Left::Nothing,
        _ => Left::Unknown,
    };
    ConnectFailure {
        error: AcquireError::from_connecting(error),
        left,
    }
}

/// What every tenant's session starts with. It travels in the start-up message and costs no round trip.
fn session_settings(limits: &PoolLimits) -> [(&'static str, String); 3] {
    let milliseconds = |limit: Duration| limit.as_millis().to_string();
    [
        ("default_transaction_read_only", "on".to_owned()),
        ("statement_timeout", milliseconds(limits.statement_timeout)),
        (
            "idle_in_transaction_session_timeout",
            milliseconds(limits.idle_in_transaction_timeout),
        ),
    ]
}

/// Statements and their durations are not logged by the driver.
pub(super) fn without_logging(options: PgConnectOptions) -> PgConnectOptions {
    options.disable_statement_logging()
}
