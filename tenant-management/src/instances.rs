//! This instance among the others: registration, lease, and how far a change has got.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    catalog::{Catalog, CatalogError},
    control::Propagation,
    ids::{InstanceId, Revision},
    routing::table::RoutingTable,
};

/// How often an instance renews its lease and reports its revision.
pub(crate) const RENEW: Duration = Duration::from_secs(1);
/// How long an instance counts as live after its last renewal.
pub(crate) const LEASE: Duration = Duration::from_secs(5);
/// Pause between two looks at how far the others are.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// This instance as the others see it.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) id: InstanceId,
    pub(crate) address: String,
    pub(crate) catalog: Catalog,
    pub(crate) table: Arc<RoutingTable>,
}

impl Instance {
    /// Renews the lease and reports what has been applied.
    pub(crate) async fn renew(&self) -> Result<(), CatalogError> {
        self.catalog
            .renew_instance(self.id, &self.address, self.table.revision(), LEASE)
            .await
    }

    /// Waits at most `limit` until every live instance has applied `revision`, and says who has. What this instance has
    /// applied it knows by itself.
    pub(crate) async fn wait_for(
        &self,
        revision: Revision,
        limit: Duration,
    ) -> Result<Propagation, CatalogError> {
        let deadline = Instant::now() + limit;
        loop {
            let mut propagation = Propagation {
                revision,
                live_instances: 1,
                applied_instances: 0,
                pending: Vec::new(),
            };
            if self.table.revision() >= revision {
                propagation.applied_instances += 1;
            } else {
                propagation.pending.push(self.id);
            }
            for other in self
                .catalog
                .live_instances()
                .await?
                .into_iter()
                .filter(|other| other.id != self.id)
            {
                propagation.live_instances += 1;
                if other.applied_revision >= revision {
                    propagation.applied_instances += 1;
                } else {
                    propagation.pending.push(other.id);
                }
            }
            if propagation.pending.is_empty() || Instant::now() >= deadline {
                return Ok(propagation);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}
