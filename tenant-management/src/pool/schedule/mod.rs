//! Who gets which connection, as a synchronous state machine of identities and counts.
//!
//! Owns the rules: the node's budget, a tenant's ceiling, fairness, eviction. Refuses to know sockets, tasks, locks and
//! routes; what is to be done in the world comes out as [`Action`]s, and what has happened there goes in as calls.
//!
//! # The rules
//!
//! - A *lane* is one generation of one tenant. Its waiters are served in the order of their arrival.
//! - A connection counts against the node and its tenant until the server's backend is gone ([`Schedule::closed`]).
//! - A free place goes to the waiting tenant that holds the fewest connections, among equals to the one whose last turn
//!   ended longest ago. When no place is free, the connection that has been idle longest is closed.
//! - A returned connection serves its own lane, unless a tenant that holds nothing waits (or one that holds at least two
//!   less) and no place is on its way to it. Then it is closed to make room. So a tenant with many waiters delays one with
//!   a single waiter by one connection's turn, and two equal tenants do not pass a place to and fro.
//! - A turn lasts at least [`TURN`], counted from when the connection was opened, as long as its own lane has work for it:
//!   to open a connection takes about as long, and a server that does little else serves nobody.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, Instant},
};

pub(super) use self::parts::{Action, CloseReason, ConnectionId, Counts, Key, WaiterId};
use self::parts::{Connection, Lane, Rank, State, Tenant};
use crate::ids::{Generation, TenantUuid};

mod parts;
mod plan;
#[cfg(test)]
mod tests;

/// How long a new connection serves its own lane's waiters before it can be closed for somebody else's.
const TURN: Duration = Duration::from_millis(10);

/// The state machine, see the [module](self).
#[derive(Debug)]
pub(super) struct Schedule {
    budget: usize,
    ceiling: usize,
    connections: HashMap<ConnectionId, Connection>,
    lanes: BTreeMap<Key, Lane>,
    tenants: HashMap<TenantUuid, Tenant>,
    /// All idle connections, the one that has been idle longest first.
    idle: BTreeMap<u64, ConnectionId>,
    /// Lanes that miss connections and whose tenant is below its ceiling.
    needy: BTreeSet<Rank>,
    /// Lanes in `needy` whose tenant holds nothing.
    starving: usize,
    /// Places that the lanes in `needy` could use.
    unmet: usize,
    counts: Counts,
    clock: u64,
    actions: Vec<Action>,
}

impl Schedule {
    /// A schedule for at most `budget` connections in all and `ceiling` for one tenant.
    pub(super) fn new(budget: usize, ceiling: usize) -> Self {
        Self {
            budget,
            ceiling,
            connections: HashMap::new(),
            lanes: BTreeMap::new(),
            tenants: HashMap::new(),
            idle: BTreeMap::new(),
            needy: BTreeSet::new(),
            starving: 0,
            unmet: 0,
            counts: Counts::default(),
            clock: 0,
            actions: Vec::new(),
        }
    }

    /// What is to be done since the last call.
    pub(super) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes an idle connection of this lane, the last used one. Its waiters, if any, came first, but then none is idle.
    pub(super) fn take_idle(&mut self, key: Key) -> Option<ConnectionId> {
        let id = *self.lanes.get(&key)?.idle.last()?;
        self.leave_idle(id);
        self.counts.in_use += 1;
        self.connection(id).state = State::InUse;
        Some(id)
    }

    /// Puts a caller at the end of its lane's queue.
    pub(super) fn enqueue(&mut self, key: Key) -> WaiterId {
        let waiter = WaiterId(self.tick());
        let turn = self.clock;
        let lane = self.lanes.entry(key).or_insert_with(|| Lane {
            turn,
            ..Lane::default()
        });
        if lane.waiters.is_empty() {
            lane.turn = turn;
        }
        lane.waiters.push_back(waiter);
        self.counts.waiting += 1;
        self.plan(key.tenant);
        waiter
    }

    /// Takes a caller out of the queue. Answers whether it was still there; otherwise its turn has come already.
    pub(super) fn cancel(&mut self, key: Key, waiter: WaiterId) -> bool {
        let Some(lane) = self.lanes.get_mut(&key) else {
            return false;
        };
        let Ok(place) = lane.waiters.binary_search(&waiter) else {
            return false;
        };
        lane.waiters.remove(place);
        self.counts.waiting -= 1;
        self.plan(key.tenant);
        true
    }

    /// A connection is open and proved.
    pub(super) fn opened(&mut self, id: ConnectionId, now: Instant) {
        let key = self.connection(id).key;
        self.lane(key).opening -= 1;
        self.counts.opening -= 1;
        self.counts.in_use += 1;
        let connection = self.connection(id);
        connection.state = State::InUse;
        connection.opened = Some(now);
        if let Some(waiter) = self.lane(key).waiters.pop_front() {
            self.grant(id, key, waiter);
        } else if self.is_retired(key) {
            self.close(id, CloseReason::Retired);
        } else {
            self.enter_idle(id, now);
        }
        self.plan(key.tenant);
    }

    /// A connection could not be opened. When its backend may exist nevertheless (`lingers`), it keeps its place until
    /// [`Self::closed`]. Answers which waiter is to be told, the one that has waited longest.
    pub(super) fn open_failed(&mut self, id: ConnectionId, lingers: bool) -> Option<WaiterId> {
        let key = self.connection(id).key;
        let failed = self.lane(key).waiters.pop_front();
        self.counts.waiting -= usize::from(failed.is_some());
        self.close(id, CloseReason::NotOpened);
        if lingers {
            self.plan(key.tenant);
        } else {
            self.closed(id);
        }
        failed
    }

    /// A connection comes back from its user, to be kept or to be closed for a reason.
    pub(super) fn returned(&mut self, id: ConnectionId, close: Option<CloseReason>, now: Instant) {
        let Connection { key, opened, .. } = *self.connection(id);
        let had_its_turn = opened.is_none_or(|opened| now.saturating_duration_since(opened) >= TURN);
        let close = close.or_else(|| self.is_retired(key).then_some(CloseReason::Retired));
        // Its turn has ended: those who wait since before come first.
        let turn = self.tick();
        let own = self.lanes.get_mut(&key).is_some_and(|lane| {
            lane.turn = turn;
            !lane.waiters.is_empty()
        });
        match close {
            Some(reason) => self.close(id, reason),
            None if own && had_its_turn && self.is_owed_to_another(key) => self.close(id, CloseReason::Room),
            None if own => {
                let waiter = self
                    .lane(key)
                    .waiters
                    .pop_front()
                    .expect("the lane was just seen to have a waiter");
                self.grant(id, key, waiter);
            }
            None => self.enter_idle(id, now),
        }
        self.plan(key.tenant);
    }

    /// A closed connection's backend is gone: its place is free.
    pub(super) fn closed(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        debug_assert_eq!(connection.state, State::Closing);
        self.counts.closing -= 1;
        self.tenant(connection.key.tenant).closing -= 1;
        self.plan(connection.key.tenant);
    }

    /// Closes what has been idle since `before` or longer.
    pub(super) fn expire(&mut self, before: Instant) {
        while let Some((_, &id)) = self.idle.first_key_value()
            && let State::Idle { since, .. } = self.connection(id).state
            && since <= before
        {
            self.close_and_plan(id, CloseReason::Idle);
        }
    }

    /// Closes all idle connections.
    pub(super) fn close_idle(&mut self, reason: CloseReason) {
        while let Some((_, &id)) = self.idle.first_key_value() {
            self.close_and_plan(id, reason);
        }
    }

    /// Ends the generations of a tenant below this one: idle connections are closed now, those in use when they return.
    pub(super) fn retire(&mut self, uuid: TenantUuid, below: Generation) {
        let Some(tenant) = self.tenants.get_mut(&uuid) else {
            return;
        };
        tenant.retired_below = tenant.retired_below.max(below);
        let range = Key {
            tenant: uuid,
            generation: Generation(i64::MIN),
        }..Key {
            tenant: uuid,
            generation: below,
        };
        let idle: Vec<_> = self
            .lanes
            .range(range)
            .flat_map(|(_, lane)| lane.idle.iter().copied())
            .collect();
        for id in idle {
            self.close_and_plan(id, CloseReason::Retired);
        }
    }

    /// Takes all callers out of a lane's queue, in their order.
    pub(super) fn drain_lane(&mut self, key: Key) -> Vec<WaiterId> {
        let Some(lane) = self.lanes.get_mut(&key) else {
            return Vec::new();
        };
        let waiters = Vec::from(std::mem::take(&mut lane.waiters));
        self.counts.waiting -= waiters.len();
        self.plan(key.tenant);
        waiters
    }

    /// The lanes in which somebody waits.
    pub(super) fn waiting_lanes(&self) -> Vec<Key> {
        self.lanes
            .iter()
            .filter(|(_, lane)| !lane.waiters.is_empty())
            .map(|(key, _)| *key)
            .collect()
    }

    /// The lane of a connection whose place is taken.
    pub(super) fn key_of(&self, id: ConnectionId) -> Option<Key> {
        self.connections.get(&id).map(|connection| connection.key)
    }

    fn close_and_plan(&mut self, id: ConnectionId, reason: CloseReason) {
        let tenant = self.connection(id).key.tenant;
        self.close(id, reason);
        self.plan(tenant);
    }
}
