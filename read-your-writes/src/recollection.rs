//! What this instance has lately answered to whom.
//!
//! Two writes of one session can finish together and their responses arrive in either order; in a browser the last
//! `Set-Cookie` wins, which may be that of the earlier write. So each answer carries the greatest of what came in, what was
//! written, and what this instance has lately answered to the same session, and each request is taken to know that as well.
//!
//! A session is told by the id in its token. Two first writes at the same time have none yet, and afterwards a client has one
//! of the two ids: they are told by the [caller](CallerId), and learn of each other. The same for a session that lost its token
//! because all was reached everywhere, while a write of it was on its way.
//!
//! This is a help for one instance, bounded in size and age, and holds nothing that could not be forgotten.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use moka::sync::Cache;
use parking_lot::Mutex;

use crate::{Positions, token::SessionId};

/// How long something is remembered. Responses that race arrive within seconds of each other.
const REMEMBERED: Duration = Duration::from_secs(30);
/// Sessions and callers that are remembered at most.
const SESSIONS: u64 = 100_000;
/// Sessions of one caller that are compared with a new one at most.
const SESSIONS_OF_CALLER: usize = 256;
/// How long a session that has lost its token can still be asked about.
const AFTER_LOSS: Duration = Duration::from_secs(10);

/// Somebody who sends requests, as far as that can be told without a token: a hash over what makes the client apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallerId(pub(crate) u64);

#[derive(Clone, Copy, Debug)]
struct Sighting {
    session: SessionId,
    kind: Kind,
    ended: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It got its first token.
    Born,
    /// Its token was taken away.
    Lost,
}

/// What has been answered lately.
#[derive(Clone, Debug)]
pub(crate) struct Recollection {
    answered: Cache<SessionId, Positions>,
    callers: Cache<CallerId, Arc<Mutex<Vec<Sighting>>>>,
}

impl Default for Recollection {
    fn default() -> Self {
        Self {
            answered: Cache::builder()
                .max_capacity(SESSIONS)
                .time_to_live(REMEMBERED)
                .build(),
            callers: Cache::builder()
                .max_capacity(SESSIONS)
                .time_to_idle(REMEMBERED)
                .build(),
        }
    }
}

impl Recollection {
    /// What has lately been answered to this session.
    pub(crate) fn of(&self, session: SessionId) -> Option<Positions> {
        self.answered.get(&session)
    }

    /// What has lately been answered to sessions of this caller that had lost their token by then.
    pub(crate) fn of_caller(&self, caller: CallerId, now: Instant) -> Option<Positions> {
        let sightings = self.callers.get(&caller)?;
        let lost: Vec<_> = sightings
            .lock()
            .iter()
            .filter(|seen| seen.kind == Kind::Lost && now.saturating_duration_since(seen.ended) < AFTER_LOSS)
            .map(|seen| seen.session)
            .collect();
        let mut all = Positions::default();
        for positions in lost.into_iter().filter_map(|session| self.of(session)) {
            all.merge(&positions);
        }
        (!all.is_empty()).then_some(all)
    }

    /// Notes what a session is answered with, and adds what was answered to it before and has not been `withdrawn`.
    pub(crate) fn answer(&self, session: SessionId, positions: &mut Positions, withdrawn: &Positions) {
        let merged = self.answered.entry(session).and_upsert_with(|known| {
            let mut merged = known.map_or_else(Positions::default, moka::Entry::into_value);
            merged.withdraw(withdrawn);
            merged.merge(positions);
            merged
        });
        positions.merge(merged.value());
    }

    /// A session got its first token for a request that began at `began`. Whatever was answered to others of the same caller
    /// that got theirs at the same time is added, and they learn of this one.
    pub(crate) fn born(
        &self,
        caller: CallerId,
        session: SessionId,
        began: Instant,
        positions: &mut Positions,
    ) {
        let sightings = self.callers.get_with(caller, Arc::default);
        let now = Instant::now();
        let siblings: Vec<_> = {
            let mut sightings = sightings.lock();
            note(&mut sightings, session, Kind::Born, now);
            sightings
                .iter()
                .filter(|seen| seen.kind == Kind::Born && seen.session != session && seen.ended >= began)
                .map(|seen| seen.session)
                .collect()
        };
        let nothing = Positions::default();
        for sibling in siblings {
            let answered = self.of(sibling);
            self.answer(sibling, &mut positions.clone(), &nothing);
            positions.merge(&answered.unwrap_or_default());
        }
        self.answer(session, positions, &nothing);
    }

    /// All that a session had to see has been withdrawn: unless more has been answered to it meanwhile, which is the error, its
    /// token is to be taken away.
    pub(crate) fn lose(
        &self,
        caller: CallerId,
        session: SessionId,
        withdrawn: &Positions,
    ) -> Result<(), Positions> {
        let mut known = self.of(session).unwrap_or_default();
        known.withdraw(withdrawn);
        if !known.is_empty() {
            return Err(known);
        }
        self.answered.invalidate(&session);
        let sightings = self.callers.get_with(caller, Arc::default);
        note(&mut sightings.lock(), session, Kind::Lost, Instant::now());
        Ok(())
    }
}

fn note(sightings: &mut Vec<Sighting>, session: SessionId, kind: Kind, now: Instant) {
    sightings.retain(|seen| now.saturating_duration_since(seen.ended) < AFTER_LOSS);
    if sightings.len() == SESSIONS_OF_CALLER {
        sightings.remove(0);
    }
    sightings.push(Sighting {
        session,
        kind,
        ended: now,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lsn, Position, Timeline};

    const CALLER: CallerId = CallerId(1);

    fn at(bytes: u64) -> Positions {
        let mut positions = Positions::default();
        let position = Position {
            timeline: Timeline(1),
            lsn: Lsn::from_bytes(bytes),
            written_at: 0,
        };
        positions.raise(&"main".into(), position);
        positions
    }

    fn none() -> Positions {
        Positions::default()
    }

    #[test]
    fn what_was_withdrawn_is_not_recalled() {
        let recollection = Recollection::default();
        let session = SessionId(7);
        recollection.answer(session, &mut at(20), &none());
        // A crash has taken 20 back; the primary is at 15.
        let mut replaced = at(15);
        recollection.answer(session, &mut replaced, &at(20));
        assert_eq!(replaced, at(15));
    }

    #[test]
    fn an_answer_never_takes_back_an_earlier_one() {
        let recollection = Recollection::default();
        let session = SessionId(7);
        recollection.answer(session, &mut at(20), &none());
        let mut earlier = at(10);
        recollection.answer(session, &mut earlier, &none());
        assert_eq!(earlier, at(20));
        assert_eq!(recollection.of(session), Some(at(20)));
        assert_eq!(recollection.of(SessionId(8)), None);
    }

    #[test]
    fn two_first_writes_at_the_same_time_learn_of_each_other() {
        let recollection = Recollection::default();
        let began = Instant::now();
        let (one, other) = (SessionId(1), SessionId(2));
        recollection.born(CALLER, one, began, &mut at(20));
        let mut second = at(10);
        recollection.born(CALLER, other, began, &mut second);
        assert_eq!(second, at(20));
        assert_eq!(recollection.of(one), Some(at(20)));

        let later = Instant::now() + Duration::from_millis(1);
        let mut third = at(5);
        recollection.born(CALLER, SessionId(3), later, &mut third);
        assert_eq!(third, at(5), "it began after the others had been answered");
        let mut stranger = at(5);
        recollection.born(CallerId(2), SessionId(4), began, &mut stranger);
        assert_eq!(stranger, at(5));
    }

    #[test]
    fn a_token_is_not_taken_away_when_more_has_been_answered() {
        let recollection = Recollection::default();
        let session = SessionId(7);
        recollection.answer(session, &mut at(20), &none());
        assert_eq!(recollection.lose(CALLER, session, &at(10)), Err(at(20)));
        assert_eq!(recollection.lose(CALLER, session, &at(20)), Ok(()));
        assert_eq!(recollection.of(session), None);
        assert_eq!(recollection.of_caller(CALLER, Instant::now()), None);

        // A write of it that was on its way, and was answered after the token had been taken away.
        recollection.answer(session, &mut at(30), &none());
        assert_eq!(recollection.of_caller(CALLER, Instant::now()), Some(at(30)));
        assert_eq!(recollection.of_caller(CALLER, Instant::now() + AFTER_LOSS), None);
    }
}
