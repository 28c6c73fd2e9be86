//! Routes that the server has lately refused, so that a wrong password is not tried over and over.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::{error::AcquireError, schedule::Key};

/// The pause after the first refusal; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Refusals by lane. A new generation starts with a clean slate.
#[derive(Default)]
pub(super) struct Refusals {
    by_lane: HashMap<Key, Refusal>,
}

struct Refusal {
    error: AcquireError,
    pause: Duration,
    until: Instant,
}

impl Refusals {
    /// The error to answer with instead of trying, if the last attempt was refused just now.
    pub(super) fn of(&self, key: Key, now: Instant) -> Option<AcquireError> {
        self.by_lane
            .get(&key)
            .filter(|refusal| now < refusal.until)
            .map(|refusal| refusal.error.clone())
    }

    /// Notes a refusal. Attempts that were under way at the same time count as one.
    pub(super) fn note(&mut self, key: Key, error: AcquireError, now: Instant) {
        match self.by_lane.get_mut(&key) {
            Some(refusal) if now < refusal.until => {}
            Some(refusal) => {
                refusal.pause = (refusal.pause * 2).min(LONGEST_PAUSE);
                refusal.until = now + refusal.pause;
                refusal.error = error;
            }
            None => {
                let refusal = Refusal {
                    error,
                    pause: FIRST_PAUSE,
                    until: now + FIRST_PAUSE,
                };
                self.by_lane.insert(key, refusal);
            }
        }
    }

    /// The lane works.
    pub(super) fn clear(&mut self, key: Key) {
        self.by_lane.remove(&key);
    }

    /// Forgets what is long past.
    pub(super) fn forget_old(&mut self, now: Instant) {
        self.by_lane
            .retain(|_, refusal| now < refusal.until + LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Generation, TenantUuid};

    #[test]
    fn pauses_grow_and_end() {
        let key = Key {
            tenant: TenantUuid::generate(),
            generation: Generation(1),
        };
        let next = Key {
            generation: Generation(2),
            ..key
        };
        let start = Instant::now();
        let mut refusals = Refusals::default();
        refusals.note(key, AcquireError::NoSuchDatabase, start);
        refusals.note(key, AcquireError::NoSuchDatabase, start);
        assert!(refusals.of(key, start).is_some());
        assert!(refusals.of(next, start).is_none());
        let second = start + FIRST_PAUSE;
        assert!(refusals.of(key, second).is_none());
        refusals.note(key, AcquireError::NoSuchDatabase, second);
        assert!(refusals.of(key, second + FIRST_PAUSE).is_some());
        assert!(refusals.of(key, second + FIRST_PAUSE * 2).is_none());
        refusals.forget_old(second + FIRST_PAUSE * 2 + LONGEST_PAUSE);
        assert!(refusals.by_lane.is_empty());
    }
}
