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
mod probe;
mod samples;
mod state;
mod statements;
mod status;

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    budget::{Budget, Permit},
    choice::{Decision, decide, is_everywhere},
    counters::ReadCounters,
    monitor::Progress,
    state::{ClusterState, Picture},
};
pub use self::{choice::Reason, state::Ineligible, statements::ReadError, status::NodeStatus};
use crate::{Consistency, Mode, Position, ReadLevel, ReadSettings, ServedBy, Session, Timeline, metrics};

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

/// One node.
pub struct Node<N> {
    name: Arc<str>,
    /// Name in metrics: with the cluster's.
    label: Arc<str>,
    served_by: ServedBy,
    payload: N,
    in_flight: AtomicU32,
    progress: Progress,
    /// It has failed several probes in a row.
    silent: watch::Sender<bool>,
    reads: Arc<ReadCounters>,
}

impl<N> Node<N> {
    /// Its name within the cluster.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What it was described with.
    pub fn payload(&self) -> &N {
        &self.payload
    }
}

impl<N> fmt::Debug for Node<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.label)
            .finish_non_exhaustive()
    }
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

/// Too many reads have fallen back to the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many reads have fallen back to the primary because no replica can serve them")]
pub struct FallbackRefused;

/// A node that serves a read, for as long as this is held.
#[derive(Debug)]
pub struct Chosen<N> {
    node: Arc<Node<N>>,
    level: Consistency,
    is_primary: bool,
    staleness: Option<Duration>,
    reason: Reason,
    permit: Option<Permit>,
}

impl<N> Chosen<N> {
    fn new(node: &Arc<Node<N>>, level: Consistency, reason: Reason) -> Self {
        node.in_flight.fetch_add(1, Ordering::Relaxed);
        Self {
            node: Arc::clone(node),
            level,
            is_primary: true,
            staleness: None,
            reason,
            permit: None,
        }
    }

    /// Whether it is the primary.
    pub fn is_primary(&self) -> bool {
        self.is_primary
    }

    /// How old a replica's data can be at most; absent on the primary.
    pub fn staleness(&self) -> Option<Duration> {
        self.staleness
    }

    /// Why this node.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Notes in the session that the node has answered, whatever the answer was.
    pub fn has_served(&self, session: &Session) {
        self.node.reads.count(self.level, self.reason);
        let by = if self.is_primary {
            ServedBy::Primary
        } else {
            self.node.served_by.clone()
        };
        session.served(by, self.staleness);
    }

    /// Ends when the node has failed several probes in a row: a read that waits for it waits in vain.
    pub async fn is_lost(&self) {
        let mut silent = self.node.silent.subscribe();
        // The sender lives as long as the node.
        let _ = silent.wait_for(|silent| *silent).await;
    }
}

impl<N> Deref for Chosen<N> {
    type Target = Node<N>;

    fn deref(&self) -> &Node<N> {
        &self.node
    }
}

impl<N> Drop for Chosen<N> {
    fn drop(&mut self) {
        self.node.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.permit = None;
    }
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

impl<N> Shared<N> {
    fn decide(&self, level: ReadLevel, position: Option<Position>, now: Instant) -> Decision {
        let picture = self.picture.load();
        decide(&picture, &self.settings, level, position, now, |nodes, count| {
            self.lighter(nodes, count)
        })
    }

    /// Of two nodes picked at random, the one with fewer requests in flight (Mitzenmacher, "The Power of Two Choices in
    /// Randomized Load Balancing").
    fn lighter(&self, nodes: &mut dyn Iterator<Item = usize>, count: usize) -> Option<usize> {
        if count < 2 {
            return nodes.next();
        }
        let random: u32 = rand::random();
        let first = random as usize % count;
        let second = (first + 1 + (random >> 16) as usize % (count - 1)) % count;
        let mut picked = [None; 2];
        for (place, node) in nodes.enumerate() {
            if place == first {
                picked[0] = Some(node);
            } else if place == second {
                picked[1] = Some(node);
            }
        }
        let load = |node: usize| self.nodes[node].in_flight.load(Ordering::Relaxed);
        match picked {
            [Some(one), Some(other)] if load(other) < load(one) => Some(other),
            [one, other] => one.or(other),
        }
    }

    fn on_replica(
        &self,
        node: usize,
        includes: Option<Instant>,
        level: ReadLevel,
        reason: Reason,
        now: Instant,
    ) -> Chosen<N> {
        let mut chosen = Chosen::new(&self.nodes[node], level.consistency(), reason);
        chosen.is_primary = false;
        chosen.staleness = includes.map(|includes| now.saturating_duration_since(includes));
        chosen
    }

    async fn on_primary(&self, level: ReadLevel, reason: Reason) -> Result<Chosen<N>, FallbackRefused> {
        let permit = if matches!(reason, Reason::Strict | Reason::NoReplicas) {
            None
        } else {
            Some(self.fall_back(level.consistency()).await?)
        };
        let primary = &self.nodes[self.picture.load().primary];
        let mut chosen = Chosen::new(primary, level.consistency(), reason);
        chosen.permit = permit;
        Ok(chosen)
    }

    async fn fall_back(&self, level: Consistency) -> Result<Permit, FallbackRefused> {
        let permit = self.budget.admit(level).await;
        if permit.is_none() {
            ::metrics::counter!(
                metrics::FALLBACK_REFUSED,
                "cluster" => Arc::clone(&self.name), "consistency" => level.as_str()
            )
            .increment(1);
        }
        permit.ok_or(FallbackRefused)
    }

    /// Gives the freshest replica a moment to replay the write. All who wait for the same node share its probes.
    async fn after_catching_up(
        &self,
        mut node: usize,
        level: ReadLevel,
        position: Position,
    ) -> Result<Chosen<N>, FallbackRefused> {
        let catching_up = async {
            loop {
                self.nodes[node].progress.answered_anew().await;
                let now = Instant::now();
                match self.decide(level, Some(position), now) {
                    Decision::Replica { node, includes, .. } => return Ok((node, includes, now)),
                    Decision::CatchUp { node: freshest } => node = freshest,
                    Decision::Primary(reason) | Decision::Doubtful(reason) => return Err(reason),
                }
            }
        };
        let waited = tokio::time::timeout(self.settings.catch_up_wait, catching_up).await;
        match waited {
            Ok(Ok((node, includes, now))) => {
                Ok(self.on_replica(node, includes, level, Reason::WaitedFor, now))
            }
            Ok(Err(reason)) => self.on_primary(level, reason).await,
            Err(_) => self.on_primary(level, Reason::NotCaughtUp).await,
        }
    }

    /// Finds out whether a position can be reached at all, and replaces it if it cannot: by where the primary stands now,
    /// which includes all writes of the caller that have survived.
    async fn after_looking_again(
        &self,
        level: ReadLevel,
        position: Position,
        reason: Reason,
        session: &Session,
    ) -> Result<Chosen<N>, FallbackRefused> {
        let began = Instant::now();
        self.look_again(position.timeline).await;
        let picture = self.picture.load_full();
        if picture.primary_asked.is_some_and(|asked| asked >= began)
            && let (Some(timeline), Some(lsn)) = (picture.timeline, picture.primary_lsn)
        {
            let outcome = if timeline != position.timeline {
                Some("other_timeline")
            } else {
                (lsn < position.lsn.without_page_header(picture.log)).then_some("lost")
            };
            if let Some(outcome) = outcome
                && session.replace(&self.name, position, Some(Position::now(timeline, lsn)))
            {
                metrics::position(outcome);
            }
        }
        self.on_primary(level, reason).await
    }

    /// Asks the primary how far it has got; and all nodes, if another instance has followed a promotion of which nothing is
    /// known here.
    async fn look_again(&self, timeline: Timeline) {
        let picture = self.picture.load_full();
        let promoted = picture.timeline.is_some_and(|ours| timeline > ours);
        if promoted {
            self.update(|state, now| state.heard_of(timeline, now));
        }
        let asked = self.nodes.iter().enumerate();
        let asked = asked.filter(|(index, _)| promoted || *index == picture.primary);
        let answers = asked.map(|(_, node)| node.progress.answered_anew());
        // A node that is silent is as good as not asked.
        let limit = self.settings.probe_timeout * 2;
        let _ = tokio::time::timeout(limit, futures::future::join_all(answers)).await;
    }

    /// Changes what is known, and shows it to the choices to come.
    fn update<T>(&self, change: impl FnOnce(&mut ClusterState, Instant) -> T) -> T {
        let mut state = self.state.lock();
        let now = Instant::now();
        let answer = change(&mut state, now);
        let picture = Arc::new(state.picture(now));
        let before = self.picture.swap(Arc::clone(&picture));
        drop(state);
        self.show(&before, &picture, now);
        answer
    }

    /// In mode `window` nothing but the window protects a caller, so it has to be much longer than any lag.
    fn compare_with_window(&self, node: &str, staleness: f64) {
        let window = self.settings.window.as_secs_f64();
        if self.settings.mode == Mode::Window
            && staleness * 2.0 > window
            && !self.narrow_window.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                db.node = node,
                db.staleness_s = staleness,
                reads.window_s = window,
                "The window is less than twice the worst lag seen; callers may miss their own writes."
            );
        }
    }

    /// Metrics, and a log line where something has changed.
    fn show(&self, before: &Picture, picture: &Picture, now: Instant) {
        if before.primary != picture.primary {
            tracing::warn!(
                db.cluster = &*self.name,
                db.node = &*self.nodes[picture.primary].name,
                db.timeline = picture.timeline.map(|timeline| timeline.0),
                "Another node is the primary now."
            );
            ::metrics::counter!(metrics::FAILOVERS, "cluster" => Arc::clone(&self.name)).increment(1);
            self.primary.send_replace(picture.primary);
        }
        for (node, (was, is)) in self.nodes.iter().zip(before.nodes.iter().zip(&picture.nodes)) {
            let label = [("node", Arc::clone(&node.label))];
            let eligible = if is.verdict.is_ok() { 1.0 } else { 0.0 };
            ::metrics::gauge!(metrics::ELIGIBLE, &label[..]).set(eligible);
            if let Some(includes) = is.includes {
                let staleness = now.saturating_duration_since(includes).as_secs_f64();
                ::metrics::gauge!(metrics::STALENESS, &label[..]).set(staleness);
                self.compare_with_window(&node.label, staleness);
            }
            if let (Some(primary), Some(replayed)) = (picture.primary_lsn, is.replayed) {
                #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
                let behind = primary.bytes_since(replayed) as f64;
                ::metrics::gauge!(metrics::LAG, &label[..]).set(behind);
            }
            match (was.verdict, is.verdict) {
                (Ok(()), Err(Ineligible::Primary)) => {}
                (Ok(()), Err(reason)) => tracing::warn!(
                    db.node = &*node.label,
                    reason = reason.as_str(),
                    "A replica serves no more reads."
                ),
                (Err(_), Ok(())) => tracing::info!(db.node = &*node.label, "A replica serves reads."),
                _ => {}
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
        let in_use = self.budget.in_use() as f64;
        ::metrics::gauge!(metrics::FALLBACK_IN_USE, "cluster" => Arc::clone(&self.name)).set(in_use);
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
