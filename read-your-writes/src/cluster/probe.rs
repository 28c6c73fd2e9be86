//! One look at a server: what it is, and how far it has got. On a connection of its own.

use std::time::Duration;

use sqlx::{ConnectOptions, Connection, FromRow, PgConnection, postgres::PgConnectOptions};

use crate::{LogGeometry, Lsn, Mode, Timeline};

/// How long opening a probe's connection may take: many times a probe's own limit, since a server that is busy takes tens of
/// milliseconds to start a session. Nothing waits for it but the next probe of the same node.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// Asked once on each connection. Amazon Aurora answers to the functions for places in the log with an error, or with numbers
/// that say nothing about its replicas.
const IDENTITY: &str = "
    select
        (select system_identifier from pg_control_system()) as system_identifier,
        pg_size_bytes(current_setting('wal_segment_size')) as segment_bytes,
        pg_size_bytes(current_setting('wal_block_size')) as page_bytes,
        version() ilike '%aurora%' or exists (select from pg_proc where proname = 'aurora_version') as aurora";

/// Asked at each probe. `pg_last_wal_replay_lsn()` stays a number after a promotion, and is null after a restart: only
/// together with `pg_is_in_recovery()` does it mean anything. The timeline of a primary is in the name of the file that it
/// writes; that of a standby is what its receiver has received, and without a receiver that of its last restart point.
const STATUS: &str = "
    select
        recovering.so as in_recovery,
        case when recovering.so then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end::text as lsn,
        case
            when not recovering.so then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
            else lpad(to_hex(coalesce(receiver.received_tli, (pg_control_checkpoint()).timeline_id)), 8, '0')
        end as timeline,
        coalesce(receiver.status = 'streaming', false) as receiving
    from (select pg_is_in_recovery() as so) as recovering
    left join pg_stat_wal_receiver as receiver on true";

/// Asked at each probe where places in the log are of no use.
const STATUS_WITHOUT_LOG: &str = "
    select pg_is_in_recovery() as in_recovery, null::text as lsn, null::text as timeline, true as receiving";

/// What does not change as long as a connection lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) system: i64,
    pub(super) log: LogGeometry,
    /// Its places in the log say nothing.
    pub(super) aurora: bool,
}

/// What a server has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) identity: Identity,
    pub(super) in_recovery: bool,
    /// Insert position of a primary, replayed position of a standby.
    pub(super) lsn: Option<Lsn>,
    pub(super) timeline: Option<Timeline>,
    /// Whether a standby's receiver is streaming.
    pub(super) receiving: bool,
}

/// Why a probe has failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    #[error("it did not answer within {0:?}")]
    Timeout(Duration),
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
    #[error("it answered with something that is not understood")]
    NotUnderstood,
    #[error(
        "it is an Aurora server, whose places in the log say nothing about its replicas: set the mode of reads to \"window\""
    )]
    NoUsableLog,
}

#[derive(FromRow)]
struct IdentityRow {
    system_identifier: i64,
    segment_bytes: i64,
    page_bytes: i64,
    aurora: bool,
}

#[derive(FromRow)]
struct StatusRow {
    in_recovery: bool,
    lsn: Option<String>,
    timeline: Option<String>,
    receiving: bool,
}

/// Probes one node.
#[derive(Debug)]
pub(super) struct Prober {
    options: PgConnectOptions,
    mode: Mode,
    limit: Duration,
    open: Option<(PgConnection, Identity)>,
}

impl Prober {
    pub(super) fn new(options: PgConnectOptions, mode: Mode, limit: Duration) -> Self {
        let options = options
            .application_name("tenantry/probe")
            .disable_statement_logging();
        Self {
            options,
            mode,
            limit,
            open: None,
        }
    }

    /// One probe. A connection that has failed is not used again.
    pub(super) async fn probe(&mut self) -> Result<Status, ProbeError> {
        let (mut connection, identity) = match self.open.take() {
            Some(open) => open,
            None => {
                let opening = tokio::time::timeout(CONNECT_LIMIT.max(self.limit), self.connect());
                opening.await.unwrap_or(Err(ProbeError::Timeout(CONNECT_LIMIT)))?
            }
        };
        let asking = tokio::time::timeout(self.limit, self.ask(&mut connection, identity));
        let status = asking.await.unwrap_or(Err(ProbeError::Timeout(self.limit)))?;
        self.open = Some((connection, identity));
        Ok(status)
    }

    async fn connect(&self) -> Result<(PgConnection, Identity), ProbeError> {
        let mut connection = self.options.connect().await?;
        let row = sqlx::raw_sql(IDENTITY).fetch_one(&mut connection).await?;
        let row = IdentityRow::from_row(&row)?;
        if row.aurora && self.mode == Mode::Lsn {
            let _ = connection.close().await;
            return Err(ProbeError::NoUsableLog);
        }
        let bytes = |bytes: i64| u64::try_from(bytes).ok().filter(|bytes| *bytes > 0);
        let identity = Identity {
            system: row.system_identifier,
            log: LogGeometry {
                page_bytes: bytes(row.page_bytes).ok_or(ProbeError::NotUnderstood)?,
                segment_bytes: bytes(row.segment_bytes).ok_or(ProbeError::NotUnderstood)?,
            },
            aurora: row.aurora,
        };
        Ok((connection, identity))
    }

    async fn ask(&self, connection: &mut PgConnection, identity: Identity) -> Result<Status, ProbeError> {
        let statement = if identity.aurora {
            STATUS_WITHOUT_LOG
        } else {
            STATUS
        };
        let row = sqlx::raw_sql(statement).fetch_one(connection).await?;
        let row = StatusRow::from_row(&row)?;
        let lsn = row.lsn.map(|lsn| lsn.parse()).transpose();
        let timeline = row.timeline.map(|timeline| timeline.parse()).transpose();
        Ok(Status {
            identity,
            in_recovery: row.in_recovery,
            lsn: lsn.map_err(|_| ProbeError::NotUnderstood)?,
            timeline: timeline.map_err(|_| ProbeError::NotUnderstood)?,
            receiving: row.receiving,
        })
    }

    /// Says farewell to the server.
    pub(super) async fn close(mut self) {
        if let Some((connection, _)) = self.open.take() {
            let _ = tokio::time::timeout(self.limit, connection.close()).await;
        }
    }
}
