//! How far a commit had got, and on which history of which cluster.

use crate::Lsn;

/// A timeline of a cluster's history: it grows by a promotion, and LSNs of different timelines do not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timeline(pub u32);

/// How far a commit had got in the write-ahead log of its cluster.
///
/// A position belongs to a cluster, not to a tenant. It has no order of its own: only positions of one cluster and one
/// timeline compare, by their LSN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The cluster's name in the catalog.
    pub cluster: Box<str>,
    /// The history the LSN belongs to.
    pub timeline: Timeline,
    /// The insert position on the primary after the commit had returned.
    pub lsn: Lsn,
}
