//! Reads: single statements in one round trip each, and snapshots.

use std::{future::Future, panic::Location};

use read_your_writes::{Fault, ReadLevel, Reason};
use sqlx::Executor;

use super::{
    DataError, TenantDb,
    lent::{Lent, lend},
    place::Spot,
};
use crate::pool::{AcquireError, Policy, TenantConnection, execute_on_connection};

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
    /// `read` may run a second time: when the first connection turns out to have died before it answered anything, and on the
    /// primary when a replica cancels it or fails. So it must have no effects besides its result. It must not ask for a second connection of the same tenant while it runs:
    /// under load, callers that hold one and wait for another would wait for each other.
    ///
    /// # Errors
    ///
    /// What `read` fails with, or a [`DataError`] when no connection can be had.
    #[track_caller]
    pub fn read<'s, T, E, F, Fut, L>(
        &'s self,
        level: L,
        read: F,
    ) -> impl Future<Output = Result<T, E>> + use<'s, T, E, F, Fut, L>
    where
        F: Fn(Lent<ReadConnection>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<DataError>,
        L: Into<ReadLevel>,
    {
        self.run(View::EachItsOwn, level.into(), read, Location::caller())
    }

    /// Reads several things that agree with each other: all statements see the database at one moment. Costs two more
    /// round trips than [`Self::read`], to which it is equal otherwise.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    #[track_caller]
    pub fn snapshot<'s, T, E, F, Fut, L>(
        &'s self,
        level: L,
        read: F,
    ) -> impl Future<Output = Result<T, E>> + use<'s, T, E, F, Fut, L>
    where
        F: Fn(Lent<ReadConnection>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<DataError>,
        L: Into<ReadLevel>,
    {
        self.run(View::One, level.into(), read, Location::caller())
    }

    async fn run<T, E, F, Fut>(
        &self,
        view: View,
        level: ReadLevel,
        read: F,
        at: &'static Location<'static>,
    ) -> Result<T, E>
    where
        F: Fn(Lent<ReadConnection>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<DataError>,
    {
        let spot = self.place.for_read(level, &self.session).await?;
        let attempt = tokio::select! {
            attempt = self.attempt(&spot, view, &read) => attempt,
            () = spot.is_lost() => Attempt::Again(Reason::ReplicaFault),
        };
        let attempt = match attempt {
            Attempt::Again(reason) => {
                drop(spot);
                let primary = self.place.instead(level, reason).await?;
                self.attempt(&primary, view, &read).await
            }
            answered @ Attempt::Answered { .. } => answered,
        };
        match attempt {
            Attempt::Answered { result, wrote } => {
                if wrote {
                    tracing::error!(
                        tenant.id = self.tenant().as_str(),
                        code.location = %at,
                        "A read tried to write; the server refused."
                    );
                }
                result
            }
            Attempt::Again(_) => Err(DataError::Unavailable(None).into()),
        }
    }

    /// Runs the read on a node, and once more when the connection had died while nobody used it.
    async fn attempt<T, E, F, Fut>(&self, spot: &Spot, view: View, read: &F) -> Attempt<T, E>
    where
        F: Fn(Lent<ReadConnection>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<DataError>,
    {
        let mut fresh = false;
        loop {
            let connection = match self.reading(spot).await {
                Ok(connection) => connection,
                Err(NoConnection::Again(reason)) => return Attempt::Again(reason),
                Err(NoConnection::Failed(error)) => {
                    return Attempt::Answered {
                        result: Err(error.into()),
                        wrote: false,
                    };
                }
            };
            let (result, used) = connection.attempt(view, read).await;
            let died = used
                .as_ref()
                .is_some_and(|used| used.connection.died_while_idle());
            if result.is_err() && died && !fresh {
                fresh = true;
                continue;
            }
            let fault = used.as_ref().and_then(|used| used.connection.watch().fault());
            if result.is_err()
                && spot.is_replica()
                && let Some(fault) = fault.filter(|fault| fault.is_the_replicas())
            {
                return Attempt::Again(reason_of(fault));
            }
            spot.has_served(&self.session);
            let wrote = used.is_some_and(|used| used.connection.watch().wrote_in_read());
            return Attempt::Answered { result, wrote };
        }
    }

    async fn reading(&self, spot: &Spot) -> Result<ReadConnection, NoConnection> {
        let mut connection = match spot.pool().acquire(self.route()).await {
            Ok(connection) => connection,
            Err(error) if spot.is_replica() && primary_may_do_better(&error) => {
                return Err(NoConnection::Again(Reason::ReplicaFault));
            }
            Err(error) => return Err(NoConnection::Failed(error.into())),
        };
        if !spot.is_replica() && !connection.is_on_primary().await.map_err(DataError::from)? {
            return Err(NoConnection::Failed(DataError::Unavailable(None)));
        }
        Ok(ReadConnection { connection })
    }
}

/// How a read has gone on one node.
enum Attempt<T, E> {
    Answered {
        result: Result<T, E>,
        /// It tried to write.
        wrote: bool,
    },
    /// The replica could not serve it; the primary can.
    Again(Reason),
}

enum NoConnection {
    Again(Reason),
    Failed(DataError),
}

impl From<DataError> for NoConnection {
    fn from(error: DataError) -> Self {
        Self::Failed(error)
    }
}

fn reason_of(fault: Fault) -> Reason {
    match fault {
        Fault::Conflict => Reason::Cancelled,
        Fault::Node
        | Fault::DatabaseGone
        | Fault::Role
        | Fault::Cancelled
        | Fault::ReadOnly
        | Fault::FailedTransaction
        | Fault::Schema
        | Fault::Statement => Reason::ReplicaFault,
    }
}

/// Whether a replica's refusal of a connection is its own, or because it has not replayed yet that the tenant exists or has a
/// new password. One that is merely busy is waited for, or its load would fall on the primary.
fn primary_may_do_better(error: &AcquireError) -> bool {
    match error {
        AcquireError::Unreachable(_)
        | AcquireError::ConnectTimeout { .. }
        | AcquireError::Refused(_)
        | AcquireError::NoSuchDatabase
        | AcquireError::WrongDatabase
        | AcquireError::Closed => true,
        AcquireError::Timeout { .. } | AcquireError::Password(_) => false,
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
