//! Where the primary's log stood at which moment, and so how old a replica's data can be at most.
//!
//! A replica that has replayed a sample's LSN has everything that was committed before the sample was asked for. So its data
//! is no older than the newest sample that it has reached. This needs no agreement of clocks, does not grow while nothing is
//! written, and grows by itself when probing or the receiver stops.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::Lsn;

/// Samples that are kept at most: a minute and more at the usual interval. What is older is of no use, because a replica
/// that far behind is not chosen.
const KEPT: usize = 256;

/// A place where the log stood for a while.
#[derive(Clone, Copy, Debug)]
struct Sample {
    lsn: Lsn,
    /// The first time that it was seen there: whatever is no older has got to it.
    first: Instant,
    /// The last time: whatever has got to it is no older.
    last: Instant,
}

/// The last samples of one timeline, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    samples: VecDeque<Sample>,
}

impl Samples {
    /// Notes that the primary's log had got to `lsn` at `at` or later.
    pub(super) fn push(&mut self, at: Instant, lsn: Lsn) {
        // A crash with asynchronous commit: what came after is not there any more.
        while self.samples.back().is_some_and(|last| last.lsn > lsn) {
            self.samples.pop_back();
        }
        match self.samples.back_mut() {
            // Nothing was written.
            Some(last) if last.lsn == lsn => last.last = last.last.max(at),
            _ => self.samples.push_back(Sample {
                lsn,
                first: at,
                last: at,
            }),
        }
        if self.samples.len() > KEPT {
            self.samples.pop_front();
        }
    }

    /// Forgets all, because another timeline has begun.
    pub(super) fn clear(&mut self) {
        self.samples.clear();
    }

    /// The moment that data which has got to `replayed` includes: all that was committed before it is there.
    pub(super) fn included_by(&self, replayed: Lsn) -> Option<Instant> {
        let reached = self.samples.partition_point(|sample| sample.lsn <= replayed);
        reached.checked_sub(1).map(|newest| self.samples[newest].last)
    }

    /// Where the log stood at least `ago` before `now`: whatever is fresher than `ago` has got there.
    pub(super) fn settled(&self, now: Instant, ago: Duration) -> Option<Lsn> {
        let before = now.checked_sub(ago)?;
        let old = self.samples.partition_point(|sample| sample.first <= before);
        old.checked_sub(1).map(|newest| self.samples[newest].lsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lsn(bytes: u64) -> Lsn {
        Lsn::from_bytes(bytes)
    }

    fn at(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn data_includes_the_newest_sample_that_it_has_reached() {
        let start = Instant::now();
        let mut samples = Samples::default();
        assert_eq!(samples.included_by(lsn(10)), None);
        for (milliseconds, bytes) in [(0, 10), (250, 20), (500, 30)] {
            samples.push(at(start, milliseconds), lsn(bytes));
        }
        assert_eq!(samples.included_by(lsn(9)), None);
        assert_eq!(samples.included_by(lsn(10)), Some(start));
        assert_eq!(samples.included_by(lsn(29)), Some(at(start, 250)));
        assert_eq!(samples.included_by(lsn(99)), Some(at(start, 500)));
    }

    #[test]
    fn while_nothing_is_written_data_stays_new() {
        let start = Instant::now();
        let mut samples = Samples::default();
        for second in 0..600 {
            samples.push(at(start, second * 1000), lsn(10));
        }
        assert_eq!(samples.included_by(lsn(10)), Some(at(start, 599_000)));
        assert_eq!(samples.included_by(lsn(9)), None);
        let settled = samples.settled(at(start, 599_000), Duration::from_secs(2));
        assert_eq!(settled, Some(lsn(10)));
    }

    #[test]
    fn what_a_crash_has_taken_back_counts_no_more() {
        let start = Instant::now();
        let mut samples = Samples::default();
        for (milliseconds, bytes) in [(0, 10), (250, 30), (500, 20)] {
            samples.push(at(start, milliseconds), lsn(bytes));
        }
        assert_eq!(samples.included_by(lsn(20)), Some(at(start, 500)));
        assert_eq!(samples.included_by(lsn(19)), Some(start));
    }

    #[test]
    fn settled_is_what_the_log_had_got_to_long_enough_ago() {
        let start = Instant::now();
        let mut samples = Samples::default();
        for (milliseconds, bytes) in [(0, 10), (1000, 20), (2500, 30)] {
            samples.push(at(start, milliseconds), lsn(bytes));
        }
        let ago = Duration::from_secs(2);
        assert_eq!(samples.settled(at(start, 1999), ago), None);
        assert_eq!(samples.settled(at(start, 2999), ago), Some(lsn(10)));
        assert_eq!(samples.settled(at(start, 3000), ago), Some(lsn(20)));
    }

    #[test]
    fn the_number_of_samples_is_bounded() {
        let start = Instant::now();
        let mut samples = Samples::default();
        for index in 0..10_000 {
            samples.push(at(start, index), lsn(index));
        }
        assert_eq!(samples.samples.len(), KEPT);
        assert_eq!(samples.included_by(lsn(1)), None);
    }
}
