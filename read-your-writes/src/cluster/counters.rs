//! Counters of reads, looked up once: a read costs one addition.

use metrics::Counter;

use super::Reason;
use crate::{Consistency, metrics::READS};

/// A counter for each level and reason. They belong to the recorder that is installed when they are made.
pub(super) struct ReadCounters {
    by_level: [[Counter; Reason::ALL.len()]; Consistency::ALL.len()],
}

impl Default for ReadCounters {
    fn default() -> Self {
        Self {
            by_level: Consistency::ALL.map(|level| {
                Reason::ALL.map(|reason| {
                    let by = if reason.is_on_replica() {
                        "replica"
                    } else {
                        "primary"
                    };
                    metrics::counter!(
                        READS,
                        "consistency" => level.as_str(), "served_by" => by, "reason" => reason.as_str()
                    )
                })
            }),
        }
    }
}

impl ReadCounters {
    pub(super) fn count(&self, level: Consistency, reason: Reason) {
        self.by_level[level as usize][reason as usize].increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_reasons_stand_in_their_own_places() {
        assert!(
            Consistency::ALL
                .iter()
                .enumerate()
                .all(|(place, level)| *level as usize == place)
        );
        assert!(
            Reason::ALL
                .iter()
                .enumerate()
                .all(|(place, reason)| *reason as usize == place)
        );
    }
}
