//! A connection on loan from a node's pool.

use std::{fmt, sync::Arc, time::Instant};

use sqlx::{PgConnection, Row};

use super::{
    schedule::{CloseReason, ConnectionId},
    shared::Shared,
    watch::{Policy, Watch},
};

/// How a connection's process on the server is told from all others, before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backend {
    /// Process id.
    pub(super) pid: i32,
    /// When it started, in microseconds since 1970 by the server's clock: process ids are used again.
    pub(super) started: i64,
}

/// An open connection that has proved where it leads.
pub(super) struct Physical {
    pub(super) connection: PgConnection,
    pub(super) backend: Backend,
    /// It has been on loan or idle before, so it may have died since without anybody noticing.
    pub(super) reused: bool,
    /// The server was a standby, when it was asked last. A standby can become a primary under an open connection; a primary
    /// becomes a standby by a restart only, which ends all connections.
    pub(super) opened_on_standby: bool,
}

/// A connection to one tenant's database, on loan. It goes back when it is dropped, and is handed out again only if nothing
/// of its use can stay behind: not in the middle of a statement or transaction, no session settings, no error of the
/// network. Its statements run through the sqlx `Executor` of `&mut TenantConnection`.
pub struct TenantConnection {
    /// Present until the drop.
    physical: Option<Physical>,
    watch: Watch,
    id: ConnectionId,
    shared: Arc<Shared>,
}

impl TenantConnection {
    pub(super) fn new(shared: Arc<Shared>, id: ConnectionId, physical: Physical) -> Self {
        Self {
            physical: Some(physical),
            watch: Watch::new(),
            id,
            shared,
        }
    }

    /// Statements that were sent since the connection was handed out.
    pub fn statements(&self) -> u64 {
        self.watch.statements()
    }

    /// The server's process id of this connection.
    pub fn backend_pid(&self) -> i32 {
        self.physical
            .as_ref()
            .expect("a connection on loan is open")
            .backend
            .pid
    }

    /// Whether the connection had been open for a while, and broke now before the server had answered anything: then it
    /// had died while it was idle, and nothing that was sent has been carried out.
    pub(crate) fn died_while_idle(&self) -> bool {
        self.physical.as_ref().is_some_and(|physical| physical.reused) && self.watch.is_lost_unanswered()
    }

    /// Finds out whether the server is a primary, and costs a round trip only as long as it is not known to be one.
    pub(crate) async fn is_on_primary(&mut self) -> sqlx::Result<bool> {
        let physical = self.physical.as_ref().expect("a connection on loan is open");
        if physical.opened_on_standby {
            let asked = sqlx::raw_sql("select pg_is_in_recovery() as standby")
                .fetch_one(&mut *self)
                .await?;
            let physical = self.physical.as_mut().expect("a connection on loan is open");
            physical.opened_on_standby = asked.try_get("standby")?;
            return Ok(!physical.opened_on_standby);
        }
        Ok(true)
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Says which statements may be sent from now on.
    pub(crate) fn set_policy(&mut self, policy: Policy) {
        self.watch.policy = policy;
    }

    /// The socket and the book-keeping, apart.
    pub(super) fn parts(&mut self) -> (&mut PgConnection, &mut Watch) {
        let physical = self.physical.as_mut().expect("a connection on loan is open");
        (&mut physical.connection, &mut self.watch)
    }
}

impl Drop for TenantConnection {
    fn drop(&mut self) {
        let Some(mut physical) = self.physical.take() else {
            return;
        };
        physical.reused = true;
        self.shared
            .take_back(self.id, physical, self.watch.must_close(), self.watch.is_lost());
    }
}

impl fmt::Debug for TenantConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantConnection")
            .field("id", &self.id)
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}

/// A connection on its way out, for the reaper.
pub(super) struct Closing {
    pub(super) id: ConnectionId,
    /// The database's name.
    pub(super) database: String,
    /// Unknown when the connection was not proved yet.
    pub(super) backend: Option<Backend>,
    /// To be closed with a farewell; absent when it is closed already.
    pub(super) connection: Option<PgConnection>,
    /// A statement may still run on it.
    pub(super) abandoned: bool,
    pub(super) since: Instant,
}

impl Closing {
    pub(super) fn new(id: ConnectionId, database: String, physical: Physical, reason: CloseReason) -> Self {
        let farewell = !matches!(reason, CloseReason::Abandoned | CloseReason::Broken);
        Self {
            id,
            database,
            backend: Some(physical.backend),
            connection: farewell.then_some(physical.connection),
            abandoned: !farewell,
            since: Instant::now(),
        }
    }
}
