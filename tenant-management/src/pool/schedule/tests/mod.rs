//! The schedule in a model of the world, which checks after each step what must always hold.

mod lives;
mod rules;

use std::{
    collections::{BTreeMap, HashMap},
    time::Instant,
};

use uuid::Uuid;

use super::*;

fn key(tenant: u128, generation: i64) -> Key {
    Key {
        tenant: TenantUuid(Uuid::from_u128(tenant)),
        generation: Generation(generation),
    }
}

/// The world around a schedule: what is opening, on loan and closing, and who waits, as the schedule's actions say.
struct World {
    schedule: Schedule,
    budget: usize,
    ceiling: usize,
    opening: BTreeMap<ConnectionId, Key>,
    lent: BTreeMap<ConnectionId, Key>,
    closing: BTreeMap<ConnectionId, Key>,
    idle: BTreeMap<ConnectionId, Key>,
    waiting: BTreeMap<WaiterId, Key>,
    served: Vec<WaiterId>,
    now: Instant,
}

impl World {
    fn new(budget: usize, ceiling: usize) -> Self {
        Self {
            schedule: Schedule::new(budget, ceiling),
            budget,
            ceiling,
            opening: BTreeMap::new(),
            lent: BTreeMap::new(),
            closing: BTreeMap::new(),
            idle: BTreeMap::new(),
            waiting: BTreeMap::new(),
            served: Vec::new(),
            now: Instant::now(),
        }
    }

    /// Asks for a connection; answers the waiter when none was idle.
    fn ask(&mut self, key: Key) -> Option<WaiterId> {
        if let Some(id) = self.schedule.take_idle(key) {
            assert_eq!(
                self.idle.remove(&id),
                Some(key),
                "only an idle connection of the same lane is taken"
            );
            self.lent.insert(id, key);
            self.settle();
            return None;
        }
        let waiter = self.schedule.enqueue(key);
        self.waiting.insert(waiter, key);
        self.settle();
        Some(waiter)
    }

    fn leave(&mut self, waiter: WaiterId) {
        if let Some(key) = self.waiting.remove(&waiter) {
            assert!(self.schedule.cancel(key, waiter));
            self.settle();
        }
    }

    fn open_succeeds(&mut self, id: ConnectionId) {
        let key = self.opening.remove(&id).unwrap();
        self.idle.insert(id, key);
        self.schedule.opened(id, self.now);
        self.settle();
    }

    fn open_fails(&mut self, id: ConnectionId, lingers: bool) {
        let key = self.opening.remove(&id).unwrap();
        if lingers {
            self.closing.insert(id, key);
        }
        if let Some(waiter) = self.schedule.open_failed(id, lingers) {
            assert_eq!(self.waiting.remove(&waiter), Some(key));
        }
        self.settle();
    }

    fn give_back(&mut self, id: ConnectionId, close: Option<CloseReason>) {
        let key = self.lent.remove(&id).unwrap();
        self.idle.insert(id, key);
        self.now += TURN;
        self.schedule.returned(id, close, self.now);
        self.settle();
    }

    fn vanish(&mut self, id: ConnectionId) {
        self.closing.remove(&id).unwrap();
        self.schedule.closed(id);
        self.settle();
    }

    /// Carries out what the schedule has decided, and checks what must always hold.
    fn settle(&mut self) {
        for action in self.schedule.take_actions() {
            match action {
                Action::Grant { connection, waiter } => {
                    let key = self
                        .waiting
                        .remove(&waiter)
                        .expect("only somebody who waits is served");
                    let first = self.waiting.iter().find(|(_, other)| **other == key);
                    assert!(
                        first.is_none_or(|(other, _)| *other > waiter),
                        "first come, first served"
                    );
                    assert_eq!(
                        self.idle.remove(&connection),
                        Some(key),
                        "a waiter gets its own lane's connection"
                    );
                    self.lent.insert(connection, key);
                    self.served.push(waiter);
                }
                Action::Open { connection, waiter } => {
                    self.opening.insert(connection, self.waiting[&waiter]);
                }
                Action::Close { connection, reason } => {
                    // Only a failed attempt is closed without having been idle or given back.
                    let key = self.idle.remove(&connection);
                    assert!(key.is_some() || reason == CloseReason::NotOpened);
                    if let Some(key) = key {
                        self.closing.insert(connection, key);
                    }
                }
            }
        }
        self.check();
    }

    fn check(&self) {
        let counts = self.schedule.counts();
        let expected = Counts {
            opening: self.opening.len(),
            in_use: self.lent.len(),
            idle: self.idle.len(),
            closing: self.closing.len(),
            waiting: self.waiting.len(),
        };
        assert_eq!(counts, expected);
        assert!(counts.open() <= self.budget, "the budget holds");
        let mut per_tenant: HashMap<TenantUuid, usize> = HashMap::new();
        for key in [&self.opening, &self.lent, &self.idle, &self.closing]
            .into_iter()
            .flat_map(BTreeMap::values)
        {
            *per_tenant.entry(key.tenant).or_default() += 1;
        }
        assert!(
            per_tenant.values().all(|open| *open <= self.ceiling),
            "the ceiling holds"
        );
        // Nobody waits for a place that nobody will give: a tenant below its ceiling waits only while all places are
        // taken by connections that are in use or about to change.
        for key in self.waiting.values() {
            let opening = self.opening.values().filter(|other| *other == key).count();
            let waiting = self.waiting.values().filter(|other| *other == key).count();
            let below_ceiling = per_tenant
                .get(&key.tenant)
                .is_none_or(|open| *open < self.ceiling);
            if waiting > opening && below_ceiling {
                assert_eq!(
                    counts.open(),
                    self.budget,
                    "no place stays free while somebody needs it"
                );
                assert!(
                    counts.idle == 0 || counts.closing > 0,
                    "nothing stays idle while somebody needs the place"
                );
            }
            assert!(
                !self.idle.values().any(|other| other == key),
                "nobody waits while a fitting connection is idle"
            );
        }
    }

    /// Lets everything that is under way come to its end.
    fn quiesce(&mut self) {
        for _ in 0..100_000 {
            if let Some((&id, _)) = self.opening.first_key_value() {
                self.open_succeeds(id);
            } else if let Some((&id, _)) = self.closing.first_key_value() {
                self.vanish(id);
            } else if let Some((&id, _)) = self.lent.first_key_value() {
                self.give_back(id, None);
            } else {
                return;
            }
        }
        panic!("the world does not come to rest");
    }
}

fn pick<K: Copy + Ord, V>(from: &BTreeMap<K, V>, which: usize) -> Option<K> {
    from.keys().nth(which.checked_rem(from.len())?).copied()
}
