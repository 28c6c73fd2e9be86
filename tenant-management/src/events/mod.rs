//! Word between instances that the catalog has reached a revision.
//!
//! Word says nothing that an instance would act on by itself: it makes the instance read what is newer than its own table. So
//! word that comes twice, late or out of order is harmless, and word that is missed is made good by the next, by the renewal
//! of the lease, by the timer, or by a look-up. Refuses to know what has changed.
//!
//! It travels by [`notify`], which needs nothing but the catalog, or by a [`broker`], when one is configured.

mod backoff;
pub(crate) mod broker;
pub(crate) mod notify;

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::watch;

use self::{backoff::Backoff, broker::BrokerError};
use crate::{catalog::CatalogError, ids::Revision, instances::Presence, routing::follower::Prompt};

/// How long a broker may take to confirm that it has word. Nobody waits for that but the task that speaks.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(5);

/// A way for word to travel.
pub(crate) trait Transport: Send + Sync + 'static {
    /// What word is heard with.
    type Ear: Ear;

    /// Listens from now on.
    fn listen(&self) -> impl Future<Output = Result<Self::Ear, EventError>> + Send;

    /// Says to all instances that the catalog has reached a revision, and waits until that is certain.
    fn say(&self, revision: Revision) -> impl Future<Output = Result<(), EventError>> + Send;
}

/// Hears what instances say.
pub(crate) trait Ear: Send {
    /// Waits for word and takes all that there is.
    ///
    /// # Errors
    ///
    /// When the connection is lost, and with it perhaps some word.
    fn hear(&mut self) -> impl Future<Output = Result<Word, EventError>> + Send;
}

/// What has been heard at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// How often something was said.
    times: u64,
    /// The newest revision that was mentioned.
    newest: Revision,
    /// Whether something was said that names no revision. It makes the instance look, like any other word.
    unclear: bool,
}

/// Why word does not travel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Broker(#[from] BrokerError),
}

/// Says how word travels at the moment.
#[derive(Debug)]
pub(crate) struct Health {
    hearing: Mutex<Option<String>>,
    speaking: Mutex<Option<String>>,
}

/// Hears and speaks on behalf of one instance.
#[derive(Debug)]
pub(crate) struct Events<T> {
    pub(crate) transport: T,
    pub(crate) presence: Arc<Presence>,
    pub(crate) health: Arc<Health>,
}

impl<T: Transport> Events<T> {
    /// Hears until the task ends. When the way is blocked it tries again, less and less often.
    pub(crate) async fn hear(&self) {
        let mut backoff = Backoff::default();
        loop {
            let Err(error) = self.hear_until_lost(&mut backoff).await;
            metrics::gauge!("tenantry_events_connected").set(0.0);
            let reason = told(&error);
            Health::set(&self.health.hearing, Some(reason.clone()));
            if backoff.failed(&reason) {
                tracing::warn!(
                    error = reason,
                    "Changes of other instances are not heard of at once; renewing the lease finds them."
                );
            }
            backoff.wait().await;
        }
    }

    async fn hear_until_lost(&self, backoff: &mut Backoff) -> Result<Infallible, EventError> {
        let mut ear = self.transport.listen().await?;
        // What was said while nobody listened.
        self.presence.follow(Prompt::Word).await?;
        metrics::gauge!("tenantry_events_connected").set(1.0);
        Health::set(&self.health.hearing, None);
        if backoff.works() {
            tracing::info!("Changes of other instances are heard of at once again.");
        }
        loop {
            let word = ear.hear().await?;
            metrics::counter!("tenantry_events_received_total").increment(word.times);
            if word.unclear {
                self.presence.follow(Prompt::Word).await?;
            } else {
                self.presence.follow_to(word.newest).await?;
            }
        }
    }

    /// Says what this instance has committed until the task ends. What could not be said is said later, and only the newest of
    /// it: whoever hears of a revision reads everything up to it.
    pub(crate) async fn speak(&self, mut committed: watch::Receiver<Revision>) {
        let mut backoff = Backoff::default();
        while committed.changed().await.is_ok() {
            loop {
                let newest = *committed.borrow_and_update();
                let Err(reason) = self.say(newest).await else {
                    break;
                };
                metrics::counter!("tenantry_events_publish_failures_total").increment(1);
                Health::set(&self.health.speaking, Some(reason.clone()));
                if backoff.failed(&reason) {
                    tracing::warn!(
                        error = reason,
                        "Other instances do not hear of changes at once; renewing their leases finds them."
                    );
                }
                backoff.wait().await;
            }
            metrics::counter!("tenantry_events_published_total").increment(1);
            Health::set(&self.health.speaking, None);
            if backoff.works() {
                tracing::info!("Other instances hear of changes at once again.");
            }
        }
    }

    async fn say(&self, revision: Revision) -> Result<(), String> {
        match tokio::time::timeout(CONFIRMED_WITHIN, self.transport.say(revision)).await {
            Ok(said) => said.map_err(|error| told(&error)),
            Err(_) => Err(format!("not confirmed within {CONFIRMED_WITHIN:?}")),
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            hearing: Mutex::new(Some("not connected yet".to_owned())),
            speaking: Mutex::default(),
        }
    }
}

impl Health {
    /// Why word does not travel, if it does not.
    pub(crate) fn problem(&self) -> Option<String> {
        [("hearing", &self.hearing), ("speaking", &self.speaking)]
            .into_iter()
            .find_map(|(what, state)| {
                let reason = state.lock().clone()?;
                Some(format!("{what}: {reason}"))
            })
    }

    fn set(state: &Mutex<Option<String>>, reason: Option<String>) {
        *state.lock() = reason;
    }
}

impl FromIterator<Option<Revision>> for Word {
    fn from_iter<I: IntoIterator<Item = Option<Revision>>>(said: I) -> Self {
        said.into_iter().fold(Self::default(), |word, revision| Self {
            times: word.times + 1,
            newest: word.newest.max(revision.unwrap_or_default()),
            unclear: word.unclear || revision.is_none(),
        })
    }
}

/// An error with its causes, in one line.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let reason = error.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_is_summed_up() {
        let word: Word = [Some(Revision(7)), Some(Revision(9)), Some(Revision(8))]
            .into_iter()
            .collect();
        assert_eq!(
            word,
            Word {
                times: 3,
                newest: Revision(9),
                unclear: false
            }
        );
        let word: Word = [None, Some(Revision(9))].into_iter().collect();
        assert!(word.unclear);
    }
}
