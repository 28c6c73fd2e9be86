//! An issuer's keys, fetched and kept up to date.
//!
//! In the background every so often, and when a token has a key that is not known: at most once in a while, and for all who wait
//! together. Keys that were fetched count until others are; an issuer that is away takes nobody's credentials with it. Refuses to
//! know what keys are used for.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tenant_management::tasks::TaskGroup;

use super::{
    keys::{Keys, NoKeySet},
    settings::{IssuerSettings, KeySource},
};

/// How often a token with an unknown key may have the keys fetched.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(30);
/// How long a token with an unknown key waits for the keys.
const UNKNOWN_KEY_WAIT: Duration = Duration::from_secs(2);
/// How soon keys are fetched again after that has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// How long an issuer may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Largest set of keys in bytes.
const MAX_SET: usize = 256 * 1024;

/// An issuer's file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the keys of the issuer {issuer} cannot be read from {}: {problem}", path.display())]
pub struct JwksError {
    issuer: String,
    path: PathBuf,
    problem: String,
}

/// Why keys could not be fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("{0}")]
    File(#[from] std::io::Error),
    #[error("the address cannot be reached, or did not answer in time")]
    Http(#[source] reqwest::Error),
    #[error("the address answered with the status {0}")]
    Status(u16),
    #[error("it is larger than {MAX_SET} bytes")]
    TooLarge,
    #[error(transparent)]
    NoKeySet(#[from] NoKeySet),
    #[error("it has no key that may verify a token with RS256 (2,048 bits or more), ES256 or EdDSA")]
    NoUsableKey,
}

/// The keys of one issuer. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct KeyCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    issuer: String,
    source: KeySource,
    http: reqwest::Client,
    keys: ArcSwapOption<Keys>,
    /// Held while keys are fetched: one fetch serves all who wait.
    fetching: tokio::sync::Mutex<()>,
    /// When a fetch for an unknown key began last.
    for_unknown_key: Mutex<Option<Instant>>,
    /// Whether the last fetch failed, so that an outage is logged once.
    failing: Mutex<bool>,
}

impl KeyCache {
    /// Reads a file at once, and keeps the keys up to date as long as the group lives.
    pub(super) async fn start(settings: &IssuerSettings, tasks: &TaskGroup) -> Result<Self, JwksError> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(ANSWER_WITHIN)
            .build()
            .expect("a client without special wishes can be made");
        let cache = Self(Arc::new(Inner {
            issuer: settings.issuer.clone(),
            source: settings.keys.clone(),
            http,
            keys: ArcSwapOption::empty(),
            fetching: tokio::sync::Mutex::default(),
            for_unknown_key: Mutex::default(),
            failing: Mutex::default(),
        }));
        if let KeySource::File(path) = &settings.keys {
            let fetched = cache.fetch().await;
            let keys = fetched.map_err(|error| JwksError {
                issuer: settings.issuer.clone(),
                path: path.clone(),
                problem: error.to_string(),
            })?;
            cache.0.keys.store(Some(Arc::new(keys)));
        }
        let (keeper, cancelled) = (cache.clone(), tasks.cancelled());
        let interval = settings.refresh_interval;
        tasks.spawn("fetch-keys-of-issuer", async move {
            let keeping = async {
                loop {
                    let fetched = keeper.refresh().await;
                    let pause = if fetched {
                        interval
                    } else {
                        interval.min(AFTER_FAILURE)
                    };
                    tokio::time::sleep(pause).await;
                }
            };
            cancelled.run_until_cancelled(keeping).await;
        });
        Ok(cache)
    }

    /// The keys that were fetched last; `None` until some were.
    pub(super) fn keys(&self) -> Option<Arc<Keys>> {
        self.0.keys.load_full()
    }

    /// Fetches the keys because a token has one that is not among them. Waits for it a little, unless it was done not long ago.
    pub(super) async fn refresh_for_unknown_key(&self) {
        let due = {
            let mut last = self.0.for_unknown_key.lock();
            let due = last.is_none_or(|last| last.elapsed() >= UNKNOWN_KEY_PAUSE);
            if due {
                *last = Some(Instant::now());
            }
            due
        };
        let waiting = async {
            if due {
                self.refresh().await;
            } else {
                // Another request may be fetching for all.
                drop(self.0.fetching.lock().await);
            }
        };
        // Who has waited long enough goes by what is known.
        let _ = tokio::time::timeout(UNKNOWN_KEY_WAIT, waiting).await;
    }

    /// Fetches the keys, and keeps those it has when that fails. Answers whether it worked.
    async fn refresh(&self) -> bool {
        let _alone = self.0.fetching.lock().await;
        let fetched = self.fetch().await;
        let failed = fetched.is_err();
        let failed_before = std::mem::replace(&mut *self.0.failing.lock(), failed);
        let result = if failed { "failed" } else { "fetched" };
        metrics::counter!("tenantry_issuer_key_fetches_total", "result" => result).increment(1);
        match fetched {
            Ok(keys) => {
                if failed_before {
                    tracing::info!(issuer = self.0.issuer, "An issuer's keys can be fetched again.");
                }
                self.0.keys.store(Some(Arc::new(keys)));
            }
            Err(error) if !failed_before => tracing::warn!(
                issuer = self.0.issuer, source = %self.0.source, %error,
                "An issuer's keys cannot be fetched; those that are known count until they can."
            ),
            Err(_) => {}
        }
        !failed
    }

    async fn fetch(&self) -> Result<Keys, FetchError> {
        let set = match &self.0.source {
            KeySource::File(path) => {
                let size = tokio::fs::metadata(path).await?.len();
                if size > MAX_SET as u64 {
                    return Err(FetchError::TooLarge);
                }
                tokio::fs::read(path).await?
            }
            KeySource::Url(address) => self.download(&address.0).await?,
        };
        let (keys, unusable) = Keys::parse(&set)?;
        if unusable > 0 {
            tracing::debug!(
                issuer = self.0.issuer,
                keys.unusable = unusable,
                "Some of an issuer's keys are for other purposes, or too short."
            );
        }
        if keys.is_empty() {
            return Err(FetchError::NoUsableKey);
        }
        Ok(keys)
    }

    async fn download(&self, url: &url::Url) -> Result<Vec<u8>, FetchError> {
        let request = self.0.http.get(url.clone()).header("accept", "application/json");
        let mut response = request.send().await.map_err(FetchError::Http)?;
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let mut set = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(FetchError::Http)? {
            if set.len() + chunk.len() > MAX_SET {
                return Err(FetchError::TooLarge);
            }
            set.extend_from_slice(&chunk);
        }
        Ok(set)
    }
}
