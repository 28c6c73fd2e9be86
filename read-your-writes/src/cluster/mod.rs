//! The nodes of one cluster: what is known about them, and which of them serves a read.
//!
//! Owns the [probes](probe) and their tasks, the picture that choices are made from, and the budget of reads that fall back
//! to the primary. Refuses to know how connections for statements are kept: whoever starts it gives each node a payload, such
//! as a pool, and gets it back with each choice.

mod budget;
mod choice;
mod counters;
mod election;
mod monitor;
mod node;
mod probe;
mod samples;
mod serving;
mod showing;
mod state;
mod statements;
mod status;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32},
    },
    time::Instant,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    budget::Budget,
    choice::{Decision, is_everywhere},
    counters::ReadCounters,
    monitor::Progress,
    state::{ClusterState, Picture},
};
pub use self::{
    choice::Reason,
    node::{Chosen, Node},
    serving::FallbackRefused,
    state::Ineligible,
    statements::ReadError,
    status::NodeStatus,
};
use crate::{Consistency, Mode, ReadLevel, ReadSettings, ServedBy, Session, metrics};

/// One node as whoever configures the cluster describes it.
#[derive(Clone)]
pub struct NodeSpec<N> {
    /// Its name in headers, metrics and log lines.
    pub name: Arc<str>,
    /// How to reach it for probes: any database, a role that may read `pg_stat_wal_receiver` (a superuser, or a member of
    /// `pg_monitor`).
    pub probe: PgConnectOptions,
    /// Whether it is said to be the primary.
    pub is_primary: bool,
    /// What statements need to reach it.
    pub payload: N,
}

/// The nodes of one cluster. Clones share everything; the probes end with [`Cluster::stop`], or with the last clone.
pub struct Cluster<N> {
    shared: Arc<Shared<N>>,
    _end: Arc<tokio_util::sync::DropGuard>,
    tasks: TaskTracker,
}

struct Shared<N> {
    name: Arc<str>,
    settings: ReadSettings,
    nodes: Vec<Arc<Node<N>>>,
    state: Mutex<ClusterState>,
    picture: ArcSwap<Picture>,
    /// Index of the primary, for those who want to hear of a change.
    primary: watch::Sender<usize>,
    budget: Budget,
    narrow_window: AtomicBool,
    cancelled: CancellationToken,
}

impl<N: Send + Sync + 'static> Cluster<N> {
    /// Begins to watch the nodes. Until the first probes have been answered, reads go to the node that is said to be the
    /// primary.
    ///
    /// # Panics
    ///
    /// When there are no nodes, or outside of a Tokio runtime.
    pub fn start(name: Arc<str>, specs: Vec<NodeSpec<N>>, settings: ReadSettings) -> Self {
        let primary = specs.iter().position(|spec| spec.is_primary).unwrap_or(0);
        let mut probes = Vec::with_capacity(specs.len());
        let mut nodes = Vec::with_capacity(specs.len());
        let reads = Arc::new(ReadCounters::default());
        for spec in specs {
            probes.push(spec.probe);
            nodes.push(Arc::new(Node {
                label: format!("{name}/{}", spec.name).into(),
                served_by: ServedBy::Replica(Arc::clone(&spec.name)),
                name: spec.name,
                payload: spec.payload,
                in_flight: AtomicU32::new(0),
                progress: Progress::default(),
                silent: watch::Sender::new(false),
                reads: Arc::clone(&reads),
            }));
        }
        assert!(!nodes.is_empty(), "a cluster has at least one node");
        let state = ClusterState::new(nodes.len(), primary, settings.clone());
        let shared = Arc::new(Shared {
            name,
            picture: ArcSwap::from_pointee(state.picture(Instant::now())),
            state: Mutex::new(state),
            primary: watch::Sender::new(primary),
            budget: Budget::new(settings.fallback_limit, settings.fallback_wait),
            narrow_window: AtomicBool::new(false),
            settings,
            nodes,
            cancelled: CancellationToken::new(),
        });
        let tasks = TaskTracker::new();
        for (index, options) in probes.into_iter().enumerate() {
            tasks.spawn(monitor::watch(Arc::clone(&shared), index, options));
        }
        tasks.close();
        let end = Arc::new(shared.cancelled.clone().drop_guard());
        Self {
            shared,
            _end: end,
            tasks,
        }
    }

    /// Its name, which positions carry.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// How reads are spread.
    pub fn settings(&self) -> &ReadSettings {
        &self.shared.settings
    }

    /// Whether a write has to be followed by a question for its place in the log.
    pub fn uses_log(&self) -> bool {
        self.shared.settings.mode == Mode::Lsn
    }

    /// All nodes, in the order in which they were described.
    pub fn nodes(&self) -> &[Arc<Node<N>>] {
        &self.shared.nodes
    }

    /// The node that writes go to.
    pub fn primary(&self) -> &Arc<Node<N>> {
        &self.shared.nodes[self.shared.picture.load().primary]
    }

    /// Tells of every change of the primary: its place among [`Self::nodes`].
    pub fn primary_changes(&self) -> watch::Receiver<usize> {
        self.shared.primary.subscribe()
    }

    /// The nodes as they are seen at the moment.
    pub fn status(&self) -> Vec<NodeStatus> {
        status::of(&self.shared, Instant::now())
    }

    /// Chooses the node for a read.
    ///
    /// Without a position to wait for it answers at once, from what is known. The choice is to be held until the read has
    /// ended; see [`Chosen::has_served`].
    ///
    /// # Errors
    ///
    /// [`FallbackRefused`] when no replica qualifies and too many reads have fallen back already.
    pub async fn choose(&self, level: ReadLevel, session: &Session) -> Result<Chosen<N>, FallbackRefused> {
        let shared = &*self.shared;
        if level.consistency() == Consistency::Strict {
            return shared.on_primary(level, Reason::Strict).await;
        }
        if session.has_unknown_cluster() && level.sees_own_writes() {
            return shared.on_primary(level, Reason::UnknownCluster).await;
        }
        let position = session.position(&shared.name);
        let now = Instant::now();
        let decision = shared.decide(level, position, now);
        if let Some(position) = position
            && is_everywhere(&shared.picture.load(), &shared.settings, position)
            && session.replace(&shared.name, position, None)
        {
            metrics::position("reached");
        }
        match (decision, position) {
            (
                Decision::Replica {
                    node,
                    includes,
                    reason,
                },
                _,
            ) => Ok(shared.on_replica(node, includes, level, reason, now)),
            (Decision::Primary(reason), _) => shared.on_primary(level, reason).await,
            (Decision::CatchUp { node }, Some(position)) => {
                shared.after_catching_up(node, level, position).await
            }
            (Decision::Doubtful(reason), Some(position)) => {
                shared.after_looking_again(level, position, reason, session).await
            }
            // Nothing to wait for and nothing to doubt without a position.
            (Decision::CatchUp { .. } | Decision::Doubtful(_), None) => {
                shared.on_primary(level, Reason::NoneEligible).await
            }
        }
    }

    /// The primary for a read that a replica has failed to serve. It counts as fallen back.
    ///
    /// # Errors
    ///
    /// [`FallbackRefused`] when too many reads have fallen back already.
    pub async fn instead(&self, level: ReadLevel, reason: Reason) -> Result<Chosen<N>, FallbackRefused> {
        if reason == Reason::ReplicaFault {
            // Whatever is wrong with the replica, the next look at it should not wait for its turn.
            for node in &self.shared.nodes {
                node.progress.ask();
            }
        }
        self.shared.on_primary(level, reason).await
    }

    /// Ends the probes, and waits until they have ended.
    pub async fn stop(&self) {
        self.shared.cancelled.cancel();
        self.tasks.wait().await;
    }
}

impl<N> Clone for Cluster<N> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            _end: Arc::clone(&self._end),
            tasks: self.tasks.clone(),
        }
    }
}

impl<N> fmt::Debug for Cluster<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("name", &self.shared.name)
            .field("picture", &self.shared.picture.load())
            .finish_non_exhaustive()
    }
}
