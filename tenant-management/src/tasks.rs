//! Background tasks with a name, a cancellation token and an owner that awaits them.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

/// The owner of background tasks. Clones share the same tasks.
#[derive(Clone, Debug, Default)]
pub struct TaskGroup {
    cancelled: CancellationToken,
    tracker: TaskTracker,
}

impl TaskGroup {
    /// An owner without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when the group shuts down. Tasks watch it wherever they wait.
    pub fn cancelled(&self) -> CancellationToken {
        self.cancelled.clone()
    }

    /// Starts a task under a name that appears in its log lines. The task must end soon after [`Self::cancelled`] fires.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        if self.cancelled.is_cancelled() {
            return;
        }
        self.tracker
            .spawn(task.instrument(tracing::info_span!("task", task.name = name)));
    }

    /// Starts a task that calls `work` now and then every `period`, each time after the last call has ended.
    pub fn spawn_every<F, Fut>(&self, name: &'static str, period: Duration, mut work: F)
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send,
    {
        let cancelled = self.cancelled();
        self.spawn(name, async move {
            let run = async {
                loop {
                    work().await;
                    tokio::time::sleep(period).await;
                }
            };
            cancelled.run_until_cancelled(run).await;
        });
    }

    /// Like [`Self::spawn_every`], for work that may fail again and again as long as something is away. The first failure of a
    /// row is logged with what it means, and the first success after it; not each of them.
    pub(crate) fn keep_up<F, Fut, E>(
        &self,
        name: &'static str,
        period: Duration,
        meaning: &'static str,
        mut work: F,
    ) where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send,
        E: fmt::Display,
    {
        let failing = Arc::new(AtomicBool::new(false));
        self.spawn_every(name, period, move || {
            let (attempt, failing) = (work(), Arc::clone(&failing));
            async move {
                let failure = attempt.await.err();
                let failed_before = failing.swap(failure.is_some(), Ordering::Relaxed);
                match failure {
                    Some(error) if !failed_before => tracing::warn!(%error, "{meaning}"),
                    None if failed_before => tracing::info!("It works again."),
                    _ => {}
                }
            }
        });
    }

    /// Cancels all tasks and waits until each has ended, at most for `limit`. Answers whether all have ended.
    pub async fn shut_down(&self, limit: Duration) -> bool {
        self.cancelled.cancel();
        self.tracker.close();
        let ended = tokio::time::timeout(limit, self.tracker.wait()).await.is_ok();
        if !ended {
            tracing::warn!(
                tasks.left = self.tracker.len(),
                "Background tasks did not end in time."
            );
        }
        ended
    }
}
