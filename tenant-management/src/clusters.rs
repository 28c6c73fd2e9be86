//! The clusters that this instance knows, each with its administrator and its pool of connections.

use std::{collections::BTreeMap, sync::Arc};

use arc_swap::ArcSwap;
use tokio::sync::OnceCell;

use crate::{
    catalog::{changes::RouteChange, clusters::ClusterRecord},
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

/// One cluster as this instance reaches it.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) record: ClusterRecord,
    pub(crate) admin: ServerAdmin,
    pub(crate) primary: NodePool,
    prepared: OnceCell<()>,
}

impl Cluster {
    /// The template for new databases, after the cluster has been made ready for tenants (once for each process).
    pub(crate) async fn template(&self, migrations: &TenantMigrations) -> Result<String, ServerError> {
        self.prepared
            .get_or_try_init(|| prepare_cluster(&self.admin, migrations))
            .await?;
        Ok(template_name(migrations))
    }
}

/// All clusters of the catalog. Replaced whole when one changes.
pub(crate) struct ClusterDirectory {
    clusters: ArcSwap<BTreeMap<ClusterName, Arc<Cluster>>>,
    limits: PoolLimits,
    keys: KeyRing,
    tasks: TaskGroup,
}

impl ClusterDirectory {
    pub(crate) fn new(limits: PoolLimits, keys: KeyRing, tasks: TaskGroup) -> Self {
        Self {
            clusters: ArcSwap::default(),
            limits,
            keys,
            tasks,
        }
    }

    /// A cluster by name.
    pub(crate) fn get(&self, name: &ClusterName) -> Option<Arc<Cluster>> {
        self.clusters.load().get(name).cloned()
    }

    /// All clusters in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<Cluster>> {
        self.clusters.load().values().cloned().collect()
    }

    /// Takes over what the catalog says. Clusters that did not change keep their connections.
    pub(crate) fn replace(&self, records: Vec<ClusterRecord>) {
        let known = self.clusters.load();
        let mut next = BTreeMap::new();
        for record in records {
            let unchanged = known
                .get(&record.name)
                .filter(|cluster| cluster.record.revision == record.revision);
            let cluster = unchanged.cloned().or_else(|| self.connect(record));
            next.extend(cluster.map(|cluster| (cluster.record.name.clone(), cluster)));
        }
        let replaced: Vec<_> = known
            .iter()
            .filter(|(name, old)| next.get(*name).is_none_or(|new| !Arc::ptr_eq(old, new)))
            .map(|(_, old)| old.primary.clone())
            .collect();
        self.clusters.store(Arc::new(next));
        // Requests that are under way end on the connection that they have.
        for pool in replaced {
            pool.shut_down();
        }
    }

    fn connect(&self, record: ClusterRecord) -> Option<Arc<Cluster>> {
        let Some(primary) = record.nodes.iter().find(|node| node.is_primary) else {
            tracing::error!(db.cluster = %record.name, "A cluster in the catalog has no primary and is left out.");
            return None;
        };
        let admin = ServerAdmin::new(primary.options.clone());
        let settings = NodeSettings {
            name: format!("{}/{}", record.name, primary.name),
            admin: primary.options.clone(),
            max_connections: record.max_connections.saturating_sub(RESERVED_CONNECTIONS),
            limits: self.limits.clone(),
        };
        let primary = NodePool::start(settings, self.keys.clone(), &self.tasks);
        Some(Arc::new(Cluster {
            record,
            admin,
            primary,
            prepared: OnceCell::new(),
        }))
    }

    /// Has pools close connections of placements and credentials that are no longer valid.
    pub(crate) fn retire_old_generations(&self, changes: &[RouteChange]) {
        for change in changes {
            if let Some(cluster) = self.get(&change.route.cluster) {
                cluster.primary.retire(change.route.uuid, change.route.generation);
            }
        }
    }
}

impl std::fmt::Debug for ClusterDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.clusters.load().keys()).finish()
    }
}
