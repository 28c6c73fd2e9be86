//! Keeps one instance's table up with the catalog: reads what changed since its own revision and swaps the table.
//!
//! Called after own changes, on word of others' and by a timer; calling it too often or too late is harmless. Takes no input,
//! can be run twice, and says what it did. A digest of the whole table is the safety net: it finds what no delta would.

use std::{sync::Arc, time::Instant};

use tokio::sync::Mutex;

use super::{
    digest::Digest,
    table::{RouteUpdate, RoutingTable, TableUpdate},
};
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

/// What made an instance look at the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// It starts.
    Start,
    /// It has made a change itself.
    Own,
    /// Word of a change has come.
    Word,
    /// Renewing the lease has shown a newer revision, of which no word had come.
    Renewal,
    /// Time has passed.
    Timer,
}

/// What comparing the whole table with the catalog has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verified {
    /// They are the same.
    Same,
    /// They were not; the table has been read anew.
    Repaired,
    /// The table changed all the time. The next comparison will tell.
    Undecided,
}

/// How often a comparison that ran into a change is begun again.
const COMPARISONS: usize = 5;

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
    pub(crate) async fn catch_up(&self, prompt: Prompt) -> Result<Followed, CatalogError> {
        let _alone = self.one_at_a_time.lock().await;
        self.read_changes(prompt).await
    }

    async fn read_changes(&self, prompt: Prompt) -> Result<Followed, CatalogError> {
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
        let followed = self.publish(changes, RoutingTable::apply);
        metrics::counter!("tenantry_routing_refreshes_total", "prompted_by" => prompt.as_str()).increment(1);
        metrics::histogram!("tenantry_routing_refresh_seconds").record(started.elapsed());
        Ok(followed)
    }

    fn publish(&self, changes: Changes, publish: impl FnOnce(&RoutingTable, TableUpdate)) -> Followed {
        let rows = changes.routes.len() + changes.api_keys.len();
        let revision = changes.up_to;
        self.clusters.retire_old_generations(&changes.routes);
        publish(&self.table, changes.into());
        metrics::counter!("tenantry_routing_rows_total").increment(rows as u64);
        #[expect(
            clippy::cast_precision_loss,
            reason = "gauges are floats, and a table has far fewer than 2^52 rows"
        )]
        {
            metrics::gauge!("tenantry_routing_tenants").set(self.table.len() as f64);
            metrics::gauge!("tenantry_routing_revision").set(revision.0 as f64);
        }
        Followed { revision, rows }
    }

    /// Like [`Self::catch_up`] unless the table already has `revision`: many callers wait for one round.
    pub(crate) async fn catch_up_to(&self, revision: Revision, prompt: Prompt) -> Result<(), CatalogError> {
        if self.table.revision() < revision {
            let _alone = self.one_at_a_time.lock().await;
            if self.table.revision() < revision {
                self.read_changes(prompt).await?;
            }
        }
        Ok(())
    }

    /// Compares the whole table with the catalog, and reads everything anew when they differ: a row was damaged, or the catalog
    /// has been restored from a backup.
    pub(crate) async fn verify(&self) -> Result<Verified, CatalogError> {
        self.catch_up(Prompt::Timer).await?;
        let (wanted, at) = self.catalog.digest().await?;
        let (found, revision, _) = self.digest().await;
        if (found, revision) == (wanted, at) {
            return Ok(Verified::Same);
        }
        // Only now does anybody have to wait: with nobody following, a difference is one.
        let _alone = self.one_at_a_time.lock().await;
        for attempt in 1..=COMPARISONS {
            self.read_changes(Prompt::Timer).await?;
            let (wanted, at) = self.catalog.digest().await?;
            let (found, revision, newest) = self.digest().await;
            if (found, revision) == (wanted, at) {
                return Ok(Verified::Same);
            }
            // The catalog has changed in between, or a look-up has brought a row before its turn. A row that stays too new is
            // none that a look-up has brought.
            if revision < at || (newest > revision && attempt < COMPARISONS) {
                continue;
            }
            tracing::error!(
                routing.revision = revision.0,
                catalog.revision = at.0,
                ?found,
                ?wanted,
                "The routing table differs from the catalog; it is read anew."
            );
            metrics::counter!("tenantry_routing_repairs_total").increment(1);
            self.read_everything().await?;
            return Ok(Verified::Repaired);
        }
        Ok(Verified::Undecided)
    }

    /// The table's digest, its revision, and that of its newest row; made where it holds nobody up.
    async fn digest(&self) -> (Digest, Revision, Revision) {
        let table = Arc::clone(&self.table);
        let digest = tokio::task::spawn_blocking(move || table.digest());
        digest.await.expect("making a digest does not panic")
    }

    async fn read_everything(&self) -> Result<(), CatalogError> {
        self.clusters.replace(self.catalog.clusters().await?);
        if let Some(everything) = self.catalog.changes_since(Revision::default()).await? {
            self.publish(everything, RoutingTable::replace);
        }
        Ok(())
    }
}

impl Prompt {
    /// As the metrics call it.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Own => "own",
            Self::Word => "word",
            Self::Renewal => "renewal",
            Self::Timer => "timer",
        }
    }
}

impl From<Changes> for TableUpdate {
    fn from(changes: Changes) -> Self {
        Self {
            routes: changes.routes.into_iter().map(Into::into).collect(),
            api_keys: changes.api_keys,
            identity: changes.identity,
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
