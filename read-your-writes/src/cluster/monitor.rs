//! The task that probes one node, at its interval and whenever somebody cannot wait for it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::postgres::PgConnectOptions;
use tokio::sync::{Notify, watch};

use super::{
    Shared,
    probe::{ProbeError, Prober},
};
use crate::metrics;

/// Least time between the starts of two probes of a node, however many wait for it.
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// Failed probes in a row after which reads that wait for a node are given up. One alone may be the noise of a busy machine.
const SILENT_AFTER: u32 = 2;

/// How far the probes of a node have got, and the wish for another.
#[derive(Debug)]
pub(super) struct Progress {
    wanted: Notify,
    probes: watch::Sender<Probes>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Probes {
    started: u64,
    ended: u64,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            wanted: Notify::new(),
            probes: watch::Sender::new(Probes::default()),
        }
    }
}

impl Progress {
    /// Asks for a probe at once.
    pub(super) fn ask(&self) {
        self.wanted.notify_one();
    }

    /// Waits for the end of a probe that was sent after this call. Callers at the same time share it.
    pub(super) async fn answered_anew(&self) {
        let mut probes = self.probes.subscribe();
        let wanted = probes.borrow_and_update().started + 1;
        self.ask();
        loop {
            if probes.borrow_and_update().ended >= wanted {
                return;
            }
            if probes.changed().await.is_err() {
                return;
            }
        }
    }

    fn start(&self) {
        self.probes.send_modify(|probes| probes.started += 1);
    }

    fn end(&self) {
        self.probes.send_modify(|probes| probes.ended = probes.started);
    }
}

/// Probes a node until the cluster is stopped.
pub(super) async fn watch<N>(shared: Arc<Shared<N>>, index: usize, options: PgConnectOptions)
where
    N: Send + Sync + 'static,
{
    let cancelled = shared.cancelled.clone();
    let settings = &shared.settings;
    let node = Arc::clone(&shared.nodes[index]);
    let mut prober = Prober::new(options, settings.mode, settings.probe_timeout);
    let mut complaint = Complaint::default();
    let mut failures = 0_u32;
    loop {
        let sent = Instant::now();
        node.progress.start();
        let Some(answer) = cancelled.run_until_cancelled(prober.probe()).await else {
            break;
        };
        let outcome = if answer.is_ok() { "answered" } else { "failed" };
        ::metrics::counter!(metrics::PROBES, "node" => Arc::clone(&node.label), "outcome" => outcome)
            .increment(1);
        complaint.about(&node.label, answer.as_ref().err());
        failures = if answer.is_ok() {
            0
        } else {
            failures.saturating_add(1)
        };
        node.silent.send_if_modified(|silent| {
            let is = failures >= SILENT_AFTER;
            std::mem::replace(silent, is) != is
        });
        shared.update(|state, now| state.probed(index, sent, answer.ok(), now));
        node.progress.end();
        let next = sent + settings.probe_interval;
        let paused = cancelled
            .run_until_cancelled(pause(&node.progress, sent, next))
            .await;
        if paused.is_none() {
            break;
        }
    }
    prober.close().await;
}

/// Waits until the next probe is due, or wanted.
async fn pause(progress: &Progress, sent: Instant, next: Instant) {
    let due = tokio::time::sleep_until(next.into());
    tokio::select! {
        () = due => {}
        () = progress.wanted.notified() => tokio::time::sleep_until((sent + LEAST_PAUSE).into()).await,
    }
}

/// Logs the first failure of a row of failures, and no other.
#[derive(Default)]
struct Complaint {
    made: bool,
}

impl Complaint {
    fn about(&mut self, node: &str, error: Option<&ProbeError>) {
        let Some(error) = error else {
            if std::mem::take(&mut self.made) {
                tracing::info!(db.node = node, "A node answers again.");
            }
            return;
        };
        if !std::mem::replace(&mut self.made, true) {
            match error {
                ProbeError::NoUsableLog => tracing::error!(db.node = node, %error, "A node cannot be used."),
                ProbeError::Timeout(_) | ProbeError::Sql(_) | ProbeError::NotUnderstood => {
                    tracing::warn!(db.node = node, %error, "A node does not answer its probe.");
                }
            }
        }
    }
}
