//! This instance among the others: registration, lease, and how far a change has got.
//!
//! Refuses to know how word of changes travels; what it does on word is here.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{
    catalog::{Catalog, CatalogError},
    control::Propagation,
    ids::{InstanceId, Revision},
    routing::{
        follower::{Follower, Prompt},
        table::RoutingTable,
    },
};

/// How instances keep up with the catalog and with each other.
#[derive(Clone, Debug)]
pub struct FollowSettings {
    /// How often an instance renews its lease. Renewing shows whether the catalog has changed, so a change of which no word
    /// comes is applied after so long.
    pub renew: Duration,
    /// How long an instance counts as live after its last renewal: so long others may wait for one that has crashed.
    pub lease: Duration,
    /// How often the catalog is asked for changes in any case.
    pub poll: Duration,
    /// How often the whole routing table is compared with the catalog by a digest.
    pub compare: Duration,
}

impl Default for FollowSettings {
    fn default() -> Self {
        Self {
            renew: Duration::from_secs(1),
            lease: Duration::from_secs(5),
            poll: Duration::from_secs(5),
            compare: Duration::from_secs(30),
        }
    }
}

/// Pause between two looks at how far the others are.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long the catalog may take to renew a lease. One that hangs is given up, so that its return is noticed.
const RENEWED_WITHIN: Duration = Duration::from_secs(5);

/// This instance as the others see it.
#[derive(Debug)]
pub(crate) struct Presence {
    pub(crate) id: InstanceId,
    pub(crate) address: String,
    pub(crate) catalog: Catalog,
    pub(crate) table: Arc<RoutingTable>,
    pub(crate) follower: Arc<Follower>,
    pub(crate) lease: Duration,
    /// What the others know to be applied. Held while it is told, so that an older report never overtakes a newer one.
    reported: tokio::sync::Mutex<Revision>,
    renewed: Mutex<Instant>,
    born: Instant,
    /// When the table was last known to lack nothing, in milliseconds after `born`.
    current_at: AtomicU64,
}

impl Presence {
    /// Registers a new instance, and brings its table up with the catalog before anybody waits for it.
    pub(crate) async fn register(
        address: String,
        catalog: Catalog,
        table: Arc<RoutingTable>,
        follower: Arc<Follower>,
        lease: Duration,
    ) -> Result<Self, CatalogError> {
        let presence = Self {
            id: InstanceId::generate(),
            address,
            catalog,
            table,
            follower,
            lease,
            reported: tokio::sync::Mutex::default(),
            renewed: Mutex::new(Instant::now()),
            born: Instant::now(),
            current_at: AtomicU64::new(0),
        };
        presence.renew().await?;
        Ok(presence)
    }

    /// Renews the lease, and applies what has changed without a word.
    pub(crate) async fn renew(&self) -> Result<(), CatalogError> {
        let began = self.age();
        let newest = self.report().await?;
        if newest > self.table.revision() {
            self.follower.catch_up_to(newest, Prompt::Renewal).await?;
            self.report().await?;
        }
        self.current_at.store(began, Ordering::Relaxed);
        Ok(())
    }

    fn age(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// How long ago the table was last known to lack nothing that the catalog had.
    pub(crate) fn cut_off_for(&self) -> Duration {
        Duration::from_millis(self.age().saturating_sub(self.current_at.load(Ordering::Relaxed)))
    }

    /// Applies all changes, and says so at once: somebody may wait for it.
    pub(crate) async fn follow(&self, prompt: Prompt) -> Result<(), CatalogError> {
        self.follower.catch_up(prompt).await?;
        self.report_news().await
    }

    /// Applies the changes up to a revision of which there was word, and says so at once.
    pub(crate) async fn follow_to(&self, revision: Revision) -> Result<(), CatalogError> {
        self.follower.catch_up_to(revision, Prompt::Word).await?;
        self.report_news().await
    }

    async fn report_news(&self) -> Result<(), CatalogError> {
        let mut reported = self.reported.lock().await;
        if self.table.revision() > *reported {
            self.report_under(&mut reported).await?;
        }
        Ok(())
    }

    /// Renews the lease and reports what has been applied. Answers the catalog's revision.
    async fn report(&self) -> Result<Revision, CatalogError> {
        self.report_under(&mut *self.reported.lock().await).await
    }

    async fn report_under(&self, reported: &mut Revision) -> Result<Revision, CatalogError> {
        let applied = self.table.revision();
        let renewing = self
            .catalog
            .renew_instance(self.id, &self.address, applied, self.lease);
        let renewal = tokio::time::timeout(RENEWED_WITHIN, renewing)
            .await
            .map_err(|_| CatalogError::silent())??;
        *reported = applied;
        *self.renewed.lock() = Instant::now();
        metrics::gauge!("tenantry_catalog_last_contact_timestamp_seconds").set(now());
        if renewal.had_ended {
            metrics::counter!("tenantry_instance_leases_lost_total").increment(1);
            tracing::warn!(
                instance.id = %self.id,
                "The lease had ended, and other instances have not waited for this one since. It is renewed."
            );
        }
        Ok(renewal.newest)
    }

    /// For how long the lease has not been renewed, when that is so long that it has ended.
    pub(crate) fn lease_ended_for(&self) -> Option<Duration> {
        self.renewed.lock().elapsed().checked_sub(self.lease)
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

/// Seconds since 1970.
fn now() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
