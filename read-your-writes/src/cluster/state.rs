//! What is known about the nodes of a cluster, and what follows from it. Pure: moments and answers are passed in.
//!
//! Owns which node is the primary, which replicas may be chosen, and how old their data can be. Refuses to know connections,
//! tasks and positions of callers.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{
    election::{self, Candidate},
    probe::Status,
    samples::Samples,
};
use crate::{LogGeometry, Lsn, Mode, ReadSettings, Timeline};

/// Why a node is not among the replicas that may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ineligible {
    /// It is the primary.
    Primary,
    /// It has not been asked yet.
    Unknown,
    /// The last probe failed or took too long.
    Unreachable,
    /// It is no standby: promoted, or another server's address.
    NotInRecovery,
    /// It belongs to another cluster.
    ForeignSystem,
    /// It follows another history than the primary.
    OtherTimeline,
    /// It does not say how far it has replayed: it has just started.
    NotReplaying,
    /// How old its data is cannot be told yet.
    UnknownStaleness,
    /// Its data may be older than allowed.
    Stale,
    /// It is further behind than allowed.
    Lagging,
    /// It has left lately and has to answer well for a while.
    Recovering,
}

impl Ineligible {
    /// The reason in words, for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "it is the primary",
            Self::Unknown => "it has not answered yet",
            Self::Unreachable => "it cannot be reached or does not answer in time",
            Self::NotInRecovery => "it is not a standby",
            Self::ForeignSystem => "it belongs to another cluster",
            Self::OtherTimeline => "it is on another timeline than the primary",
            Self::NotReplaying => "it does not say how far it has replayed",
            Self::UnknownStaleness => "how stale it is is not known yet",
            Self::Stale => "it is too stale",
            Self::Lagging => "it is too far behind",
            Self::Recovering => "it came back just now and is being watched",
        }
    }
}

impl fmt::Display for Ineligible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the last probe of a node has said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    Never,
    Answered(Status),
    Failed,
}

/// One node.
#[derive(Clone, Debug, Default)]
struct NodeState {
    seen: Seen,
    /// Since when probes have failed without a break.
    failing_since: Option<Instant>,
    /// The last answer, which stays when probes fail.
    last: Option<Status>,
    /// Good probes since the last bad one.
    good: u32,
    /// Whether it was eligible before, so that it has to prove itself again after leaving.
    has_served: bool,
}

/// One node as a choice sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeView {
    /// Whether a read may go there, if it is fresh enough at that moment.
    pub(super) verdict: Result<(), Ineligible>,
    pub(super) timeline: Option<Timeline>,
    pub(super) replayed: Option<Lsn>,
    /// All that was committed before this moment is there. Absent where places in the log say nothing.
    pub(super) includes: Option<Instant>,
}

/// The cluster at one moment, for any number of choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    /// The node that writes go to.
    pub(super) primary: usize,
    /// Its timeline, once it has answered.
    pub(super) timeline: Option<Timeline>,
    /// Its insert position when it was asked last.
    pub(super) primary_lsn: Option<Lsn>,
    /// When it was asked last and has answered.
    pub(super) primary_asked: Option<Instant>,
    /// Whatever is fresher than [`ReadSettings::max_staleness`] has got here.
    pub(super) settled: Option<Lsn>,
    pub(super) log: LogGeometry,
    pub(super) nodes: Vec<NodeView>,
}

/// What is known about a cluster.
#[derive(Debug)]
pub(super) struct ClusterState {
    settings: ReadSettings,
    nodes: Vec<NodeState>,
    primary: usize,
    /// The identity of the primary's cluster, once it has answered.
    system: Option<i64>,
    log: LogGeometry,
    timeline: Option<Timeline>,
    /// The last timeline of which a caller's position has said that writes go there.
    heard_of: Timeline,
    primary_asked: Option<Instant>,
    samples: Samples,
}

impl ClusterState {
    /// `nodes` nodes of which nothing is known, and the one that is said to be the primary.
    pub(super) fn new(nodes: usize, primary: usize, settings: ReadSettings) -> Self {
        Self {
            settings,
            nodes: vec![NodeState::default(); nodes],
            primary,
            system: None,
            log: LogGeometry::default(),
            timeline: None,
            heard_of: Timeline(0),
            primary_asked: None,
            samples: Samples::default(),
        }
    }

    /// Takes in what a probe that was sent at `sent` has answered, or that it has failed.
    pub(super) fn probed(&mut self, node: usize, sent: Instant, answer: Option<Status>, now: Instant) {
        let state = &mut self.nodes[node];
        match answer {
            Some(status) => {
                state.seen = Seen::Answered(status);
                state.last = Some(status);
                state.failing_since = None;
            }
            None => {
                state.seen = Seen::Failed;
                state.failing_since.get_or_insert(now);
            }
        }
        self.elect(now);
        if node == self.primary
            && let Some(status) = answer.filter(|status| !status.in_recovery)
        {
            self.primary_answered(status, sent);
        }
        let standing = self.standing(node, now);
        let state = &mut self.nodes[node];
        state.good = if standing.is_ok() {
            state.good.saturating_add(1)
        } else {
            0
        };
        if self.verdict(node, now).is_ok() {
            self.nodes[node].has_served = true;
        }
    }

    /// A caller's position is on this timeline.
    pub(super) fn heard_of(&mut self, timeline: Timeline, now: Instant) {
        self.heard_of = timeline;
        self.elect(now);
    }

    fn primary_answered(&mut self, status: Status, sent: Instant) {
        if self.timeline != status.timeline || self.system != Some(status.identity.system) {
            self.samples.clear();
        }
        self.primary_asked = Some(sent);
        self.timeline = status.timeline;
        self.system = Some(status.identity.system);
        self.log = status.identity.log;
        if let Some(lsn) = status.lsn {
            self.samples.push(sent, lsn.without_page_header(self.log));
        }
    }

    fn elect(&mut self, now: Instant) {
        let candidates: Vec<Candidate> = self.nodes.iter().map(|node| self.candidate(node, now)).collect();
        let elected = election::elect(
            self.primary,
            &candidates,
            self.timeline,
            self.heard_of,
            self.settings.failover_after,
        );
        if elected == self.primary {
            return;
        }
        self.primary = elected;
        if let Seen::Answered(status) = self.nodes[elected].seen {
            // Its places in the log are those of another history from here on; the next probe is the first sample.
            self.samples.clear();
            self.timeline = status.timeline;
        }
    }

    fn candidate(&self, node: &NodeState, now: Instant) -> Candidate {
        let same_system = |status: &Status| self.system.is_none_or(|system| system == status.identity.system);
        match &node.seen {
            Seen::Answered(status) if !status.in_recovery && same_system(status) => {
                Candidate::Writable(status.timeline.unwrap_or_default())
            }
            Seen::Answered(_) => Candidate::Standby,
            Seen::Never | Seen::Failed => Candidate::Silent(
                node.failing_since
                    .map_or(Duration::ZERO, |since| now.saturating_duration_since(since)),
            ),
        }
    }

    /// Whether a node is what a replica should be, not counting how long it has been so.
    fn standing(&self, node: usize, now: Instant) -> Result<(), Ineligible> {
        if node == self.primary {
            return Err(Ineligible::Primary);
        }
        let status = match &self.nodes[node].seen {
            Seen::Never => return Err(Ineligible::Unknown),
            Seen::Failed => return Err(Ineligible::Unreachable),
            Seen::Answered(status) => status,
        };
        if !status.in_recovery {
            return Err(Ineligible::NotInRecovery);
        }
        if self.system.is_some_and(|system| system != status.identity.system) {
            return Err(Ineligible::ForeignSystem);
        }
        if self.settings.mode == Mode::Window && status.identity.aurora {
            return Ok(());
        }
        let replayed = status.lsn.ok_or(Ineligible::NotReplaying)?;
        if self.timeline.is_some() && status.timeline != self.timeline {
            return Err(Ineligible::OtherTimeline);
        }
        let includes = self
            .samples
            .included_by(replayed)
            .ok_or(Ineligible::UnknownStaleness)?;
        if now.saturating_duration_since(includes) > self.settings.max_staleness {
            return Err(Ineligible::Stale);
        }
        let behind = self
            .primary_lsn()
            .map_or(0, |primary| primary.bytes_since(replayed));
        match self.settings.max_lag_bytes {
            Some(limit) if behind > limit => Err(Ineligible::Lagging),
            _ => Ok(()),
        }
    }

    fn verdict(&self, node: usize, now: Instant) -> Result<(), Ineligible> {
        self.standing(node, now)?;
        let state = &self.nodes[node];
        let needed = if state.has_served {
            self.settings.good_probes
        } else {
            1
        };
        if state.good < needed {
            return Err(Ineligible::Recovering);
        }
        Ok(())
    }

    fn primary_lsn(&self) -> Option<Lsn> {
        match self.nodes[self.primary].last {
            Some(status) if !status.in_recovery && status.timeline == self.timeline => {
                status.lsn.map(|lsn| lsn.without_page_header(self.log))
            }
            _ => None,
        }
    }

    /// What a choice needs to know, as of `now`.
    pub(super) fn picture(&self, now: Instant) -> Picture {
        let nodes = (0..self.nodes.len())
            .map(|node| self.node_view(node, now))
            .collect();
        Picture {
            primary: self.primary,
            timeline: self.timeline,
            primary_lsn: self.primary_lsn(),
            primary_asked: self.primary_asked,
            settled: self.samples.settled(now, self.settings.max_staleness),
            log: self.log,
            nodes,
        }
    }

    fn node_view(&self, node: usize, now: Instant) -> NodeView {
        let last = self.nodes[node].last;
        let replayed = last
            .filter(|status| status.in_recovery)
            .and_then(|status| status.lsn);
        let timeline = last.and_then(|status| status.timeline);
        NodeView {
            verdict: self.verdict(node, now),
            timeline,
            replayed,
            includes: replayed
                .filter(|_| timeline == self.timeline)
                .and_then(|replayed| self.samples.included_by(replayed)),
        }
    }
}
