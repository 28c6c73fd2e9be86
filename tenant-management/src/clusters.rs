//! The clusters that this instance knows: their nodes, each with its administrator and its pool of connections, and which
//! of them serves what.

use std::{collections::BTreeMap, fmt, sync::Arc};

use arc_swap::ArcSwap;
use read_your_writes::{Cluster as Nodes, NodeSpec, NodeStatus, ReadSettings};
use tokio::sync::OnceCell;

use crate::{
    catalog::{
        changes::RouteChange,
        clusters::{ClusterRecord, NodeRecord},
    },
    ids::ClusterName,
    migrate::TenantMigrations,
    pool::{NodePool, NodeSettings, PoolLimits},
    provisioning::{
        server::{RESERVED_CONNECTIONS, ServerAdmin, ServerError},
        template::{prepare_cluster, template_name},
    },
    secret::KeyRing,
    tasks::TaskGroup,
};

/// Connections of a node's budget that watching it takes.
const PROBE_CONNECTIONS: u32 = 1;

/// The least budget of a server: what provisioning and watching take, one for the pool's own questions, and one for a tenant.
pub const LEAST_CONNECTIONS: u32 = RESERVED_CONNECTIONS + PROBE_CONNECTIONS + 2;

/// One server as this instance reaches it. Which of them is the primary can change; each can be it.
pub(crate) struct ClusterNode {
    record: NodeRecord,
    pub(crate) admin: ServerAdmin,
    pub(crate) pool: NodePool,
}

/// One cluster as this instance reaches it.
pub(crate) struct Cluster {
    pub(crate) record: ClusterRecord,
    pub(crate) nodes: Nodes<Arc<ClusterNode>>,
    prepared: OnceCell<()>,
}

impl Cluster {
    /// The administrator of the primary.
    pub(crate) fn admin(&self) -> &ServerAdmin {
        &self.nodes.primary().payload().admin
    }

    /// The template for new databases, after the cluster has been made ready for tenants (once for each process).
    pub(crate) async fn template(&self, migrations: &TenantMigrations) -> Result<String, ServerError> {
        self.prepared
            .get_or_try_init(|| prepare_cluster(self.admin(), migrations))
            .await?;
        Ok(template_name(migrations))
    }

    /// Its servers: how each is seen, its address, and the connections that are open to it.
    pub(crate) fn overview(&self) -> impl Iterator<Item = (NodeStatus, String, u32)> {
        self.nodes
            .status()
            .into_iter()
            .zip(self.nodes.nodes())
            .map(|(status, node)| {
                let node = node.payload();
                (status, node.record.address(), node.pool.stats().open)
            })
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}

/// How clusters are used, the same for all of them.
#[derive(Clone, Debug)]
pub(crate) struct ClusterUse {
    pub(crate) limits: PoolLimits,
    pub(crate) reads: ReadSettings,
    pub(crate) keys: KeyRing,
}

/// All clusters of the catalog. Replaced whole when one changes.
pub(crate) struct ClusterDirectory {
    clusters: ArcSwap<BTreeMap<ClusterName, Arc<Cluster>>>,
    usage: ClusterUse,
    tasks: TaskGroup,
}

impl ClusterDirectory {
    pub(crate) fn new(usage: ClusterUse, tasks: TaskGroup) -> Self {
        Self {
            clusters: ArcSwap::default(),
            usage,
            tasks,
        }
    }

    /// A cluster by name.
    pub(crate) fn get(&self, name: &ClusterName) -> Option<Arc<Cluster>> {
        self.clusters.load().get(name).cloned()
    }

    /// Whether there is a cluster of this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.clusters.load().keys().any(|known| known.as_str() == name)
    }

    /// All clusters in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<Cluster>> {
        self.clusters.load().values().cloned().collect()
    }

    /// Takes over what the catalog says. Clusters that did not change stay as they are, and servers that did not change keep
    /// their connections.
    pub(crate) fn replace(&self, records: Vec<ClusterRecord>) {
        let known = self.clusters.load();
        let mut next = BTreeMap::new();
        for record in records {
            let old = known.get(&record.name);
            let unchanged = old.filter(|cluster| cluster.record.revision == record.revision);
            let cluster = unchanged
                .cloned()
                .or_else(|| self.connect(record, old.map(AsRef::as_ref)));
            next.extend(cluster.map(|cluster| (cluster.record.name.clone(), cluster)));
        }
        let kept: Vec<_> = next.values().flat_map(nodes_of).collect();
        let replaced = known.values().flat_map(nodes_of);
        let gone: Vec<_> = replaced
            .filter(|node| !kept.iter().any(|kept| Arc::ptr_eq(kept, node)))
            .collect();
        self.clusters.store(Arc::new(next));
        // Requests that are under way end on the connection that they have.
        for node in gone {
            node.pool.shut_down();
        }
    }

    fn connect(&self, record: ClusterRecord, old: Option<&Cluster>) -> Option<Arc<Cluster>> {
        if !record.nodes.iter().any(|node| node.is_primary) {
            tracing::error!(db.cluster = %record.name, "A cluster in the catalog has no primary and is left out.");
            return None;
        }
        let for_tenants = record
            .max_connections
            .saturating_sub(RESERVED_CONNECTIONS + PROBE_CONNECTIONS);
        let specs = record.nodes.iter().map(|node| NodeSpec {
            name: node.name.as_str().into(),
            probe: node.options.clone(),
            is_primary: node.is_primary,
            payload: same_node(old, &record, node)
                .unwrap_or_else(|| self.connect_node(&record, node, for_tenants)),
        });
        let reads = ReadSettings {
            // Writes and strict reads keep half of the room, whatever happens to the replicas.
            fallback_limit: self.usage.reads.fallback_limit.min(for_tenants / 2).max(1),
            ..self.usage.reads.clone()
        };
        let nodes = Nodes::start(record.name.as_str().into(), specs.collect(), reads);
        Some(Arc::new(Cluster {
            nodes,
            record,
            prepared: OnceCell::new(),
        }))
    }

    fn connect_node(&self, record: &ClusterRecord, node: &NodeRecord, for_tenants: u32) -> Arc<ClusterNode> {
        let settings = NodeSettings {
            name: format!("{}/{}", record.name, node.name),
            admin: node.options.clone(),
            max_connections: for_tenants,
            limits: self.usage.limits.clone(),
        };
        Arc::new(ClusterNode {
            record: node.clone(),
            admin: ServerAdmin::new(node.options.clone()),
            pool: NodePool::start(settings, self.usage.keys.clone(), &self.tasks),
        })
    }

    /// Has pools close connections of placements and credentials that are no longer valid.
    pub(crate) fn retire_old_generations(&self, changes: &[RouteChange]) {
        for change in changes {
            if let Some(cluster) = self.get(&change.route.cluster) {
                for node in cluster.nodes.nodes() {
                    node.payload()
                        .pool
                        .retire(change.route.uuid, change.route.generation);
                }
            }
        }
    }

    /// Ends the watch over all nodes.
    pub(crate) async fn stop(&self) {
        for cluster in self.all() {
            cluster.nodes.stop().await;
        }
    }
}

fn nodes_of(cluster: &Arc<Cluster>) -> impl Iterator<Item = Arc<ClusterNode>> {
    cluster
        .nodes
        .nodes()
        .iter()
        .map(|node| Arc::clone(node.payload()))
}

/// The server of an older record, if nothing about it has changed but its part in the cluster.
fn same_node(old: Option<&Cluster>, record: &ClusterRecord, node: &NodeRecord) -> Option<Arc<ClusterNode>> {
    let old = old.filter(|old| old.record.max_connections == record.max_connections)?;
    let mut nodes = old.nodes.nodes().iter().map(|known| known.payload());
    nodes
        .find(|known| known.record.name == node.name && known.record.fingerprint == node.fingerprint)
        .cloned()
}

impl fmt::Debug for ClusterDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.clusters.load().keys()).finish()
    }
}
