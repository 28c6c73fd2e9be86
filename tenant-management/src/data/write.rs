//! Writes: transactions that are committed before anybody is told that they are.

use std::future::Future;

use futures::TryStreamExt;
use sqlx::{Either, Executor, Row};

use super::{
    DataError, TenantDb,
    lent::{Lent, lend},
};
use crate::pool::{Policy, TenantConnection, execute_on_connection};

/// Connections are read-only by default, so that a write has to say that it is one.
const BEGIN: &str = "begin read write";

/// The first statement fails when the transaction has: the server would answer `commit` alone with a rollback and not call
/// it an error. It also says whether anything was written. Both go in one round trip.
const COMMIT: &str = "select pg_current_xact_id_if_assigned() is not null as wrote; commit";

/// A transaction that writes. `&mut` of it is a sqlx `Executor`. Savepoints can be used inside of it.
#[derive(Debug)]
pub struct WriteTransaction {
    connection: TenantConnection,
}

/// A commit that the server has confirmed: what the answer to a write is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
struct Committed {
    /// Whether the transaction has changed anything.
    wrote: bool,
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

    async fn commit(mut self) -> Result<Committed, DataError> {
        self.connection.set_policy(Policy::Anything);
        if self.connection.watch().has_failed_transaction() {
            self.roll_back().await;
            return Err(DataError::TransactionFailed);
        }
        let mut committed = Committed { wrote: true };
        let mut answers = self.connection.fetch_many(sqlx::raw_sql(COMMIT));
        loop {
            match answers.try_next().await {
                Ok(Some(Either::Right(row))) => committed.wrote = row.try_get("wrote")?,
                Ok(Some(Either::Left(_))) => {}
                Ok(None) => return Ok(committed),
                Err(error) => return Err(DataError::from_commit(error)),
            }
        }
    }

    /// A transaction that cannot be rolled back takes its connection with it, which comes to the same.
    async fn roll_back(mut self) {
        self.connection.set_policy(Policy::Anything);
        let _ = self.connection.execute("rollback").await;
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
        let result = write(lent).await;
        // A transaction that the closure has kept can only end in a rollback, whenever it is dropped.
        let transaction = back.try_recv().ok();
        match (result, transaction) {
            (Ok(value), Some(transaction)) => {
                let committed = transaction.commit().await?;
                tracing::trace!(
                    tenant.id = self.tenant().as_str(),
                    db.wrote = committed.wrote,
                    "Committed."
                );
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
        let mut connection = self.primary.acquire(&self.route).await?;
        let mut begun = connection.execute(BEGIN).await;
        if begun.is_err() && connection.died_while_idle() {
            drop(connection);
            connection = self.primary.acquire(&self.route).await?;
            begun = connection.execute(BEGIN).await;
        }
        begun?;
        connection.set_policy(Policy::Write);
        Ok(WriteTransaction { connection })
    }
}
