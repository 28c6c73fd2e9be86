//! Where a tenant's statements run: the nodes of its cluster, or one server alone.

use std::sync::Arc;

use read_your_writes::{Chosen, ReadLevel, Reason, Session};

use super::DataError;
use crate::{
    clusters::{Cluster, ClusterNode},
    pool::NodePool,
    route::Route,
};

/// Where a tenant's statements run.
#[derive(Clone)]
pub(super) enum Place {
    /// A cluster whose replicas share the reads.
    Cluster(Arc<Cluster>),
    /// One server for everything.
    Alone { cluster: Arc<str>, server: NodePool },
}

/// The node for one read or write, for as long as it takes.
pub(super) enum Spot {
    Node(Chosen<Arc<ClusterNode>>),
    Alone(NodePool),
}

impl Place {
    pub(super) fn alone(route: &Route, server: NodePool) -> Self {
        Self::Alone {
            cluster: route.cluster.as_str().into(),
            server,
        }
    }

    /// The cluster's name, which positions carry.
    pub(super) fn cluster(&self) -> &Arc<str> {
        match self {
            Self::Cluster(cluster) => cluster.nodes.name(),
            Self::Alone { cluster, .. } => cluster,
        }
    }

    /// Whether places in the log mean something here.
    pub(super) fn uses_log(&self) -> bool {
        match self {
            Self::Cluster(cluster) => cluster.nodes.uses_log(),
            Self::Alone { .. } => true,
        }
    }

    /// The node for a read.
    pub(super) async fn for_read(&self, level: ReadLevel, session: &Session) -> Result<Spot, DataError> {
        Ok(match self {
            Self::Cluster(cluster) => Spot::Node(cluster.nodes.choose(level, session).await?),
            Self::Alone { server, .. } => Spot::Alone(server.clone()),
        })
    }

    /// The primary, for a read that a replica has failed to serve.
    pub(super) async fn instead(&self, level: ReadLevel, reason: Reason) -> Result<Spot, DataError> {
        Ok(match self {
            Self::Cluster(cluster) => Spot::Node(cluster.nodes.instead(level, reason).await?),
            Self::Alone { server, .. } => Spot::Alone(server.clone()),
        })
    }

    /// The pool for a write.
    pub(super) fn for_write(&self) -> &NodePool {
        match self {
            Self::Cluster(cluster) => &cluster.nodes.primary().payload().pool,
            Self::Alone { server, .. } => server,
        }
    }
}

impl Spot {
    pub(super) fn pool(&self) -> &NodePool {
        match self {
            Self::Node(node) => &node.payload().pool,
            Self::Alone(server) => server,
        }
    }

    pub(super) fn is_replica(&self) -> bool {
        match self {
            Self::Node(node) => !node.is_primary(),
            Self::Alone(_) => false,
        }
    }

    /// Notes in the session that the node has answered.
    pub(super) fn has_served(&self, session: &Session) {
        if let Self::Node(node) = self {
            node.has_served(session);
        }
    }

    /// Ends when nothing can be expected of a replica any more.
    pub(super) async fn is_lost(&self) {
        match self {
            Self::Node(node) if !node.is_primary() => node.is_lost().await,
            Self::Node(_) | Self::Alone(_) => std::future::pending().await,
        }
    }
}
