//! The right to reach one tenant's data.
//!
//! Owns how a read and a write run: which node, which transaction, what is tried again, and what an error means. Refuses
//! to know how connections are kept (see [`crate::pool`]), who the caller is, and what the statements are about.
//!
//! A [`TenantDb`] holds no connection. A closure that is given to it gets one, for as long as it runs.

pub mod context;
mod error;
mod lent;
mod read;
mod write;

use std::{fmt, sync::Arc};

pub use read_your_writes::Consistency;

pub use self::{error::DataError, lent::Lent, read::ReadConnection, write::WriteTransaction};
use crate::{TenantId, TenantUuid, pool::NodePool, route::Route};

/// The right to reach one tenant's data. A clone is cheap.
///
/// It follows the route that it was made from; a request makes its own, so that it sees the tenant as it is then.
#[derive(Clone)]
pub struct TenantDb {
    route: Arc<Route>,
    primary: NodePool,
}

impl TenantDb {
    /// The right to reach the tenant of this route on the node that its route leads to.
    pub fn new(route: Arc<Route>, primary: NodePool) -> Self {
        Self { route, primary }
    }

    /// The tenant's public name.
    pub fn tenant(&self) -> &TenantId {
        &self.route.tenant
    }

    /// The tenant's identity.
    pub fn uuid(&self) -> TenantUuid {
        self.route.uuid
    }

    /// The route that it follows.
    pub fn route(&self) -> &Arc<Route> {
        &self.route
    }

    /// The node that may serve a read of this level.
    fn node_for(&self, level: Consistency) -> &NodePool {
        match level {
            Consistency::Strict | Consistency::Recent | Consistency::Eventual => &self.primary,
        }
    }
}

impl fmt::Debug for TenantDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantDb")
            .field("tenant", &self.route.tenant)
            .field("uuid", &self.route.uuid)
            .finish()
    }
}
