//! Reads: single statements in one round trip each, and snapshots.

use std::{future::Future, panic::Location};

use read_your_writes::Consistency;
use sqlx::Executor;

use super::{
    DataError, TenantDb,
    lent::{Lent, lend},
};
use crate::pool::{NodePool, Policy, TenantConnection, execute_on_connection};

/// Opens a snapshot: all its statements see the database at one moment.
const SNAPSHOT: &str = "begin isolation level repeatable read read only";

/// A connection that reads. `&mut` of it is a sqlx `Executor`.
///
/// The server refuses to write on it, and the layer refuses statements other than queries, since they could change that.
#[derive(Debug)]
pub struct ReadConnection {
    connection: TenantConnection,
}

impl ReadConnection {
    /// Statements that were sent, each a round trip. (The driver prepares a statement that is new to the connection in
    /// another.)
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
}

execute_on_connection!(ReadConnection);

/// Whether a read's statements see one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    EachItsOwn,
    One,
}

impl TenantDb {
    /// Reads. Each statement sees the database as it is when it starts, and costs one round trip.
    ///
    /// `read` may run a second time, when the first connection turns out to have died before it answered anything; so it
    /// must have no effects besides its result. It must not ask for a second connection of the same tenant while it runs:
    /// under load, callers that hold one and wait for another would wait for each other.
    ///
    /// # Errors
    ///
    /// What `read` fails with, or a [`DataError`] when no connection can be had.
    #[track_caller]
    pub fn read<'s, T, E, F, Fut>(
        &'s self,
        level: Consistency,
        read: F,
    ) -> impl Future<Output = Result<T, E>> + use<'s, T, E, F, Fut>
    where
        F: Fn(Lent<ReadConnection>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<DataError>,
    {
        self.run(View::EachItsOwn, level, read, Location::caller())
    }

    /// Reads several things that agree with each other: all statements see the database at one moment. Costs two more
    /// round trips than [`Self::read`], to which it is equal otherwise.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    #[track_caller]
    pub fn snapshot<'s, T, E, F, Fut>(
        &'s self,
        level: Consistency,
        read: F,
    ) -> impl Future<Output = Result<T, E>> + use<'s, T, E, F, Fut>
    where
        F: Fn(Lent<ReadConnection>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<DataError>,
    {
        self.run(View::One, level, read, Location::caller())
    }

    async fn run<T, E, F, Fut>(
        &self,
        view: View,
        level: Consistency,
        read: F,
        at: &'static Location<'static>,
    ) -> Result<T, E>
    where
        F: Fn(Lent<ReadConnection>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<DataError>,
    {
        let node = self.node_for(level);
        let (mut result, mut connection) = self.reading(node).await?.attempt(view, &read).await;
        if result.is_err()
            && connection
                .as_ref()
                .is_some_and(|used| used.connection.died_while_idle())
        {
            drop(connection);
            (result, connection) = self.reading(node).await?.attempt(view, &read).await;
        }
        if connection.is_some_and(|used| used.connection.watch().wrote_in_read()) {
            tracing::error!(
                tenant.id = self.tenant().as_str(),
                code.location = %at,
                "A read tried to write; the server refused."
            );
        }
        result
    }

    async fn reading(&self, node: &NodePool) -> Result<ReadConnection, DataError> {
        Ok(ReadConnection {
            connection: node.acquire(self.route()).await?,
        })
    }
}

impl ReadConnection {
    /// Runs `read`. The connection comes back as well, unless `read` has kept it.
    async fn attempt<T, E, F, Fut>(mut self, view: View, read: &F) -> (Result<T, E>, Option<Self>)
    where
        F: Fn(Lent<Self>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<DataError>,
    {
        if view == View::One
            && let Err(error) = self.connection.execute(SNAPSHOT).await
        {
            return (Err(DataError::from(error).into()), Some(self));
        }
        self.connection.set_policy(Policy::Read);
        let (lent, mut back) = lend(self);
        let result = read(lent).await;
        let mut used = back.try_recv().ok();
        if view == View::One
            && let Some(used) = &mut used
        {
            used.connection.set_policy(Policy::Anything);
            // All has been read by now. A snapshot that cannot be ended takes its connection with it.
            let _ = used.connection.execute("commit").await;
        }
        (result, used)
    }
}
