//! What a request leaves behind without waiting for it: attempts to get in, for the audit trail, and when credentials were used.
//!
//! Requests only note; a background task writes. What looks the same is counted together and there is a bound on how much waits
//! to be written, so that whoever floods the service with bad credentials floods neither the catalog nor the memory. Refuses to
//! know what a credential is.

use std::{
    collections::{HashMap, hash_map::Entry},
    mem,
    net::IpAddr,
    time::Duration,
};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use crate::{
    catalog::{Catalog, CatalogError},
    ids::TenantUuid,
};

/// How often what was noted is written.
pub(crate) const WRITE_EVERY: Duration = Duration::from_secs(1);
/// How often the last uses of credentials are written, in rounds of [`WRITE_EVERY`].
const LAST_USE_ROUNDS: u32 = 10;
/// Attempts that look different which may wait to be written. Further ones are counted as [`TOO_MANY`].
const WAITING: usize = 1_000;
/// The action of attempts beyond [`WAITING`].
const TOO_MANY: &str = "authentication.too-many";
/// Credentials whose last use may wait to be written.
const USED: usize = 100_000;

/// An attempt to get in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Who, as far as it is known: such as `api-key:<id>` of a key that was revoked; `unknown` otherwise.
    pub actor: String,
    /// What, such as `authentication.revoked`.
    pub action: &'static str,
    /// In which tenant, when the credential says so.
    pub tenant: Option<TenantUuid>,
    /// What it was about.
    pub subject: Option<String>,
    /// From where.
    pub address: Option<IpAddr>,
}

/// Attempts that look the same.
#[derive(Clone, Debug)]
pub(crate) struct CountedAttempts {
    pub(crate) actor: String,
    pub(crate) action: &'static str,
    pub(crate) tenant: Option<TenantUuid>,
    pub(crate) subject: Option<String>,
    pub(crate) address: Option<IpAddr>,
    /// Of the first.
    pub(crate) request_id: Option<String>,
    pub(crate) first_at: DateTime<Utc>,
    pub(crate) times: u32,
}

#[derive(Debug)]
struct Noted {
    request_id: Option<String>,
    first_at: DateTime<Utc>,
    times: u32,
}

/// Notes what requests leave behind.
#[derive(Debug)]
pub struct Trail {
    catalog: Catalog,
    attempts: Mutex<HashMap<Attempt, Noted>>,
    used: Mutex<HashMap<Box<str>, DateTime<Utc>>>,
    rounds: Mutex<u32>,
}

impl Trail {
    pub(crate) fn new(catalog: Catalog) -> Self {
        Self {
            catalog,
            attempts: Mutex::default(),
            used: Mutex::default(),
            rounds: Mutex::default(),
        }
    }

    /// Notes an attempt. It is in the audit trail a second later.
    pub fn note(&self, attempt: Attempt, request_id: Option<&str>, now: DateTime<Utc>) {
        metrics::counter!("tenantry_authentication_attempts_total", "action" => attempt.action).increment(1);
        let mut waiting = self.attempts.lock();
        let room = waiting.len() < WAITING || waiting.contains_key(&attempt);
        let attempt = if room {
            attempt
        } else {
            Attempt {
                actor: "unknown".to_owned(),
                action: TOO_MANY,
                tenant: None,
                subject: None,
                address: None,
            }
        };
        let noted = waiting.entry(attempt).or_insert_with(|| Noted {
            request_id: request_id.map(str::to_owned),
            first_at: now,
            times: 0,
        });
        noted.times = noted.times.saturating_add(1);
    }

    /// Notes that the API key or token with this id was used.
    pub fn used(&self, id: &str, now: DateTime<Utc>) {
        let mut used = self.used.lock();
        if let Some(last) = used.get_mut(id) {
            *last = now.max(*last);
        } else if used.len() < USED {
            used.insert(id.into(), now);
        }
    }

    /// Writes what was noted; what cannot be written stays noted for the next time.
    pub(crate) async fn write(&self) -> Result<(), CatalogError> {
        self.write_attempts().await?;
        let due = {
            let mut rounds = self.rounds.lock();
            *rounds += 1;
            let due = *rounds >= LAST_USE_ROUNDS;
            if due {
                *rounds = 0;
            }
            due
        };
        if due { self.write_used().await } else { Ok(()) }
    }

    /// Writes everything that was noted, at the end.
    pub(crate) async fn write_all(&self) -> Result<(), CatalogError> {
        self.write_attempts().await?;
        self.write_used().await
    }

    async fn write_attempts(&self) -> Result<(), CatalogError> {
        let noted = mem::take(&mut *self.attempts.lock());
        if noted.is_empty() {
            return Ok(());
        }
        let attempts: Vec<CountedAttempts> = noted
            .iter()
            .map(|(attempt, noted)| attempt.counted(noted))
            .collect();
        let written = self.catalog.record_attempts(&attempts).await;
        if written.is_err() {
            let mut waiting = self.attempts.lock();
            for (attempt, earlier) in noted {
                match waiting.entry(attempt) {
                    Entry::Occupied(mut entry) => {
                        let newer = entry.get_mut();
                        newer.times = newer.times.saturating_add(earlier.times);
                        newer.first_at = earlier.first_at;
                        newer.request_id = earlier.request_id;
                    }
                    Entry::Vacant(entry) => {
                        entry.insert(earlier);
                    }
                }
            }
        }
        written
    }

    async fn write_used(&self) -> Result<(), CatalogError> {
        let used = mem::take(&mut *self.used.lock());
        if used.is_empty() {
            return Ok(());
        }
        let (ids, times): (Vec<String>, Vec<DateTime<Utc>>) =
            used.into_iter().map(|(id, at)| (String::from(id), at)).unzip();
        let written = self.catalog.note_last_use(&ids, &times).await;
        if written.is_err() {
            let mut waiting = self.used.lock();
            for (id, at) in ids.into_iter().zip(times) {
                waiting.entry(id.into()).or_insert(at);
            }
        }
        written
    }
}

impl Attempt {
    fn counted(&self, noted: &Noted) -> CountedAttempts {
        let Attempt {
            actor,
            action,
            tenant,
            subject,
            address,
        } = self.clone();
        CountedAttempts {
            actor,
            action,
            tenant,
            subject,
            address,
            request_id: noted.request_id.clone(),
            first_at: noted.first_at,
            times: noted.times,
        }
    }
}
