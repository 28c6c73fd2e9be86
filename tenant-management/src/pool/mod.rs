//! One pool of connections per *node* (a PostgreSQL server), shared by all tenants that live there.
//!
//! Owns the physical connections: how many there are, whose turn it is, that each leads to its tenant's own database, and
//! that nothing of one use is left for the next. Refuses to know SQL of tenants, consistency levels and the catalog.
//!
//! A request for a connection goes through [`schedule`] (who gets which, pure), [`connect`] (open and prove),
//! [`connection`] (on loan, with its book-keeping in [`watch`]) and [`reaper`] (closed, and really gone).

mod administrator;
mod connect;
mod connection;
mod error;
mod executor;
mod metrics;
mod opener;
mod reaper;
mod refusals;
mod schedule;
mod settings;
mod shared;
mod state;
mod statement;
mod watch;

use std::{fmt, sync::Arc, time::Instant};

use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

pub use self::{
    connection::TenantConnection,
    error::AcquireError,
    settings::{NodeSettings, PoolLimits},
    watch::StatementRefused,
};
pub(crate) use self::{executor::execute_on_connection, watch::Policy};
use self::{
    reaper::Reaper,
    shared::{Request, Shared},
};
use crate::{
    ids::{Generation, TenantUuid},
    route::Route,
    secret::KeyRing,
    tasks::TaskGroup,
};

/// The pool of one node. Clones share it; it ends when the last of them is dropped.
#[derive(Clone)]
pub struct NodePool {
    shared: Arc<Shared>,
    _end: Arc<DropGuard>,
}

/// Connections by state, and callers that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// All connections that count against the budget: the sum of the next five.
    pub open: u32,
    /// Being opened and proved.
    pub opening: u32,
    /// On loan.
    pub in_use: u32,
    /// Open and waiting for a user.
    pub idle: u32,
    /// Closed, and not yet seen to be gone from the server.
    pub closing: u32,
    /// The pool's own connection: one or none.
    pub administrative: u32,
    /// Callers that wait for a connection.
    pub waiting: u32,
}

impl NodePool {
    /// Starts the pool of a node. It opens nothing until somebody asks; its tasks end with `tasks`, if not before.
    ///
    /// The metrics belong to the recorder that is installed at this moment.
    pub fn start(settings: NodeSettings, keys: KeyRing, tasks: &TaskGroup) -> Self {
        if settings.max_connections < 2 || settings.limits.max_connections_per_tenant == 0 {
            tracing::error!(
                db.node = settings.name,
                "The limits leave no room for a tenant's connection."
            );
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(settings, keys, tasks, sender));
        tasks.spawn(
            "connection reaper",
            Reaper::new(Arc::clone(&shared), receiver).run(),
        );
        let end = Arc::new(shared.cancelled.clone().drop_guard());
        Self { shared, _end: end }
    }

    /// A connection to the tenant's own database, idle or new. Waits for its turn at most as long as
    /// [`PoolLimits::acquire_timeout`], and can be dropped at any moment.
    pub async fn acquire(&self, route: &Arc<Route>) -> Result<TenantConnection, AcquireError> {
        let started = Instant::now();
        let mut ticket = match self.shared.request(route)? {
            Request::Ready(connection) => {
                self.shared.metrics.acquired(started.elapsed());
                return Ok(connection);
            }
            Request::Wait(ticket) => ticket,
        };
        let limit = self.shared.settings.limits.acquire_timeout;
        let delivered = match tokio::time::timeout(limit, &mut ticket.delivery).await {
            Ok(delivery) => delivery.ok(),
            Err(_) => ticket.give_up(),
        };
        match delivered {
            Some(Ok(connection)) => {
                self.shared.metrics.acquired(started.elapsed());
                Ok(connection)
            }
            Some(Err(error)) => Err(error),
            None => {
                self.shared.metrics.timed_out();
                Err(AcquireError::Timeout {
                    waited: started.elapsed(),
                })
            }
        }
    }

    /// Connections by state, and callers that wait.
    pub fn stats(&self) -> PoolStats {
        self.shared.stats()
    }

    /// Ends the generations of a tenant below `below`: idle connections are closed now, those in use when they come back.
    pub fn retire(&self, tenant: TenantUuid, below: Generation) {
        self.shared.retire(tenant, below);
    }

    /// Closes all idle connections to the node.
    pub fn close_idle(&self) {
        self.shared.close_idle();
    }

    /// Ends the pool: callers are refused, idle connections closed at once, those in use when they come back.
    pub fn shut_down(&self) {
        self.shared.cancelled.cancel();
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.shared.settings.name
    }
}

impl fmt::Debug for NodePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodePool")
            .field("node", &self.name())
            .field("stats", &self.stats())
            .finish()
    }
}
