//! Tells the catalog when another node of a cluster has become the primary, so that other instances, and those that start
//! later, need not find it out by themselves.
//!
//! Takes no input and can be run any number of times. Refuses to decide who the primary is: that is seen by the watch over the
//! nodes.

use std::{sync::Arc, time::Duration};

use crate::{
    catalog::{Catalog, CatalogError},
    clusters::ClusterDirectory,
    routing::follower::{Follower, Prompt},
};

/// How often it is looked for promotions.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// Records promotions on behalf of one instance.
#[derive(Debug)]
pub(crate) struct Promotions {
    pub(crate) catalog: Catalog,
    pub(crate) clusters: Arc<ClusterDirectory>,
    pub(crate) follower: Arc<Follower>,
}

impl Promotions {
    /// Records what the catalog does not know yet, and says how many clusters that was about.
    pub(crate) async fn record(&self) -> Result<u32, CatalogError> {
        let mut recorded = 0;
        for cluster in self.clusters.all() {
            let primary = cluster.nodes.primary().name();
            if cluster
                .record
                .nodes
                .iter()
                .any(|node| node.is_primary && *node.name == **primary)
            {
                continue;
            }
            if self
                .catalog
                .register_primary(&cluster.record.name, primary)
                .await?
            {
                tracing::warn!(
                    db.cluster = %cluster.record.name,
                    db.node = &**primary,
                    "A promotion was found out and has been recorded in the catalog."
                );
                recorded += 1;
            }
        }
        if recorded > 0 {
            self.follower.catch_up(Prompt::Own).await?;
        }
        Ok(recorded)
    }
}
