//! What a node's pool, its connections on loan and its tasks share: the schedule under a lock, and the world around it.
//!
//! Owns the only lock of the pool, which is never held while anything waits. Refuses to decide who gets what; the
//! [`schedule`](super::schedule) does.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{
    PoolStats,
    connection::{Backend, Closing, Physical, TenantConnection},
    error::AcquireError,
    metrics::NodeMetrics,
    opener::Attempt,
    schedule::{CloseReason, ConnectionId, Counts, Key, WaiterId},
    settings::NodeSettings,
    state::{Effect, State, Waiter},
};
use crate::{
    ids::{Generation, TenantUuid},
    route::Route,
    secret::KeyRing,
    tasks::TaskGroup,
};

/// Connections to one server that are opened at the same time. Each costs both sides milliseconds of computing (SCRAM, and a
/// new process with cold caches); when a burst opens dozens at once, all of them take longer than any may, and none succeeds.
/// Further ones wait for their turn, within their callers' patience.
pub(super) const OPENINGS: usize = 8;

/// What a waiter gets.
pub(super) type Delivery = Result<TenantConnection, AcquireError>;

/// The shared part of a node's pool.
pub(super) struct Shared {
    pub(super) settings: NodeSettings,
    pub(super) metrics: NodeMetrics,
    /// Fires when the pool is to end.
    pub(super) cancelled: CancellationToken,
    pub(super) keys: KeyRing,
    tasks: TaskGroup,
    pub(super) closing: mpsc::UnboundedSender<Closing>,
    administrative: AtomicBool,
    /// Turns to open a connection.
    pub(super) openings: Semaphore,
    state: Mutex<State>,
}

/// A caller's place in the queue; it is given up when the ticket is dropped.
pub(super) struct Ticket {
    shared: Arc<Shared>,
    key: Key,
    waiter: WaiterId,
    pub(super) delivery: oneshot::Receiver<Delivery>,
}

impl Ticket {
    /// Leaves the queue, and takes what was delivered in the meantime.
    pub(super) fn give_up(mut self) -> Option<Delivery> {
        self.shared.cancel(self.key, self.waiter);
        self.delivery.try_recv().ok()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // What has been delivered already goes back to the pool when the receiver drops it.
        self.shared.cancel(self.key, self.waiter);
    }
}

/// How a request for a connection was received.
pub(super) enum Request {
    Ready(TenantConnection),
    Wait(Ticket),
}

impl Shared {
    pub(super) fn new(
        settings: NodeSettings,
        keys: KeyRing,
        tasks: &TaskGroup,
        closing: mpsc::UnboundedSender<Closing>,
    ) -> Self {
        // One place is the administrator's.
        let budget = settings.max_connections.saturating_sub(1) as usize;
        let ceiling = settings.limits.max_connections_per_tenant as usize;
        Self {
            metrics: NodeMetrics::new(&settings.name.as_str().into()),
            settings,
            cancelled: tasks.cancelled().child_token(),
            keys,
            tasks: tasks.clone(),
            closing,
            administrative: AtomicBool::new(false),
            openings: Semaphore::new(OPENINGS),
            state: Mutex::new(State::new(budget, ceiling)),
        }
    }

    /// Takes an idle connection, or a place in the queue.
    pub(super) fn request(self: &Arc<Self>, route: &Arc<Route>) -> Result<Request, AcquireError> {
        let key = Key {
            tenant: route.uuid,
            generation: route.generation,
        };
        self.with_state(|state| {
            if state.closed {
                return Err(AcquireError::Closed);
            }
            if let Some(id) = state.schedule.take_idle(key) {
                let mut physical = state.parked.remove(&id).expect("an idle connection is parked");
                physical.reused = true;
                return Ok(Request::Ready(TenantConnection::new(
                    Arc::clone(self),
                    id,
                    physical,
                )));
            }
            if let Some(error) = state.refusals.of(key, Instant::now()) {
                return Err(error);
            }
            let (sender, delivery) = oneshot::channel();
            let waiter = state.schedule.enqueue(key);
            let entry = Waiter {
                route: Arc::clone(route),
                delivery: sender,
            };
            state.waiters.insert(waiter, entry);
            Ok(Request::Wait(Ticket {
                shared: Arc::clone(self),
                key,
                waiter,
                delivery,
            }))
        })
    }

    fn cancel(self: &Arc<Self>, key: Key, waiter: WaiterId) {
        self.with_state(|state| {
            if state.schedule.cancel(key, waiter) {
                state.waiters.remove(&waiter);
            }
        });
    }

    /// A connection comes back from its user.
    pub(super) fn take_back(
        self: &Arc<Self>,
        id: ConnectionId,
        physical: Physical,
        close: Option<CloseReason>,
        others_are_suspect: bool,
    ) {
        self.with_state(|state| {
            if others_are_suspect {
                state.schedule.close_idle(CloseReason::Suspect);
            }
            let close = close.or_else(|| state.closed.then_some(CloseReason::Cleared));
            state.parked.insert(id, physical);
            state.schedule.returned(id, close, Instant::now());
        });
    }

    /// Closed connections' processes are gone.
    pub(super) fn release(self: &Arc<Self>, gone: &[ConnectionId]) {
        self.with_state(|state| {
            for id in gone {
                state.backends.remove(id);
                state.schedule.closed(*id);
            }
        });
    }

    /// Closes what has been idle for too long. To be called now and then.
    pub(super) fn expire(self: &Arc<Self>, now: Instant) {
        self.with_state(|state| {
            state.refusals.forget_old(now);
            if let Some(before) = now.checked_sub(self.settings.limits.idle_timeout) {
                state.schedule.expire(before);
            }
        });
    }

    pub(super) fn retire(self: &Arc<Self>, tenant: TenantUuid, below: Generation) {
        self.with_state(|state| state.schedule.retire(tenant, below));
    }

    pub(super) fn close_idle(self: &Arc<Self>) {
        self.with_state(|state| state.schedule.close_idle(CloseReason::Cleared));
    }

    /// Refuses all callers from now on and closes what is idle.
    pub(super) fn shut_down(self: &Arc<Self>) {
        let refused = self.with_state(|state| {
            state.closed = true;
            let lanes = state.schedule.waiting_lanes();
            let refused = lanes
                .into_iter()
                .flat_map(|lane| state.drain_lane(lane))
                .collect::<Vec<_>>();
            state.schedule.close_idle(CloseReason::Cleared);
            refused
        });
        for waiter in refused {
            // An answer nobody waits for any more is of no use.
            let _ = waiter.delivery.send(Err(AcquireError::Closed));
        }
    }

    pub(super) fn stats(&self) -> PoolStats {
        self.stats_of(self.state.lock().schedule.counts())
    }

    /// Notes whether the administrative connection is there, which is outside of the schedule.
    pub(super) fn note_administrator(&self, connected: bool) {
        self.administrative.store(connected, Ordering::Relaxed);
    }

    fn stats_of(&self, counts: Counts) -> PoolStats {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let administrative = u32::from(self.administrative.load(Ordering::Relaxed));
        PoolStats {
            open: number(counts.open()) + administrative,
            opening: number(counts.opening),
            in_use: number(counts.in_use),
            idle: number(counts.idle),
            closing: number(counts.closing),
            administrative,
            waiting: number(counts.waiting),
        }
    }

    /// The processes of all connections, those that are being closed included.
    pub(super) fn backends(&self) -> HashSet<Backend> {
        self.state.lock().backends.values().copied().collect()
    }

    /// Calls the schedule under the lock, then does in the world what it has decided.
    pub(super) fn with_state<T>(self: &Arc<Self>, call: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let answer = call(&mut state);
        let effects = state.effects();
        self.metrics.show(self.stats_of(state.schedule.counts()));
        drop(state);
        for effect in effects {
            self.carry_out(effect);
        }
        answer
    }

    fn carry_out(self: &Arc<Self>, effect: Effect) {
        match effect {
            Effect::Deliver(delivery, id, physical) => {
                let connection = TenantConnection::new(Arc::clone(self), id, physical);
                // A waiter that has left meanwhile drops the connection, which brings it back here.
                drop(delivery.send(Ok(connection)));
            }
            Effect::Open(id, route) => {
                self.tasks
                    .spawn("connection opener", Attempt::new(Arc::clone(self), id).run(route));
            }
            Effect::Close(closing, reason) => {
                self.metrics.closed(reason);
                // After the end of the pool nobody receives it; then dropping the socket has to do.
                let _ = self.closing.send(closing);
            }
        }
    }
}
