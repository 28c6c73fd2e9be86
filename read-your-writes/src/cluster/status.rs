//! The nodes as they are seen, for people.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{Ineligible, Shared};
use crate::{Lsn, Timeline};

/// One node as it is seen at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its name within the cluster.
    pub name: Arc<str>,
    /// Whether writes go to it.
    pub is_primary: bool,
    /// Whether reads may go to it, or why not.
    pub eligible: Result<(), Ineligible>,
    /// The history that it is on, as far as it has said.
    pub timeline: Option<Timeline>,
    /// Where a primary's log stood, or what a replica had replayed, when it was asked last.
    pub lsn: Option<Lsn>,
    /// Bytes of log that a replica has not replayed.
    pub lag_bytes: Option<u64>,
    /// How old a replica's data can be at most.
    pub staleness: Option<Duration>,
    /// Reads and writes that are under way on it.
    pub in_flight: u32,
}

pub(super) fn of<N>(shared: &Shared<N>, now: Instant) -> Vec<NodeStatus> {
    let picture = shared.picture.load();
    let nodes = shared.nodes.iter().zip(&picture.nodes).enumerate();
    nodes
        .map(|(index, (node, view))| {
            let is_primary = index == picture.primary;
            NodeStatus {
                name: Arc::clone(&node.name),
                is_primary,
                eligible: view.verdict,
                timeline: view.timeline,
                lsn: if is_primary {
                    picture.primary_lsn
                } else {
                    view.replayed
                },
                lag_bytes: match (picture.primary_lsn, view.replayed) {
                    (Some(primary), Some(replayed)) if !is_primary => Some(primary.bytes_since(replayed)),
                    _ => None,
                },
                staleness: view
                    .includes
                    .filter(|_| !is_primary)
                    .map(|includes| now.saturating_duration_since(includes)),
                in_flight: node.in_flight.load(Ordering::Relaxed),
            }
        })
        .collect()
}
