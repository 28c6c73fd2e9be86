//! How far a commit had got, and on which history of which cluster.

use std::{
    collections::BTreeMap,
    fmt,
    num::ParseIntError,
    str::FromStr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::Lsn;

/// A timeline of a cluster's history: it grows by a promotion, and LSNs of different timelines do not compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timeline(pub u32);

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Timeline {
    type Err = ParseIntError;

    /// Reads the first 8 characters of the name of a log file, which are the timeline in hexadecimal.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u32::from_str_radix(text, 16).map(Self)
    }
}

/// How far a commit had got in the write-ahead log of its cluster.
///
/// Belongs to one cluster. Of two positions of a cluster the greater is the one that includes the other: that of the later
/// timeline, and on one timeline that of the greater LSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The history the LSN belongs to.
    pub timeline: Timeline,
    /// The insert position on the primary after the commit had returned.
    pub lsn: Lsn,
    /// When that was, in milliseconds since 1970 by the clock of the instance that wrote. It bounds the position's life, and
    /// decides alone where LSNs are of no use.
    pub written_at: u64,
}

impl Position {
    /// The position of a commit that has returned just now.
    pub fn now(timeline: Timeline, lsn: Lsn) -> Self {
        Self {
            timeline,
            lsn,
            written_at: milliseconds(SystemTime::now()),
        }
    }

    /// How long ago the commit returned, by this machine's clock; zero when the other clock is ahead.
    pub fn age(&self) -> Duration {
        Duration::from_millis(milliseconds(SystemTime::now()).saturating_sub(self.written_at))
    }

    /// Whether the clock that wrote is further ahead than `limit`.
    pub(crate) fn is_ahead_by_more_than(&self, limit: Duration) -> bool {
        let now = u128::from(milliseconds(SystemTime::now()));
        u128::from(self.written_at) > now + limit.as_millis()
    }
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Positions by cluster. They only grow, except where one is dropped because it has been reached or can never be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    by_cluster: BTreeMap<Arc<str>, Position>,
}

impl Positions {
    /// Clusters that a token has room for; the positions that were written last stay.
    pub const MOST_CLUSTERS: usize = 8;
    /// Bytes of a cluster's name that a token has room for.
    pub const LONGEST_NAME: usize = 63;

    /// The position on this cluster.
    pub fn get(&self, cluster: &str) -> Option<Position> {
        self.by_cluster.get(cluster).copied()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_cluster.is_empty()
    }

    /// How many clusters there are.
    pub fn len(&self) -> usize {
        self.by_cluster.len()
    }

    /// Clusters and positions, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Position)> {
        self.by_cluster.iter()
    }

    /// Raises the position on a cluster; a lower one changes nothing.
    pub fn raise(&mut self, cluster: &Arc<str>, position: Position) {
        match self.by_cluster.get_mut(cluster) {
            Some(known) => *known = position.max(*known),
            None if cluster.len() <= Self::LONGEST_NAME => {
                self.by_cluster.insert(Arc::clone(cluster), position);
                self.shed();
            }
            None => {}
        }
    }

    /// Raises all to those of `others`.
    pub fn merge(&mut self, others: &Self) {
        for (cluster, position) in &others.by_cluster {
            self.raise(cluster, *position);
        }
    }

    /// Replaces (or with `None` drops) the position on a cluster, if it is still the one that was `checked`.
    pub fn replace(&mut self, cluster: &str, checked: Position, by: Option<Position>) -> bool {
        let Some(known) = self.by_cluster.get_mut(cluster) else {
            return false;
        };
        if *known != checked {
            return false;
        }
        match by {
            Some(position) => *known = position,
            None => drop(self.by_cluster.remove(cluster)),
        }
        true
    }

    /// Drops those that `withdrawn` has reached.
    pub(crate) fn withdraw(&mut self, withdrawn: &Self) {
        self.by_cluster.retain(|cluster, position| {
            withdrawn
                .get(cluster)
                .is_none_or(|withdrawn| *position > withdrawn)
        });
    }

    /// Drops those for which `keep` is false, and says how many.
    pub fn retain(&mut self, mut keep: impl FnMut(&Position) -> bool) -> usize {
        let before = self.by_cluster.len();
        self.by_cluster.retain(|_, position| keep(position));
        before - self.by_cluster.len()
    }

    fn shed(&mut self) {
        if self.by_cluster.len() <= Self::MOST_CLUSTERS {
            return;
        }
        let oldest = self
            .by_cluster
            .iter()
            .min_by_key(|(_, position)| position.written_at);
        if let Some(oldest) = oldest.map(|(cluster, _)| Arc::clone(cluster)) {
            self.by_cluster.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn position(timeline: u32, lsn: u64, written_at: u64) -> Position {
        Position {
            timeline: Timeline(timeline),
            lsn: Lsn::from_bytes(lsn),
            written_at,
        }
    }

    #[test]
    fn the_greater_position_is_the_one_of_the_later_timeline() {
        assert!(position(2, 10, 0) > position(1, 20, 9));
        assert!(position(1, 20, 0) > position(1, 10, 9));
        assert_eq!("0000000A".parse(), Ok(Timeline(10)));
    }

    #[test]
    fn a_position_is_replaced_only_if_it_is_the_one_that_was_checked() {
        let main: Arc<str> = "main".into();
        let mut positions = Positions::default();
        positions.raise(&main, position(1, 10, 0));
        let checked = positions.get("main").unwrap();
        positions.raise(&main, position(1, 11, 0));
        assert!(!positions.replace("main", checked, None));
        assert!(!positions.replace("other", checked, None));
        let checked = positions.get("main").unwrap();
        assert!(positions.replace("main", checked, Some(position(2, 5, 1))));
        assert_eq!(positions.get("main"), Some(position(2, 5, 1)));
    }

    #[test]
    fn the_clusters_written_last_stay() {
        let mut positions = Positions::default();
        for written_at in 0..20 {
            positions.raise(&format!("c{written_at}").into(), position(1, 1, written_at));
        }
        assert_eq!(positions.len(), Positions::MOST_CLUSTERS);
        assert!(positions.iter().all(|(_, position)| position.written_at >= 12));
        positions.raise(&"x".repeat(64).into(), position(1, 1, 99));
        assert!(positions.get(&"x".repeat(64)).is_none());
    }

    proptest! {
        #[test]
        fn merging_is_the_maximum_in_any_order(
            writes in prop::collection::vec((0_usize..4, 1_u32..3, 0_u64..9), 0..12),
        ) {
            let names: Vec<Arc<str>> = ["a", "b", "c", "d"].map(Into::into).into();
            let (mut forward, mut backward) = (Positions::default(), Positions::default());
            for (name, timeline, lsn) in &writes {
                forward.raise(&names[*name], position(*timeline, *lsn, 0));
            }
            for (name, timeline, lsn) in writes.iter().rev() {
                let mut one = Positions::default();
                one.raise(&names[*name], position(*timeline, *lsn, 0));
                backward.merge(&one);
            }
            prop_assert_eq!(&forward, &backward);
            for (name, timeline, lsn) in &writes {
                prop_assert!(forward.get(&names[*name]).unwrap() >= position(*timeline, *lsn, 0));
            }
        }
    }
}
