//! What an instance does without being asked: its background tasks, by name and period.
//!
//! Refuses to know what the tasks do.

use std::{sync::Arc, time::Duration};

use crate::{
    audit::{self, Trail},
    catalog::Catalog,
    clusters::ClusterDirectory,
    events::{
        Events, Health, Transport,
        broker::{BrokerSettings, ByBroker},
        notify::ByCatalog,
    },
    instances::{FollowSettings, Presence},
    people::People,
    promotions::{self, Promotions},
    provisioning::{Provisioner, resumer},
    routing::follower::{Follower, Prompt},
    tasks::TaskGroup,
};

/// How often the clusters are compared with the catalog.
const LOOK_FOR_ORPHANS: Duration = Duration::from_secs(600);
/// How often sessions and counted attempts that are over are removed.
const SWEEP: Duration = Duration::from_secs(60);

/// The parts of an instance that have something to do in the background.
#[derive(Debug)]
pub(crate) struct Background {
    pub(crate) tasks: TaskGroup,
    pub(crate) catalog: Catalog,
    pub(crate) presence: Arc<Presence>,
    pub(crate) follower: Arc<Follower>,
    pub(crate) provisioner: Arc<Provisioner>,
    pub(crate) clusters: Arc<ClusterDirectory>,
    pub(crate) events: Arc<Health>,
    pub(crate) people: Arc<People>,
    pub(crate) trail: Arc<Trail>,
}

impl Background {
    /// Starts every task. They end with the group.
    pub(crate) fn start(self, broker: Option<BrokerSettings>, settings: &FollowSettings) {
        match broker {
            Some(broker) => self.hear_and_speak(ByBroker::new(broker, self.presence.id)),
            None => self.hear_and_speak(ByCatalog {
                catalog: self.catalog.clone(),
            }),
        }
        self.follow(settings);
        self.record_promotions();
        self.provision();
        self.keep_books();
    }

    fn hear_and_speak<T: Transport>(&self, transport: T) {
        let committed = self.catalog.committed();
        let events = Arc::new(Events {
            transport,
            presence: Arc::clone(&self.presence),
            health: Arc::clone(&self.events),
        });
        let (hearing, cancelled) = (Arc::clone(&events), self.tasks.cancelled());
        self.tasks.spawn("hear-of-changes", async move {
            cancelled.run_until_cancelled(hearing.hear()).await;
        });
        let cancelled = self.tasks.cancelled();
        self.tasks.spawn("speak-of-changes", async move {
            cancelled.run_until_cancelled(events.speak(committed)).await;
        });
    }

    fn follow(&self, settings: &FollowSettings) {
        let presence = Arc::clone(&self.presence);
        let meaning = "The instance's lease cannot be renewed: the others stop waiting for it when it ends.";
        self.tasks
            .keep_up("renew-lease", settings.renew, meaning, move || {
                let presence = Arc::clone(&presence);
                async move { presence.renew().await }
            });
        let presence = Arc::clone(&self.presence);
        let meaning = "The catalog cannot be followed; known tenants are served meanwhile.";
        self.tasks
            .keep_up("follow-catalog", settings.poll, meaning, move || {
                let presence = Arc::clone(&presence);
                async move { presence.follow(Prompt::Timer).await }
            });
        let (follower, catalog) = (Arc::clone(&self.follower), self.catalog.clone());
        let meaning = "The routing table cannot be compared with the catalog.";
        self.tasks
            .keep_up("compare-with-catalog", settings.compare, meaning, move || {
                let (follower, catalog) = (Arc::clone(&follower), catalog.clone());
                async move {
                    follower.verify().await?;
                    catalog.remove_expired_instances().await.map(drop)
                }
            });
    }

    fn record_promotions(&self) {
        let promotions = Arc::new(Promotions {
            catalog: self.catalog.clone(),
            clusters: Arc::clone(&self.clusters),
            follower: Arc::clone(&self.follower),
        });
        let meaning = "A promotion cannot be recorded in the catalog; this instance follows it all the same.";
        self.tasks
            .keep_up("record-promotions", promotions::LOOK, meaning, move || {
                let promotions = Arc::clone(&promotions);
                async move { promotions.record().await.map(drop) }
            });
    }

    fn keep_books(&self) {
        let trail = Arc::clone(&self.trail);
        let meaning = "Failed attempts cannot be written into the audit trail; they are kept until they can.";
        self.tasks
            .keep_up("write-audit-trail", audit::WRITE_EVERY, meaning, move || {
                let trail = Arc::clone(&trail);
                async move { trail.write().await }
            });
        let people = Arc::clone(&self.people);
        let meaning = "Sessions that have ended cannot be removed; they are refused all the same.";
        self.tasks
            .keep_up("remove-ended-sessions", SWEEP, meaning, move || {
                let people = Arc::clone(&people);
                async move { people.sweep().await.map(drop) }
            });
    }

    fn provision(&self) {
        let meaning = "Operations to be taken over cannot be looked for.";
        let provisioner = Arc::clone(&self.provisioner);
        self.tasks
            .keep_up("resume-operations", resumer::LOOK, meaning, move || {
                let provisioner = Arc::clone(&provisioner);
                async move { provisioner.resume_due().await.map(drop) }
            });
        let provisioner = Arc::clone(&self.provisioner);
        self.tasks
            .spawn_every("report-orphans", LOOK_FOR_ORPHANS, move || {
                let provisioner = Arc::clone(&provisioner);
                async move { provisioner.report_orphans().await }
            });
        let (keeper, cancelled) = (Arc::clone(&self.provisioner), self.tasks.cancelled());
        self.tasks.spawn("keep-spares", async move {
            cancelled.run_until_cancelled(keeper.keep_spares()).await;
        });
    }
}
