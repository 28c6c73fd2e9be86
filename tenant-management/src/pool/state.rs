//! What is behind a pool's lock: the schedule, and what its identities stand for.
//!
//! Turns the schedule's decisions into effects, which are carried out once the lock is released. Refuses to carry them out.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::oneshot;

use super::{
    connection::{Backend, Closing, Physical},
    refusals::Refusals,
    schedule::{Action, CloseReason, ConnectionId, Key, Schedule, WaiterId},
    shared::Delivery,
};
use crate::route::Route;

/// What is behind the lock.
pub(super) struct State {
    pub(super) schedule: Schedule,
    /// Connections that are idle, or whose closing is being decided.
    pub(super) parked: HashMap<ConnectionId, Physical>,
    /// The processes of all connections that have one, until they are gone.
    pub(super) backends: HashMap<ConnectionId, Backend>,
    pub(super) waiters: HashMap<WaiterId, Waiter>,
    pub(super) refusals: Refusals,
    /// The pool has ended: nobody is let in any more.
    pub(super) closed: bool,
}

/// A caller that waits.
pub(super) struct Waiter {
    pub(super) route: Arc<Route>,
    pub(super) delivery: oneshot::Sender<Delivery>,
}

/// What is to be done once the lock is released.
pub(super) enum Effect {
    Deliver(oneshot::Sender<Delivery>, ConnectionId, Physical),
    Open(ConnectionId, Arc<Route>),
    Close(Closing, CloseReason),
}

impl State {
    pub(super) fn new(budget: usize, ceiling: usize) -> Self {
        Self {
            schedule: Schedule::new(budget, ceiling),
            parked: HashMap::new(),
            backends: HashMap::new(),
            waiters: HashMap::new(),
            refusals: Refusals::default(),
            closed: false,
        }
    }

    /// What the schedule has decided, with what is needed to carry it out.
    pub(super) fn effects(&mut self) -> Vec<Effect> {
        let actions = self.schedule.take_actions();
        actions
            .into_iter()
            .filter_map(|action| self.effect(action))
            .collect()
    }

    fn effect(&mut self, action: Action) -> Option<Effect> {
        match action {
            Action::Grant { connection, waiter } => {
                let waiter = self
                    .waiters
                    .remove(&waiter)
                    .expect("a waiter is known until it is served or leaves");
                let physical = self
                    .parked
                    .remove(&connection)
                    .expect("a connection is parked while it changes hands");
                Some(Effect::Deliver(waiter.delivery, connection, physical))
            }
            Action::Open { connection, waiter } => {
                let waiter = self
                    .waiters
                    .get(&waiter)
                    .expect("a connection is opened for somebody who waits");
                Some(Effect::Open(connection, Arc::clone(&waiter.route)))
            }
            Action::Close { connection, reason } => {
                let key = self.schedule.key_of(connection)?;
                // A connection that was never opened and may linger is announced by its opener.
                let physical = self.parked.remove(&connection)?;
                let database = key.tenant.physical_name();
                Some(Effect::Close(
                    Closing::new(connection, database, physical, reason),
                    reason,
                ))
            }
        }
    }

    /// Takes all callers out of a lane's queue.
    pub(super) fn drain_lane(&mut self, key: Key) -> Vec<Waiter> {
        let drained = self.schedule.drain_lane(key);
        drained
            .iter()
            .filter_map(|waiter| self.waiters.remove(waiter))
            .collect()
    }
}
