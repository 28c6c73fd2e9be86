//! The task that closes connections and gives their places back when the server's processes are really gone.
//!
//! Owns the connections on their way out. Refuses to know who needs the places.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use sqlx::Connection;
use tokio::sync::mpsc;

use super::{
    administrator::{Administrator, Present, Stop},
    connection::{Backend, Closing},
    schedule::ConnectionId,
    shared::Shared,
};

/// The pauses between two questions to the server grow from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(50);
/// How long a place is kept for a process about which the administrator cannot ask.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an abandoned statement may outlive being cancelled before its process is ended.
const GRACE: Duration = Duration::from_secs(1);
/// How long an unproved connection's process may take to appear in `pg_stat_activity`.
const APPEARANCE: Duration = Duration::from_millis(250);
/// How long the administrator's connection outlives the last of the tenants'.
const REST: Duration = Duration::from_secs(1);
/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_millis(200);

/// The reaper of one node.
pub(super) struct Reaper {
    shared: Arc<Shared>,
    administrator: Administrator,
    closing: mpsc::UnboundedReceiver<Closing>,
    leaving: Vec<Closing>,
    pause: Duration,
    /// When something was last on its way out.
    busy: Instant,
    /// The administrator could not ask the last time, or not stop a statement: said once, and not over and over.
    deaf: bool,
    powerless: bool,
}

impl Reaper {
    pub(super) fn new(shared: Arc<Shared>, closing: mpsc::UnboundedReceiver<Closing>) -> Self {
        let administrator = Administrator::new(shared.settings.admin.clone(), PATIENCE);
        let (leaving, pause) = (Vec::new(), FIRST_PAUSE);
        Self {
            shared,
            administrator,
            closing,
            leaving,
            pause,
            busy: Instant::now(),
            deaf: false,
            powerless: false,
        }
    }

    /// Works until the pool ends, then closes what is idle.
    pub(super) async fn run(mut self) {
        let cancelled = self.shared.cancelled.clone();
        cancelled.run_until_cancelled(self.work()).await;
        self.shared.shut_down();
        self.receive();
        self.say_farewell().await;
        self.administrator.disconnect().await;
    }

    async fn work(&mut self) {
        let idle_timeout = self.shared.settings.limits.idle_timeout;
        let tick = (idle_timeout / 8).clamp(Duration::from_millis(5), Duration::from_millis(500));
        loop {
            let pause = if self.leaving.is_empty() { tick } else { self.pause };
            // Nothing is lost when the pause ends first: `recv` is cancel-safe.
            if let Ok(Some(closing)) = tokio::time::timeout(pause, self.closing.recv()).await {
                self.leaving.push(closing);
                self.pause = FIRST_PAUSE;
            } else {
                self.pause = (self.pause * 2).min(LAST_PAUSE);
            }
            self.shared.expire(Instant::now());
            self.receive();
            if self.leaving.is_empty() {
                self.rest(idle_timeout.min(REST)).await;
                continue;
            }
            self.busy = Instant::now();
            self.say_farewell().await;
            self.reap().await;
            self.shared.note_administrator(self.administrator.is_connected());
        }
    }

    /// Keeps no connection to a server that nobody uses. While tenants' connections are open it stays, since they will have
    /// to be closed; and so there is room for its successor when its own process takes a moment to end.
    async fn rest(&mut self, after: Duration) {
        let stats = self.shared.stats();
        if self.administrator.is_connected()
            && self.busy.elapsed() >= after
            && stats.open == stats.administrative
        {
            self.administrator.disconnect().await;
            self.shared.note_administrator(false);
        }
    }

    /// Takes up what has been given to it, without waiting.
    fn receive(&mut self) {
        while let Ok(closing) = self.closing.try_recv() {
            self.leaving.push(closing);
            self.pause = FIRST_PAUSE;
        }
    }

    async fn say_farewell(&mut self) {
        let connections = self
            .leaving
            .iter_mut()
            .filter_map(|closing| closing.connection.take());
        // The socket is closed in any case; a farewell that does not arrive changes nothing.
        join_all(connections.map(|connection| tokio::time::timeout(FAREWELL, connection.close()))).await;
    }

    /// Asks what is still there and gives the other places back.
    async fn reap(&mut self) {
        self.stop_abandoned().await;
        let pids: Vec<i32> = self
            .leaving
            .iter()
            .filter_map(|closing| Some(closing.backend?.pid))
            .collect();
        let unproved = self.leaving.iter().filter(|closing| closing.backend.is_none());
        let databases: Vec<&str> = unproved.map(|closing| closing.database.as_str()).collect();
        let now = Instant::now();
        let gone: HashSet<ConnectionId> = match self.administrator.present(&pids, &databases).await {
            Ok(present) => {
                self.deaf = false;
                let known = if databases.is_empty() {
                    HashSet::new()
                } else {
                    self.shared.backends()
                };
                let there = There::new(&present, &known);
                self.leaving
                    .iter()
                    .filter(|closing| !there.has(closing, now))
                    .map(|closing| closing.id)
                    .collect()
            }
            Err(error) => {
                if !std::mem::replace(&mut self.deaf, true) {
                    tracing::warn!(
                        db.node = self.shared.settings.name,
                        error = &error as &dyn std::error::Error,
                        "The pool cannot ask the server which connections are closed; places are freed after {PATIENCE:?}."
                    );
                }
                let overdue = self
                    .leaving
                    .iter()
                    .filter(|closing| closing.since + PATIENCE <= now);
                overdue.map(|closing| closing.id).collect()
            }
        };
        if !gone.is_empty() {
            self.leaving.retain(|closing| !gone.contains(&closing.id));
            self.shared.release(&Vec::from_iter(gone));
        }
    }

    /// Cancels again each time, since a statement may only have been on its way when it was cancelled before.
    async fn stop_abandoned(&mut self) {
        let now = Instant::now();
        for how in [Stop::Cancel, Stop::Terminate] {
            let backends: Vec<Backend> = self
                .leaving
                .iter()
                .filter(|closing| closing.abandoned)
                .filter(|closing| (closing.since + GRACE <= now) == (how == Stop::Terminate))
                .filter_map(|closing| closing.backend)
                .collect();
            if backends.is_empty() {
                continue;
            }
            let stopped = self.administrator.stop(&backends, how).await;
            let was_powerless = std::mem::replace(&mut self.powerless, stopped.is_err());
            if let Err(error) = stopped
                && !was_powerless
            {
                tracing::warn!(
                    db.node = self.shared.settings.name,
                    error = &error as &dyn std::error::Error,
                    "A statement that nobody waits for could not be stopped; it ends by its time limit."
                );
            }
        }
    }
}

/// What the server has answered.
struct There<'a> {
    started: HashMap<i32, Option<i64>>,
    /// Databases with a process that is not one of the pool's.
    strangers: HashSet<&'a str>,
}

impl<'a> There<'a> {
    fn new(present: &'a [Present], known: &HashSet<Backend>) -> Self {
        let is_known = |process: &&Present| {
            known.iter().any(|backend| {
                backend.pid == process.pid && process.started.is_none_or(|started| started == backend.started)
            })
        };
        Self {
            started: present
                .iter()
                .map(|process| (process.pid, process.started))
                .collect(),
            strangers: present
                .iter()
                .filter(|process| !is_known(process))
                .filter_map(|process| process.database.as_deref())
                .collect(),
        }
    }

    /// Whether the process of a closed connection may still be there. That of an unproved one may be any stranger in its
    /// database, of another instance too, so this question is not asked for ever.
    fn has(&self, closing: &Closing, now: Instant) -> bool {
        let age = now.duration_since(closing.since);
        match closing.backend {
            Some(backend) => self
                .started
                .get(&backend.pid)
                .is_some_and(|started| started.is_none_or(|started| started == backend.started)),
            None => {
                age < APPEARANCE || (age < PATIENCE && self.strangers.contains(closing.database.as_str()))
            }
        }
    }
}
