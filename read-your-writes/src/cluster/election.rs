//! Which node writes go to. Pure.
//!
//! The catalog, or whoever configures the cluster, says which node is the primary. A promotion that nobody has told of is
//! found out: by a node that is not in recovery and has a later timeline, while the primary is silent. A replica that was
//! promoted by mistake beside a primary in good health is not followed, unless a caller's position shows that writes have
//! already gone there through another instance.

use std::time::Duration;

use crate::Timeline;

/// A node as the election sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Candidate {
    /// It takes writes, on this timeline.
    Writable(Timeline),
    /// It is in recovery, or of another cluster.
    Standby,
    /// It has not answered for so long.
    Silent(Duration),
}

/// The primary from now on.
pub(super) fn elect(
    current: usize,
    nodes: &[Candidate],
    timeline: Option<Timeline>,
    heard_of: Timeline,
    failover_after: Duration,
) -> usize {
    let newest = nodes
        .iter()
        .enumerate()
        .filter_map(|(index, node)| match node {
            Candidate::Writable(timeline) if index != current => Some((*timeline, index)),
            _ => None,
        })
        .max();
    let Some((newest, index)) = newest else {
        return current;
    };
    let later = match nodes[current] {
        Candidate::Writable(own) => newest > own && heard_of == newest,
        // It was demoted: it follows somebody.
        Candidate::Standby => timeline.is_none_or(|known| newest >= known),
        Candidate::Silent(since) => {
            let later = timeline.is_none_or(|known| newest > known);
            later && (since >= failover_after || heard_of == newest)
        }
    };
    if later { index } else { current }
}

#[cfg(test)]
mod tests {
    use super::{Candidate::*, *};

    const AFTER: Duration = Duration::from_secs(1);
    const LONG: Candidate = Silent(Duration::from_secs(2));

    fn elected(nodes: &[Candidate], timeline: u32, heard_of: u32) -> usize {
        elect(0, nodes, Some(Timeline(timeline)), Timeline(heard_of), AFTER)
    }

    #[test]
    fn a_primary_in_good_health_stays() {
        assert_eq!(elected(&[Writable(Timeline(1)), Standby], 1, 0), 0);
        assert_eq!(elected(&[Writable(Timeline(1)), Writable(Timeline(2))], 1, 1), 0);
        assert_eq!(elected(&[Writable(Timeline(1)), Writable(Timeline(1))], 1, 0), 0);
    }

    #[test]
    fn a_promotion_is_found_out_once_the_primary_is_silent() {
        assert_eq!(elected(&[LONG, Writable(Timeline(2))], 1, 0), 1);
        assert_eq!(elected(&[LONG, Standby], 1, 0), 0);
        assert_eq!(
            elected(&[Silent(Duration::from_millis(999)), Writable(Timeline(2))], 1, 0),
            0
        );
        assert_eq!(
            elected(&[LONG, Writable(Timeline(2)), Writable(Timeline(3))], 1, 0),
            2
        );
    }

    #[test]
    fn another_address_of_the_same_primary_is_no_promotion() {
        assert_eq!(elected(&[LONG, Writable(Timeline(1))], 1, 0), 0);
    }

    #[test]
    fn a_demoted_primary_gives_way() {
        assert_eq!(elected(&[Standby, Writable(Timeline(2))], 2, 0), 1);
        assert_eq!(elected(&[Standby, Writable(Timeline(1))], 2, 0), 0);
    }

    #[test]
    fn writes_that_have_gone_to_the_new_primary_decide() {
        assert_eq!(elected(&[Writable(Timeline(1)), Writable(Timeline(2))], 1, 2), 1);
        // To another history than that of the node that was promoted by mistake.
        assert_eq!(elected(&[Writable(Timeline(1)), Writable(Timeline(2))], 1, 7), 0);
        assert_eq!(elected(&[Silent(Duration::ZERO), Writable(Timeline(2))], 1, 2), 1);
    }

    #[test]
    fn a_primary_that_was_never_seen_is_waited_for() {
        let nodes = |silent| [Silent(Duration::from_millis(silent)), Writable(Timeline(1))];
        assert_eq!(elect(0, &nodes(0), None, Timeline(0), AFTER), 0);
        assert_eq!(elect(0, &nodes(1500), None, Timeline(0), AFTER), 1);
    }
}
