//! From a decision to a node that serves a read: waiting for a replica, looking again, falling back.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use super::{
    Chosen, Reason, Shared,
    budget::Permit,
    choice::{Decision, decide},
};
use crate::{Consistency, Position, ReadLevel, Session, Timeline, metrics};

/// Too many reads have fallen back to the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many reads have fallen back to the primary because no replica can serve them")]
pub struct FallbackRefused;

impl<N> Shared<N> {
    pub(super) fn decide(&self, level: ReadLevel, position: Option<Position>, now: Instant) -> Decision {
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

    pub(super) fn on_replica(
        &self,
        node: usize,
        includes: Option<Instant>,
        level: ReadLevel,
        reason: Reason,
        now: Instant,
    ) -> Chosen<N> {
        let staleness = includes.map(|includes| now.saturating_duration_since(includes));
        Chosen::new(&self.nodes[node], level.consistency(), reason).on_replica(staleness)
    }

    pub(super) async fn on_primary(
        &self,
        level: ReadLevel,
        reason: Reason,
    ) -> Result<Chosen<N>, FallbackRefused> {
        let permit = if matches!(reason, Reason::Strict | Reason::NoReplicas) {
            None
        } else {
            Some(self.fall_back(level.consistency()).await?)
        };
        let primary = &self.nodes[self.picture.load().primary];
        Ok(Chosen::new(primary, level.consistency(), reason).fallen_back(permit))
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
    pub(super) async fn after_catching_up(
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
    pub(super) async fn after_looking_again(
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
}
