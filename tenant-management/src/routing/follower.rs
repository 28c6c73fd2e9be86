//! Keeps one instance's table up with the catalog: reads what changed since its own revision and swaps the table.
//!
//! Called after own changes and by a timer; calling it too often or too late is harmless. Takes no input, can be run
//! twice, and says what it did.

use std::{sync::Arc, time::Instant};

use tokio::sync::Mutex;

use super::table::{RouteUpdate, RoutingTable, TableUpdate};
use crate::{
    catalog::{
        Catalog, CatalogError,
        changes::{Changes, RouteChange},
    },
    clusters::ClusterDirectory,
    ids::Revision,
};

/// What one round brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Followed {
    /// The revision that the table has now.
    pub(crate) revision: Revision,
    /// Rows that were read.
    pub(crate) rows: usize,
}

/// Follows the catalog on behalf of one instance.
#[derive(Debug)]
pub(crate) struct Follower {
    catalog: Catalog,
    table: Arc<RoutingTable>,
    clusters: Arc<ClusterDirectory>,
    one_at_a_time: Mutex<()>,
}

impl Follower {
    pub(crate) fn new(catalog: Catalog, table: Arc<RoutingTable>, clusters: Arc<ClusterDirectory>) -> Self {
        Self {
            catalog,
            table,
            clusters,
            one_at_a_time: Mutex::new(()),
        }
    }

    /// Reads what changed and publishes it, clusters before the tenants that live on them.
    pub(crate) async fn catch_up(&self) -> Result<Followed, CatalogError> {
        let _alone = self.one_at_a_time.lock().await;
        let started = Instant::now();
        let Some(changes) = self.catalog.changes_since(self.table.revision()).await? else {
            return Ok(Followed {
                revision: self.table.revision(),
                rows: 0,
            });
        };
        if changes.clusters {
            self.clusters.replace(self.catalog.clusters().await?);
        }
        let rows = changes.routes.len() + changes.api_keys.len();
        let revision = changes.up_to;
        self.clusters.retire_old_generations(&changes.routes);
        self.table.apply(changes.into());
        metrics::counter!("tenantry_routing_rows_total").increment(rows as u64);
        metrics::histogram!("tenantry_routing_refresh_seconds").record(started.elapsed());
        #[expect(
            clippy::cast_precision_loss,
            reason = "gauges are floats, and a table has far fewer than 2^52 rows"
        )]
        {
            metrics::gauge!("tenantry_routing_tenants").set(self.table.len() as f64);
            metrics::gauge!("tenantry_routing_revision").set(revision.0 as f64);
        }
        Ok(Followed { revision, rows })
    }

    /// Like [`Self::catch_up`] unless the table already has `revision`: many callers wait for one round.
    pub(crate) async fn catch_up_to(&self, revision: Revision) -> Result<(), CatalogError> {
        if self.table.revision() < revision {
            self.catch_up().await?;
        }
        Ok(())
    }
}

impl From<Changes> for TableUpdate {
    fn from(changes: Changes) -> Self {
        Self {
            routes: changes.routes.into_iter().map(Into::into).collect(),
            api_keys: changes.api_keys,
            complete_to: Some(changes.up_to),
        }
    }
}

impl From<RouteChange> for RouteUpdate {
    fn from(change: RouteChange) -> Self {
        Self {
            route: Arc::new(change.route),
            domains: change.domains,
        }
    }
}
