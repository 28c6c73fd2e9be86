//! Sessions where the session layer wants them: in the catalog.
//!
//! A session is whose it is and what tenant it is bound to, from its login to its end; nothing else is kept in it.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tenant_management::{NewSession, Tenancy, TenantUuid, UserId};
use time::OffsetDateTime;
use tower_sessions::{
    SessionStore,
    session::{Id, Record},
    session_store::{Error, Result},
};

use super::{SessionSettings, id_sha256};

/// Whose a session is.
pub(super) const USER: &str = "user";
/// The only tenant that a session is good for.
pub(super) const TENANT: &str = "tenant";

/// Keeps sessions in the catalog, under the hash of their ids.
#[derive(Clone, Debug)]
pub struct CatalogStore {
    tenancy: Tenancy,
    idle_timeout: Duration,
}

impl CatalogStore {
    pub(super) fn new(tenancy: Tenancy, settings: SessionSettings) -> Self {
        Self {
            tenancy,
            idle_timeout: settings.idle_timeout,
        }
    }
}

#[async_trait]
impl SessionStore for CatalogStore {
    async fn create(&self, record: &mut Record) -> Result<()> {
        let session = NewSession {
            user: member(record, USER)?.ok_or_else(|| Error::Encode("a session is somebody's".to_owned()))?,
            tenant: member(record, TENANT)?,
            idle_timeout: self.idle_timeout,
            ends_at: to_chrono(record.expiry_date),
        };
        let people = self.tenancy.people();
        while !people
            .begin_session(&id_sha256(&record.id), &session)
            .await
            .map_err(backend)?
        {
            record.id = Id::default();
        }
        Ok(())
    }

    /// What a session says does not change after its login.
    async fn save(&self, _: &Record) -> Result<()> {
        Ok(())
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        let session = self
            .tenancy
            .people()
            .session(&id_sha256(id), self.idle_timeout, Utc::now())
            .await
            .map_err(backend)?;
        Ok(session.map(|session| {
            let mut data = std::collections::HashMap::from([(USER.to_owned(), text(&session.user))]);
            data.extend(session.tenant.map(|tenant| (TENANT.to_owned(), text(&tenant))));
            Record {
                id: *id,
                data,
                expiry_date: to_time(session.ends_at),
            }
        }))
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        self.tenancy
            .people()
            .end_session(&id_sha256(id))
            .await
            .map(drop)
            .map_err(backend)
    }
}

trait FromText: Sized {
    fn from_text(text: &str) -> Option<Self>;
}

impl FromText for UserId {
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl FromText for TenantUuid {
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

fn member<T: FromText>(record: &Record, name: &str) -> Result<Option<T>> {
    let Some(value) = record.data.get(name) else {
        return Ok(None);
    };
    let parsed = value.as_str().and_then(T::from_text);
    parsed
        .map(Some)
        .ok_or_else(|| Error::Encode(format!("a session's {name} is an identity")))
}

fn text(identity: &impl ToString) -> Value {
    Value::String(identity.to_string())
}

fn backend(error: impl std::error::Error) -> Error {
    Error::Backend(error.to_string())
}

pub(super) fn to_time(at: DateTime<Utc>) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(at.timestamp()).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn to_chrono(at: OffsetDateTime) -> DateTime<Utc> {
    DateTime::from_timestamp(at.unix_timestamp(), 0).unwrap_or_default()
}
