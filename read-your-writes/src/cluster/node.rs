//! A node, and the hold on it of whoever it was chosen for.

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use super::{Reason, budget::Permit, counters::ReadCounters, monitor::Progress};
use crate::{Consistency, ServedBy, Session};

/// One node.
pub struct Node<N> {
    pub(super) name: Arc<str>,
    /// Name in metrics: with the cluster's.
    pub(super) label: Arc<str>,
    pub(super) served_by: ServedBy,
    pub(super) payload: N,
    pub(super) in_flight: AtomicU32,
    pub(super) progress: Progress,
    /// It has failed several probes in a row.
    pub(super) silent: watch::Sender<bool>,
    pub(super) reads: Arc<ReadCounters>,
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

/// A node that serves a read, for as long as this is held.
#[derive(Debug)]
pub struct Chosen<N> {
    node: Arc<Node<N>>,
    level: Consistency,
    is_primary: bool,
    staleness: Option<Duration>,
    reason: Reason,
    /// Given back with the choice.
    permit: Option<Permit>,
}

impl<N> Chosen<N> {
    pub(super) fn new(node: &Arc<Node<N>>, level: Consistency, reason: Reason) -> Self {
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

    pub(super) fn fallen_back(self, permit: Option<Permit>) -> Self {
        let mut fallen_back = self;
        fallen_back.permit = permit;
        fallen_back
    }

    pub(super) fn on_replica(self, staleness: Option<Duration>) -> Self {
        let mut on_replica = self;
        on_replica.is_primary = false;
        on_replica.staleness = staleness;
        on_replica
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
    }
}
