//! Which node serves a read. Pure: one picture of the cluster decides it all, so that what is checked and what is connected
//! to are the same node.

use std::time::{Duration, Instant};

use super::state::{NodeView, Picture};
use crate::{Consistency, Lsn, Mode, Position, ReadLevel, ReadSettings};

/// Why a read is served where it is; a label of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A replica that is fresh enough, for a caller who has written nothing that counts.
    Fresh,
    /// A replica that has replayed the caller's last write.
    CaughtUp,
    /// A replica that has replayed the caller's last write after a moment of waiting.
    WaitedFor,
    /// The primary, because the read is `strict`.
    Strict,
    /// The primary, because there are no replicas.
    NoReplicas,
    /// The primary, because no replica is eligible.
    NoneEligible,
    /// The primary, because no replica has replayed the caller's last write yet.
    NotCaughtUp,
    /// The primary, because the caller has written within the window.
    Window,
    /// The primary, because the position is of another timeline.
    OtherTimeline,
    /// The primary, because it has not got to the position itself: a crash has taken the write back.
    Lost,
    /// The primary, because the caller has written to a cluster that is not known here.
    UnknownCluster,
    /// The primary, because the replica has cancelled the read.
    Cancelled,
    /// The primary, because the replica failed.
    ReplicaFault,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Fresh,
        Self::CaughtUp,
        Self::WaitedFor,
        Self::Strict,
        Self::NoReplicas,
        Self::NoneEligible,
        Self::NotCaughtUp,
        Self::Window,
        Self::OtherTimeline,
        Self::Lost,
        Self::UnknownCluster,
        Self::Cancelled,
        Self::ReplicaFault,
    ];

    /// Whether a read with this reason is served by a replica.
    pub const fn is_on_replica(self) -> bool {
        matches!(self, Self::Fresh | Self::CaughtUp | Self::WaitedFor)
    }

    /// The reason as it appears in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::CaughtUp => "caught_up",
            Self::WaitedFor => "waited_for",
            Self::Strict => "strict",
            Self::NoReplicas => "no_replicas",
            Self::NoneEligible => "none_eligible",
            Self::NotCaughtUp => "not_caught_up",
            Self::Window => "window",
            Self::OtherTimeline => "other_timeline",
            Self::Lost => "lost",
            Self::UnknownCluster => "unknown_cluster",
            Self::Cancelled => "cancelled",
            Self::ReplicaFault => "replica_fault",
        }
    }
}

/// What is to be done with a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// This replica serves it. Its data includes all that was committed before the moment, where that is known.
    Replica {
        node: usize,
        includes: Option<Instant>,
        reason: Reason,
    },
    /// The primary serves it.
    Primary(Reason),
    /// The primary, unless this replica, the freshest, replays the write within a moment.
    CatchUp { node: usize },
    /// The primary serves it; whether the position can be reached at all has to be found out first.
    Doubtful(Reason),
}

/// A replica may be chosen when its data is fresh enough now, not only when it was probed.
fn fresh(node: &NodeView, settings: &ReadSettings, now: Instant) -> bool {
    node.verdict.is_ok()
        && node
            .includes
            .is_none_or(|includes| now.saturating_duration_since(includes) <= settings.max_staleness)
}

/// Decides. `lighter` says which of two nodes, picked at random among `n`, has less to do.
pub(super) fn decide(
    picture: &Picture,
    settings: &ReadSettings,
    level: ReadLevel,
    position: Option<Position>,
    now: Instant,
    lighter: impl Fn(&mut dyn Iterator<Item = usize>, usize) -> Option<usize>,
) -> Decision {
    if level.consistency() == Consistency::Strict {
        return Decision::Primary(Reason::Strict);
    }
    if picture.nodes.len() == 1 {
        return Decision::Primary(Reason::NoReplicas);
    }
    let needed = match needed(picture, settings, level, position) {
        Ok(needed) => needed,
        Err(decision) => return decision,
    };
    let qualifies = |node: &NodeView| {
        fresh(node, settings, now)
            && needed.is_none_or(|needed| node.replayed.is_some_and(|replayed| replayed >= needed))
    };
    let nodes = &picture.nodes;
    let count = nodes.iter().filter(|node| qualifies(node)).count();
    let mut qualified = nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| qualifies(node))
        .map(|(index, _)| index);
    if let Some(node) = lighter(&mut qualified, count) {
        let reason = if needed.is_some() {
            Reason::CaughtUp
        } else {
            Reason::Fresh
        };
        return Decision::Replica {
            node,
            includes: nodes[node].includes,
            reason,
        };
    }
    let freshest = nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| fresh(node, settings, now))
        .max_by_key(|(_, node)| node.replayed)
        .map(|(index, _)| index);
    match freshest {
        Some(node) if needed.is_some() && settings.catch_up_wait > Duration::ZERO => {
            Decision::CatchUp { node }
        }
        Some(_) => Decision::Primary(Reason::NotCaughtUp),
        None => Decision::Primary(Reason::NoneEligible),
    }
}

/// What a replica must have replayed, or why the primary has to serve the read.
fn needed(
    picture: &Picture,
    settings: &ReadSettings,
    level: ReadLevel,
    position: Option<Position>,
) -> Result<Option<Lsn>, Decision> {
    let Some(position) = position.filter(|_| level.sees_own_writes()) else {
        return Ok(None);
    };
    if settings.mode == Mode::Window {
        return if position.age() <= settings.window {
            Err(Decision::Primary(Reason::Window))
        } else {
            Ok(None)
        };
    }
    match picture.timeline {
        // The primary has not been asked yet, and neither can a replica be eligible.
        None => Err(Decision::Primary(Reason::NoneEligible)),
        Some(timeline) if timeline != position.timeline => Err(Decision::Doubtful(Reason::OtherTimeline)),
        // The write is usually younger than the last look at the primary. When it is not, it may have been lost.
        Some(_)
            if picture
                .primary_lsn
                .is_some_and(|primary| primary < reachable(picture, position))
                && position.age() > settings.probe_interval * 2 + settings.probe_timeout =>
        {
            Err(Decision::Doubtful(Reason::Lost))
        }
        Some(_) => Ok(Some(reachable(picture, position))),
    }
}

/// The place in the log as a standby reports it.
fn reachable(picture: &Picture, position: Position) -> Lsn {
    position.lsn.without_page_header(picture.log)
}

/// Whether a read without this position would see the write all the same, wherever it goes: every replica that can be chosen,
/// now or after it has come back, has replayed it.
pub(super) fn is_everywhere(picture: &Picture, settings: &ReadSettings, position: Position) -> bool {
    if settings.mode == Mode::Window {
        return position.age() > settings.window;
    }
    if picture.timeline != Some(position.timeline) {
        return false;
    }
    let lsn = reachable(picture, position);
    picture.settled.is_some_and(|settled| settled >= lsn)
        || picture.nodes.iter().enumerate().all(|(index, node)| {
            index == picture.primary
                || (node.timeline == picture.timeline
                    && node.replayed.is_some_and(|replayed| replayed >= lsn))
        })
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
