//! How many reads may fall back to the primary at a time, so that the primary survives its replicas.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Consistency;

/// The right to read on the primary although the read could have been served elsewhere.
#[derive(Debug)]
pub(super) struct Permit {
    _all: OwnedSemaphorePermit,
    _eventual: Option<OwnedSemaphorePermit>,
}

/// Counts reads that have fallen back.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    limit: usize,
    all: Arc<Semaphore>,
    /// `eventual` reads are refused first: they have half of the room.
    eventual: Arc<Semaphore>,
    wait: Duration,
}

impl Budget {
    pub(super) fn new(limit: u32, wait: Duration) -> Self {
        let limit = usize::try_from(limit.max(1))
            .unwrap_or(usize::MAX)
            .min(Semaphore::MAX_PERMITS);
        Self {
            limit,
            all: Arc::new(Semaphore::new(limit)),
            eventual: Arc::new(Semaphore::new(limit.div_ceil(2))),
            wait,
        }
    }

    /// A permit, if there is room: for `recent` reads within the wait, for `eventual` ones at once.
    pub(super) async fn admit(&self, level: Consistency) -> Option<Permit> {
        if level == Consistency::Eventual {
            let eventual = Arc::clone(&self.eventual).try_acquire_owned().ok()?;
            let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
            return Some(Permit {
                _all: all,
                _eventual: Some(eventual),
            });
        }
        let all = Arc::clone(&self.all);
        let admitted = match Arc::clone(&all).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => tokio::time::timeout(self.wait, all.acquire_owned())
                .await
                .ok()?
                .ok(),
        };
        admitted.map(|all| Permit {
            _all: all,
            _eventual: None,
        })
    }

    /// Permits that are out.
    pub(super) fn in_use(&self) -> usize {
        self.limit - self.all.available_permits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn eventual_reads_are_refused_first() {
        let budget = Budget::new(4, Duration::from_millis(50));
        let eventual: Vec<_> = [
            budget.admit(Consistency::Eventual).await,
            budget.admit(Consistency::Eventual).await,
        ]
        .into_iter()
        .collect::<Option<_>>()
        .unwrap();
        assert!(budget.admit(Consistency::Eventual).await.is_none());
        let recent = budget.admit(Consistency::Recent).await.unwrap();
        let other = budget.admit(Consistency::Recent).await.unwrap();
        assert_eq!(budget.in_use(), 4);
        assert!(budget.admit(Consistency::Recent).await.is_none());
        drop(recent);
        assert!(budget.admit(Consistency::Recent).await.is_some());
        drop((eventual, other));
        assert_eq!(budget.in_use(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_recent_read_waits_for_its_turn() {
        let budget = Budget::new(1, Duration::from_millis(50));
        let held = budget.admit(Consistency::Recent).await.unwrap();
        let waiting = budget.clone();
        let waiter = tokio::spawn(async move { waiting.admit(Consistency::Recent).await.is_some() });
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(held);
        assert!(waiter.await.unwrap());
    }
}
