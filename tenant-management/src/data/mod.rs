//! The right to reach one tenant's data.
//!
//! Owns how a read and a write run: which node, which transaction, what is tried again, and what an error means. Refuses
//! to know how connections are kept (see [`crate::pool`]), who the caller is, and what the statements are about.
//!
//! A [`TenantDb`] holds no connection. A closure that is given to it gets one, for as long as it runs.

pub mod context;
mod error;
mod lent;
mod place;
mod read;
mod write;

use std::{fmt, sync::Arc};

pub use read_your_writes::{Consistency, ReadLevel, Session};

use self::place::Place;
pub use self::{error::DataError, lent::Lent, read::ReadConnection, write::WriteTransaction};
use crate::{TenantId, TenantUuid, clusters::Cluster, pool::NodePool, route::Route};

/// The right to reach one tenant's data. A clone is cheap, and belongs to the same session.
///
/// It follows the route that it was made from; a request makes its own, so that it sees the tenant as it is then.
#[derive(Clone)]
pub struct TenantDb {
    route: Arc<Route>,
    place: Place,
    session: Session,
}

impl TenantDb {
    /// The right to reach the tenant of this route on one server, which serves its reads and writes.
    pub fn new(route: Arc<Route>, server: NodePool) -> Self {
        Self {
            place: Place::alone(&route, server),
            route,
            session: Session::default(),
        }
    }

    /// The right to reach the tenant of this route on its cluster. Reads see what the session has to see.
    pub(crate) fn on_cluster(route: Arc<Route>, cluster: Arc<Cluster>, session: Session) -> Self {
        Self {
            route,
            place: Place::Cluster(cluster),
            session,
        }
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

    /// The session that its reads and writes belong to. Work that leaves the request carries it by carrying this.
    pub fn session(&self) -> &Session {
        &self.session
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
