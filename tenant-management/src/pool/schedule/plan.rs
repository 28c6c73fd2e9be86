//! The decisions of the [schedule](super): who gets a place, and what is closed to make one.

use std::time::Instant;

use super::{
    Schedule,
    parts::{Action, CloseReason, Connection, ConnectionId, Key, Lane, Rank, State, Tenant, WaiterId},
};
use crate::ids::{Generation, TenantUuid};

impl Schedule {
    /// Restores the rules after something has changed for this tenant: places are given out, and made where they miss.
    pub(super) fn plan(&mut self, tenant: TenantUuid) {
        self.rank(tenant);
        self.make_room_within(tenant);
        while self.counts.open() < self.budget
            && let Some(next) = self.needy.first()
        {
            self.open(next.key);
        }
        // From here on no place is free or nobody misses one.
        while self.counts.closing < self.unmet
            && let Some((_, &longest_idle)) = self.idle.first_key_value()
        {
            let owner = self.connection(longest_idle).key.tenant;
            self.close(longest_idle, CloseReason::Room);
            self.rank(owner);
        }
        self.forget(tenant);
    }

    fn open(&mut self, key: Key) {
        let turn = self.tick();
        let id = ConnectionId(turn);
        let lane = self.lane(key);
        let waiter = lane.waiters[lane.opening];
        lane.opening += 1;
        lane.turn = turn;
        self.tenant(key.tenant).held += 1;
        self.counts.opening += 1;
        self.connections.insert(
            id,
            Connection {
                key,
                state: State::Opening,
                opened: None,
            },
        );
        self.actions.push(Action::Open {
            connection: id,
            waiter,
        });
        self.rank(key.tenant);
    }

    pub(super) fn grant(&mut self, id: ConnectionId, key: Key, waiter: WaiterId) {
        let turn = self.tick();
        self.lane(key).turn = turn;
        self.counts.waiting -= 1;
        self.actions.push(Action::Grant {
            connection: id,
            waiter,
        });
    }

    pub(super) fn enter_idle(&mut self, id: ConnectionId, since: Instant) {
        let stamp = self.tick();
        let connection = self.connection(id);
        connection.state = State::Idle { stamp, since };
        let key = connection.key;
        self.idle.insert(stamp, id);
        self.lanes.entry(key).or_default().idle.push(id);
        self.counts.in_use -= 1;
        self.counts.idle += 1;
    }

    pub(super) fn leave_idle(&mut self, id: ConnectionId) {
        let connection = self.connection(id);
        let State::Idle { stamp, .. } = connection.state else {
            return;
        };
        let key = connection.key;
        self.idle.remove(&stamp);
        self.lane(key).idle.retain(|idle| *idle != id);
        self.counts.idle -= 1;
    }

    /// Starts to close a connection: it no longer counts as held and keeps its place.
    pub(super) fn close(&mut self, id: ConnectionId, reason: CloseReason) {
        let connection = self.connection(id);
        let key = connection.key;
        match connection.state {
            State::Opening => {
                self.lane(key).opening -= 1;
                self.counts.opening -= 1;
            }
            State::InUse => self.counts.in_use -= 1,
            State::Idle { .. } => self.leave_idle(id),
            State::Closing => return,
        }
        self.connection(id).state = State::Closing;
        self.counts.closing += 1;
        let tenant = self.tenant(key.tenant);
        tenant.held -= 1;
        tenant.closing += 1;
        self.actions.push(Action::Close {
            connection: id,
            reason,
        });
    }

    /// A tenant at its ceiling that waits in one lane closes what it has idle in another.
    fn make_room_within(&mut self, uuid: TenantUuid) {
        let Some(tenant) = self.tenants.get(&uuid) else {
            return;
        };
        if tenant.held + tenant.closing < self.ceiling {
            return;
        }
        let lanes = || self.lanes.range(Self::lanes_of(uuid)).map(|(_, lane)| lane);
        let missing: usize = lanes().map(Lane::missing).sum();
        let surplus = missing.saturating_sub(tenant.closing);
        let idle: Vec<_> = lanes()
            .flat_map(|lane| lane.idle.iter().copied())
            .take(surplus)
            .collect();
        for id in idle {
            self.close(id, CloseReason::Room);
            self.rank(uuid);
        }
    }

    /// Whether a connection that came back is needed more elsewhere than by its own lane's waiters.
    pub(super) fn is_owed_to_another(&self, key: Key) -> bool {
        let on_the_way = self.budget.saturating_sub(self.counts.open()) + self.counts.closing;
        if on_the_way != self.starving {
            return on_the_way < self.starving;
        }
        let held = self.tenants.get(&key.tenant).map_or(0, |tenant| tenant.held);
        let least = Key {
            tenant: TenantUuid(uuid::Uuid::nil()),
            generation: Generation(i64::MIN),
        };
        let poorest = Rank {
            held: 1,
            turn: 0,
            key: least,
        };
        self.needy
            .range(poorest..)
            .next()
            .is_some_and(|poorest| poorest.held + 2 <= held)
    }

    pub(super) fn is_retired(&self, key: Key) -> bool {
        self.tenants
            .get(&key.tenant)
            .is_some_and(|tenant| key.generation < tenant.retired_below)
    }

    /// Lists a tenant's lanes anew by what they hold and miss.
    fn rank(&mut self, uuid: TenantUuid) {
        let (held, closing) = self
            .tenants
            .get(&uuid)
            .map_or((0, 0), |tenant| (tenant.held, tenant.closing));
        let room = self.ceiling.saturating_sub(held + closing);
        for (key, lane) in self.lanes.range_mut(Self::lanes_of(uuid)) {
            if let Some((rank, wants)) = lane.listed.take() {
                self.needy.remove(&rank);
                self.starving -= usize::from(rank.held == 0);
                self.unmet -= wants;
            }
            let wants = lane.missing().min(room);
            if wants > 0 {
                let rank = Rank {
                    held,
                    turn: lane.turn,
                    key: *key,
                };
                self.needy.insert(rank);
                self.starving += usize::from(held == 0);
                self.unmet += wants;
                lane.listed = Some((rank, wants));
            }
        }
    }

    /// Drops what is empty, so that a tenant that is idle costs no memory.
    fn forget(&mut self, uuid: TenantUuid) {
        let empty = |lane: &Lane| lane.waiters.is_empty() && lane.idle.is_empty() && lane.opening == 0;
        let gone: Vec<_> = self
            .lanes
            .range(Self::lanes_of(uuid))
            .filter(|(_, lane)| empty(lane))
            .map(|(key, _)| *key)
            .collect();
        for key in gone {
            self.lanes.remove(&key);
        }
        if self
            .tenants
            .get(&uuid)
            .is_some_and(|tenant| tenant.held + tenant.closing == 0)
        {
            self.tenants.remove(&uuid);
        }
    }

    fn lanes_of(tenant: TenantUuid) -> std::ops::RangeInclusive<Key> {
        let key = |generation| Key {
            tenant,
            generation: Generation(generation),
        };
        key(i64::MIN)..=key(i64::MAX)
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(super) fn connection(&mut self, id: ConnectionId) -> &mut Connection {
        self.connections
            .get_mut(&id)
            .expect("a connection is known until its place is free")
    }

    pub(super) fn lane(&mut self, key: Key) -> &mut Lane {
        self.lanes
            .get_mut(&key)
            .expect("a lane is known while it has waiters, idle or opening connections")
    }

    pub(super) fn tenant(&mut self, uuid: TenantUuid) -> &mut Tenant {
        self.tenants.entry(uuid).or_insert(Tenant {
            held: 0,
            closing: 0,
            retired_below: Generation(i64::MIN),
        })
    }
}
