//! The beginning of a session: e-mail address and password.
//!
//! Whoever does not get in learns nothing but that: an address that nobody has, a wrong password and a tenant to which the person
//! does not belong get the same answer and take the same time. Attempts are counted by account and by address, for all instances
//! together.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use tenant_management::{
    Allowance, CatalogError, EmailAddress, PersonSession, TenantUuid, UserId, audit::Attempt,
};
use tower_sessions::{Expiry, Session as WebSession};

use super::{
    id_sha256,
    store::{TENANT, USER, to_time},
};
use crate::{
    anyone::Anyone,
    caller::{CallerSlot, Principal},
    error::CredentialFault,
    naming::Named,
    passwords::Busy,
    state::AuthState,
};

/// Attempts with one e-mail address: ten at once, and one more each half a minute. (NIST SP 800-63B, section 3.2.2, allows at
/// most a hundred failures in a row.) A success makes the allowance whole.
const BY_ACCOUNT: Allowance = Allowance {
    at_once: 10,
    every: Duration::from_secs(30),
};
/// Attempts from one address, behind which there can be a whole office.
const BY_ADDRESS: Allowance = Allowance {
    at_once: 100,
    every: Duration::from_secs(3),
};

/// Why no session has begun.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// Address and password do not fit, or the person does not belong to the tenant that the request names.
    #[error("e-mail address and password do not fit")]
    Refused,
    /// There were too many attempts.
    #[error("there were too many attempts; wait before the next one")]
    TooMany {
        /// How long.
        retry_after: Duration,
    },
    /// Another site's page sends the request.
    #[error("a page of another site may not log anybody in")]
    ForeignOrigin,
    /// Too many people log in at the moment.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The catalog did not answer as it should.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The session could not be kept.
    #[error("the session could not be kept")]
    Store(#[from] tower_sessions::session::Error),
    /// The service has no layer for sessions.
    #[error("the service is not put together as it should be")]
    NoLayer,
}

impl AuthState {
    /// Begins a session with a new id, whatever the request came with. When the request names a tenant, the session is good for
    /// that one only.
    pub async fn log_in(
        &self,
        caller: &Anyone,
        email: &EmailAddress,
        password: SecretString,
    ) -> Result<Arc<PersonSession>, LoginError> {
        caller.not_foreign()?;
        let web = caller.web.as_ref().ok_or(LoginError::NoLayer)?;
        let email = email.folded();
        self.count_attempt_from(caller).await?;
        self.count_attempt_at(caller, &email).await?;
        let people = self.tenancy.people();
        let account = people.account(&email).await?;
        let hash = account.as_ref().map(|account| account.password_hash.clone());
        let fits = self.passwords.verify(password, hash).await?;
        let named = self.named_at_login(caller).await?;
        let user = account.map(|account| account.user).filter(|_| fits);
        let tenant = match (user, named) {
            (Some(_), NamedTenant::None) => Some(None),
            (Some(user), NamedTenant::One(tenant)) => {
                people.role_in(user, tenant).await?.map(|_| Some(tenant))
            }
            (None, _) | (_, NamedTenant::Nobody) => None,
        };
        let (Some(user), Some(tenant)) = (user, tenant) else {
            let action = CredentialFault::WrongPassword.action();
            self.note_login(caller, "unknown", action, None, Some(&email));
            return Err(LoginError::Refused);
        };
        let session = self.begin(web, user, tenant).await?;
        self.forgive(&email).await?;
        let principal = Principal::User(user);
        self.note_login(caller, &principal.to_string(), "login.succeeded", tenant, None);
        CallerSlot::note_in(caller.slot.as_ref(), &principal, None);
        session.ok_or(LoginError::Refused)
    }

    async fn begin(
        &self,
        web: &WebSession,
        user: UserId,
        tenant: Option<TenantUuid>,
    ) -> Result<Option<Arc<PersonSession>>, LoginError> {
        // Whatever session the request came with ends: an id that somebody else may know is never a way in.
        web.cycle_id().await?;
        web.insert(USER, user.to_string()).await?;
        match tenant {
            Some(tenant) => web.insert(TENANT, tenant.to_string()).await?,
            None => web.remove_value(TENANT).await.map(drop)?,
        }
        let now = Utc::now();
        let lifetime = TimeDelta::from_std(self.sessions.lifetime).unwrap_or(TimeDelta::MAX);
        let ends_at = now
            .checked_add_signed(lifetime)
            .unwrap_or(DateTime::<Utc>::MAX_UTC);
        web.set_expiry(Some(Expiry::AtDateTime(to_time(ends_at))));
        web.save().await?;
        let id = web.id().ok_or(LoginError::NoLayer)?;
        let idle_timeout = self.sessions.idle_timeout;
        let people = self.tenancy.people();
        Ok(people.session(&id_sha256(&id), idle_timeout, now).await?)
    }

    /// Counts an attempt to prove oneself, by the address that it comes from. Before attempts are counted by account: who has used
    /// up theirs must not use up other people's.
    pub(super) async fn count_attempt_from(&self, caller: &Anyone) -> Result<(), LoginError> {
        let Some(address) = caller.source.address else {
            return Ok(());
        };
        let key = key("address", &address.to_string());
        let counted = self.count(&key, BY_ADDRESS).await;
        if counted.is_err() {
            self.note_login(caller, "unknown", "login.throttled", None, None);
        }
        counted
    }

    /// Counts an attempt to prove oneself, by the account that it is for.
    pub(super) async fn count_attempt_at(
        &self,
        caller: &Anyone,
        email: &EmailAddress,
    ) -> Result<(), LoginError> {
        let counted = self.count_attempt_with(email).await;
        if counted.is_err() {
            self.note_login(caller, "unknown", "login.throttled", None, Some(email));
        }
        counted
    }

    /// Counts an attempt by the account that it is for.
    pub(super) async fn count_attempt_with(&self, email: &EmailAddress) -> Result<(), LoginError> {
        self.count(&account_key(email), BY_ACCOUNT).await
    }

    async fn count(&self, key: &[u8; 32], allowance: Allowance) -> Result<(), LoginError> {
        match self.tenancy.people().count_attempt(key, allowance).await? {
            None => Ok(()),
            Some(retry_after) => Err(LoginError::TooMany { retry_after }),
        }
    }

    /// Makes an account's allowance of attempts whole again.
    pub(super) async fn forgive(&self, email: &EmailAddress) -> Result<(), CatalogError> {
        self.tenancy.people().forget_attempts(&account_key(email)).await
    }

    /// The tenant that a login names, without telling whether there is one of that name.
    async fn named_at_login(&self, caller: &Anyone) -> Result<NamedTenant, CatalogError> {
        let Ok(names) = &caller.named else {
            return Ok(NamedTenant::Nobody);
        };
        let mut tenant = None;
        for name in names {
            let found = match name {
                Named::Tenant(id) => self.tenancy.resolve(id).await.ok(),
                Named::Malformed => None,
                // A host that nobody has registered is the service's own.
                Named::Domain(domain) => match self.tenancy.table().get_by_domain(domain) {
                    Some(route) => Some(route),
                    None => continue,
                },
            };
            match (found, tenant) {
                (Some(route), None) => tenant = Some(route.uuid),
                (Some(route), Some(other)) if route.uuid == other => {}
                _ => return Ok(NamedTenant::Nobody),
            }
        }
        Ok(tenant.map_or(NamedTenant::None, NamedTenant::One))
    }

    pub(super) fn note_login(
        &self,
        caller: &Anyone,
        actor: &str,
        action: &'static str,
        tenant: Option<TenantUuid>,
        email: Option<&EmailAddress>,
    ) {
        let attempt = Attempt {
            actor: actor.to_owned(),
            action,
            tenant,
            subject: email.map(|email| email.as_str().to_owned()),
            address: caller.source.address,
        };
        let request_id = caller.source.request_id.as_deref();
        self.tenancy.trail().note(attempt, request_id, Utc::now());
    }
}

/// What a login's names come to.
enum NamedTenant {
    /// They name none.
    None,
    /// All name this one.
    One(TenantUuid),
    /// They name one that does not exist, or different ones.
    Nobody,
}

fn account_key(email: &EmailAddress) -> [u8; 32] {
    key("account", email.as_str())
}

fn key(kind: &str, name: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(kind)
        .chain_update([0])
        .chain_update(name)
        .finalize()
        .into()
}
