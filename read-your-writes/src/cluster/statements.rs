//! Reads and commits for whoever has a pool, or the like, for each node.

use std::future::Future;

use sqlx::{PgConnection, Row};

use super::{Cluster, FallbackRefused, Reason};
use crate::{Fault, Lsn, Position, ReadLevel, ServedBy, Session, Timeline};

/// How far the log has got, and on which timeline: to be asked on a primary.
const POSITION: &str = "
    select pg_current_wal_insert_lsn()::text as lsn, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline";

/// Why a read has not succeeded.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No replica qualifies, and too many reads have fallen back to the primary. Answer `503` with `Retry-After`.
    #[error(transparent)]
    FallbackRefused(#[from] FallbackRefused),
    /// The read itself.
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
}

impl<N: Clone + Send + Sync + 'static> Cluster<N> {
    /// Reads on the node that the level and the session call for. When a replica cancels the read or fails, `read` runs once
    /// more, on the primary; so it must have no effects besides its result.
    ///
    /// # Errors
    ///
    /// What `read` fails with, or [`FallbackRefused`].
    pub async fn read<T, F, Fut>(
        &self,
        level: impl Into<ReadLevel>,
        session: &Session,
        read: F,
    ) -> Result<T, ReadError>
    where
        F: Fn(N) -> Fut,
        Fut: Future<Output = sqlx::Result<T>>,
    {
        let level = level.into();
        let chosen = self.choose(level, session).await?;
        let reading = read(chosen.payload().clone());
        if chosen.is_primary() {
            chosen.has_served(session);
            return Ok(reading.await?);
        }
        let reason = tokio::select! {
            answer = reading => match answer.as_ref().map_err(Fault::of_error) {
                Err(Fault::Conflict) => Reason::Cancelled,
                Err(fault) if fault.is_the_replicas() => Reason::ReplicaFault,
                _ => {
                    chosen.has_served(session);
                    return Ok(answer?);
                }
            },
            () = chosen.is_lost() => Reason::ReplicaFault,
        };
        drop(chosen);
        let primary = self.instead(level, reason).await?;
        let answer = read(primary.payload().clone()).await;
        primary.has_served(session);
        Ok(answer?)
    }

    /// To be called on the connection that has committed, when the commit has returned and before anything is answered: from
    /// then on reads of the session see it.
    ///
    /// When the place in the log cannot be asked for, the session's next read goes to the primary, and is told there.
    pub async fn committed(&self, connection: &mut PgConnection, session: &Session) {
        session.served(ServedBy::Primary, None);
        let place = if self.uses_log() {
            // The end of all logs: the next read finds out that nobody is there.
            let unknown = (Timeline::default(), Lsn::from_bytes(u64::MAX));
            place(connection).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "A commit's place in the log is not known; reads will ask the primary.");
                unknown
            })
        } else {
            (Timeline::default(), Lsn::default())
        };
        session.wrote(self.name(), Position::now(place.0, place.1));
    }
}

async fn place(connection: &mut PgConnection) -> sqlx::Result<(Timeline, Lsn)> {
    let row = sqlx::raw_sql(POSITION).fetch_one(connection).await?;
    let (timeline, lsn): (String, String) = (row.try_get("timeline")?, row.try_get("lsn")?);
    Ok((
        timeline
            .parse()
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        lsn.parse()
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
    ))
}
