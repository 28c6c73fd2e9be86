//! Pauses between attempts, each longer than the last, and none the same for two instances.

use std::time::Duration;

use rand::RngExt;

/// The first pause at most.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);

/// What has failed in a row, and how often.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<String>,
}

impl Backoff {
    /// It has failed. Answers whether that is news: the first failure of a row, or one with another reason than the last.
    pub(super) fn failed(&mut self, reason: &str) -> bool {
        self.failures = self.failures.saturating_add(1);
        let news = self.last.as_deref() != Some(reason);
        self.last = Some(reason.to_owned());
        news
    }

    /// It works. Answers whether it had failed before.
    pub(super) fn works(&mut self) -> bool {
        std::mem::take(self).failures > 0
    }

    /// Waits after a failure: at least half of the pause, and the rest by chance, so that instances which lost the same server
    /// do not come back to it all at once.
    pub(super) async fn wait(&self) {
        let share = rand::rng().random_range(0.5..1.0);
        tokio::time::sleep(self.pause().mul_f64(share)).await;
    }

    fn pause(&self) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        FIRST.saturating_mul(1 << doublings).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_limit_and_begin_anew() {
        let mut backoff = Backoff::default();
        let mut pauses = Vec::new();
        for _ in 0..40 {
            backoff.failed("away");
            pauses.push(backoff.pause());
            let begun = tokio::time::Instant::now();
            backoff.wait().await;
            assert!(begun.elapsed() >= backoff.pause() / 2 && begun.elapsed() <= backoff.pause());
        }
        assert!(pauses.is_sorted());
        assert_eq!((pauses[0], pauses[39]), (FIRST, LONGEST));
        assert!(backoff.works());
        assert!(!backoff.works());
        backoff.failed("away");
        assert_eq!(backoff.pause(), FIRST);
    }

    #[test]
    fn the_same_reason_again_is_no_news() {
        let mut backoff = Backoff::default();
        assert!(backoff.failed("refused"));
        assert!(!backoff.failed("refused"));
        assert!(backoff.failed("wrong password"));
        assert!(backoff.works());
        assert!(backoff.failed("wrong password"));
    }
}
