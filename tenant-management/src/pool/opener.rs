//! One attempt to open a connection, as a task of its own: a caller that leaves takes nothing with it.

use std::{sync::Arc, time::Instant};

use super::{
    connect::{ConnectFailure, Left, connect},
    connection::{Closing, Physical},
    error::AcquireError,
    schedule::{CloseReason, ConnectionId},
    shared::Shared,
};
use crate::route::Route;

/// One attempt to open a connection. However it ends, its place does not get lost.
pub(super) struct Attempt {
    shared: Arc<Shared>,
    id: ConnectionId,
    ended: bool,
}

impl Attempt {
    pub(super) fn new(shared: Arc<Shared>, id: ConnectionId) -> Self {
        Self {
            shared,
            id,
            ended: false,
        }
    }

    pub(super) async fn run(mut self, route: Arc<Route>) {
        let shared = Arc::clone(&self.shared);
        let opening = async {
            let _turn = shared.openings.acquire().await;
            connect(&shared.settings, &shared.keys, &route).await
        };
        let Some(result) = shared.cancelled.run_until_cancelled(opening).await else {
            return;
        };
        match result {
            Ok(physical) => self.succeeded(physical),
            Err(failure) => self.failed(failure),
        }
    }

    fn succeeded(&mut self, physical: Physical) {
        self.ended = true;
        self.shared.metrics.opened();
        self.shared.with_state(|state| {
            if let Some(key) = state.schedule.key_of(self.id) {
                state.refusals.clear(key);
            }
            state.backends.insert(self.id, physical.backend);
            state.parked.insert(self.id, physical);
            state.schedule.opened(self.id, Instant::now());
            if state.closed {
                state.schedule.close_idle(CloseReason::Cleared);
            }
        });
    }

    fn failed(&mut self, failure: ConnectFailure) {
        self.ended = true;
        let ConnectFailure { error, left } = failure;
        if matches!(error, AcquireError::WrongDatabase) {
            self.shared.metrics.reached_wrong_database();
        }
        let lingers = !matches!(left, Left::Nothing);
        let id = self.id;
        let refused = self.shared.with_state(|state| {
            let Some(key) = state.schedule.key_of(id) else {
                return Vec::new();
            };
            if error.is_about_the_route() {
                state.refusals.note(key, error.clone(), Instant::now());
            }
            if let Left::Connection(physical) = left {
                state.backends.insert(id, physical.backend);
                state.parked.insert(id, *physical);
            } else if lingers {
                let closing = Closing {
                    id,
                    database: key.tenant.physical_name(),
                    backend: None,
                    connection: None,
                    abandoned: false,
                    since: Instant::now(),
                };
                let _ = self.shared.closing.send(closing);
            }
            // All who wait would be refused alike. They leave the queue first, so that nothing is opened for them.
            let mut refused = if error.is_about_the_route() {
                state.drain_lane(key)
            } else {
                Vec::new()
            };
            let first = state.schedule.open_failed(id, lingers);
            refused.extend(first.and_then(|waiter| state.waiters.remove(&waiter)));
            refused
        });
        for waiter in refused {
            // An answer nobody waits for any more is of no use.
            let _ = waiter.delivery.send(Err(error.clone()));
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.ended {
            self.failed(ConnectFailure {
                error: AcquireError::Closed,
                left: Left::Unknown,
            });
        }
    }
}
