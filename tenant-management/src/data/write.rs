//! Writes: transactions that are committed before anybody is told that they are.

use std::future::Future;

use futures::TryStreamExt;
use read_your_writes::{Lsn, Position, ServedBy, Timeline};
use sqlx::{Either, Executor, Row, postgres::PgRow};

use super::{
    DataError, TenantDb,
    lent::{Lent, lend},
};
use crate::pool::{Policy, TenantConnection, execute_on_connection};

/// Connections are read-only by default, so that a write has to say that it is one.
const BEGIN: &str = "begin read write";

/// The first statement fails when the transaction has: the server would answer `commit` alone with a rollback and not call
/// it an error. It also says whether anything was written.
///
/// The last one runs when the commit has returned, in a transaction of its own, and tells how far the log has got by then.
/// Within the transaction that would be too low, and so would `pg_current_wal_lsn()` be with `synchronous_commit = off`. All
/// go in one round trip.
const COMMIT: &str = "
    select pg_current_xact_id_if_assigned() is not null as wrote;
    commit;
    select pg_current_wal_insert_lsn()::text as lsn, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline";

/// The same where places in the log mean nothing.
const COMMIT_WITHOUT_LOG: &str = "select pg_current_xact_id_if_assigned() is not null as wrote; commit";

/// A transaction that writes. `&mut` of it is a sqlx `Executor`. Savepoints can be used inside of it.
#[derive(Debug)]
pub struct WriteTransaction {
    connection: TenantConnection,
}

/// A commit that the server has confirmed: what the answer to a write is made from. There is no other way to have one than
/// [`WriteTransaction::commit`], which asks for the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
struct Committed {
    /// How far the log had got, if the transaction has changed anything.
    position: Option<Position>,
}

impl WriteTransaction {
    /// Statements that were sent, the one that opened the transaction included.
    pub fn statements(&self) -> u64 {
        self.connection.statements()
    }

    /// The server's process id of this connection, for log lines and tests.
    pub fn backend_pid(&self) -> i32 {
        self.connection.backend_pid()
    }

    pub(super) fn connection(&mut self) -> &mut TenantConnection {
        &mut self.connection
    }

    async fn commit(mut self, uses_log: bool) -> Result<Committed, DataError> {
        self.connection.set_policy(Policy::Anything);
        if self.connection.watch().has_failed_transaction() {
            self.roll_back().await;
            return Err(DataError::TransactionFailed);
        }
        let statements = if uses_log { COMMIT } else { COMMIT_WITHOUT_LOG };
        let mut answers = self.connection.fetch_many(sqlx::raw_sql(statements));
        let mut ending = Ending::default();
        loop {
            match answers.try_next().await {
                Ok(Some(Either::Right(row))) => ending.take(&row)?,
                Ok(Some(Either::Left(_))) => ending.statements += 1,
                Ok(None) => break,
                // The commit has been confirmed; what is not known is how far the log has got.
                Err(error) if ending.is_committed() => {
                    tracing::warn!(%error, "A commit's place in the log is not known; reads will ask the primary.");
                    break;
                }
                Err(error) => return Err(DataError::from_commit(error)),
            }
        }
        drop(answers);
        Ok(Committed {
            position: ending.position(uses_log),
        })
    }

    /// A transaction that cannot be rolled back takes its connection with it, which comes to the same.
    async fn roll_back(mut self) {
        self.connection.set_policy(Policy::Anything);
        let _ = self.connection.execute("rollback").await;
    }
}

/// What the answers to a commit have said so far.
#[derive(Debug, Default)]
struct Ending {
    /// Statements that have been answered to their end.
    statements: u32,
    wrote: bool,
    place: Option<(Timeline, Lsn)>,
}

impl Ending {
    fn take(&mut self, row: &PgRow) -> Result<(), DataError> {
        if self.statements == 0 {
            self.wrote = row.try_get("wrote")?;
            return Ok(());
        }
        let (lsn, timeline): (String, String) = (row.try_get("lsn")?, row.try_get("timeline")?);
        self.place = timeline.parse().ok().zip(lsn.parse().ok());
        Ok(())
    }

    fn is_committed(&self) -> bool {
        self.statements >= 2
    }

    /// A place that is not known counts as the end of all logs: reads go to the primary, which puts it right.
    fn position(&self, uses_log: bool) -> Option<Position> {
        let unknown = if uses_log {
            Lsn::from_bytes(u64::MAX)
        } else {
            Lsn::default()
        };
        let (timeline, lsn) = self.place.unwrap_or((Timeline::default(), unknown));
        self.wrote.then(|| Position::now(timeline, lsn))
    }
}

execute_on_connection!(WriteTransaction);

impl TenantDb {
    /// Writes, in one transaction. Committed when `write` answers `Ok`, and only then is this `Ok`; rolled back when it
    /// answers `Err`, and also when the future is dropped.
    ///
    /// `write` runs once. It must not ask for a second connection of the same tenant while it runs, see [`Self::read`].
    ///
    /// # Errors
    ///
    /// What `write` fails with, or a [`DataError`] when no connection can be had or the commit fails. After
    /// [`DataError::CommitUnknown`] the write may have happened.
    pub async fn write<T, E, F, Fut>(&self, write: F) -> Result<T, E>
    where
        F: FnOnce(Lent<WriteTransaction>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<DataError>,
    {
        let (lent, mut back) = lend(self.begin().await?);
        self.session.served(ServedBy::Primary, None);
        let result = write(lent).await;
        // A transaction that the closure has kept can only end in a rollback, whenever it is dropped.
        let transaction = back.try_recv().ok();
        match (result, transaction) {
            (Ok(value), Some(transaction)) => {
                let Committed { position } = transaction.commit(self.place.uses_log()).await?;
                if let Some(position) = position {
                    self.session.wrote(self.place.cluster(), position);
                }
                Ok(value)
            }
            (Ok(_), None) => Err(DataError::TransactionFailed.into()),
            (Err(error), Some(transaction)) => {
                transaction.roll_back().await;
                Err(error)
            }
            (Err(error), None) => Err(error),
        }
    }

    async fn begin(&self) -> Result<WriteTransaction, DataError> {
        let mut connection = self.writing().await?;
        let mut begun = connection.execute(BEGIN).await;
        if begun.is_err() && connection.died_while_idle() {
            drop(connection);
            connection = self.writing().await?;
            begun = connection.execute(BEGIN).await;
        }
        begun?;
        connection.set_policy(Policy::Write);
        Ok(WriteTransaction { connection })
    }

    async fn writing(&self) -> Result<TenantConnection, DataError> {
        let mut connection = self.place.for_write().acquire(&self.route).await?;
        if connection.is_on_primary().await? {
            Ok(connection)
        } else {
            // It has been demoted, or is said to be the primary before it has been promoted.
            Err(DataError::Unavailable(None))
        }
    }
}
