//! What the extractors need to know about the service they are part of.

use std::{ops::Deref, sync::Arc};

use axum::response::Response;
use http::request::Parts;
use tenant_management::{KeyRing, Tenancy};
use tower_sessions::cookie::Key;

use crate::{
    error::AuthError,
    jwt::Issuers,
    limits::{LimitHeaders, Limiters, TenantLimits},
    operator::OperatorTokens,
    passwords::Passwords,
    refusal::Refusal,
    sessions::{self, SessionLayer, SessionSettings, allowed_origins, signing_key},
};

/// How the extractors decide.
#[derive(Clone, Debug)]
pub struct AuthSettings {
    /// The domain whose sub-domains name tenants, such as `example.com`.
    pub base_domain: String,
    /// Operators that the configuration knows. They may do everything.
    pub operators: OperatorTokens,
    /// How sessions live.
    pub sessions: SessionSettings,
    /// Origins of other sites whose pages may change something by a session's cookie, such as `https://app.example.com`.
    pub allowed_origins: Vec<String>,
    /// How much one tenant may ask for.
    pub limits: TenantLimits,
}

/// What the extractors need. A router's state gives it out by `FromRef`; clones are cheap.
#[derive(Clone)]
pub struct AuthState(Arc<Shared>);

/// What all clones of an [`AuthState`] share.
pub struct Shared {
    pub(crate) tenancy: Tenancy,
    pub(crate) operators: OperatorTokens,
    pub(crate) issuers: Issuers,
    pub(crate) base_domain: Box<str>,
    pub(crate) sessions: SessionSettings,
    pub(crate) session_key: Key,
    pub(crate) allowed_origins: Box<[String]>,
    pub(crate) passwords: Passwords,
    pub(crate) limiters: Limiters,
    rejection: fn(AuthError) -> Response,
}

impl AuthState {
    /// `issuers` are those whose tokens count besides the catalog's credentials; a key that is derived from `keys` signs cookies;
    /// `rejection` words a refusal.
    pub fn new(
        tenancy: Tenancy,
        issuers: Issuers,
        keys: &KeyRing,
        settings: AuthSettings,
        rejection: fn(AuthError) -> Response,
    ) -> Self {
        Self(Arc::new(Shared {
            tenancy,
            operators: settings.operators,
            issuers,
            base_domain: settings.base_domain.to_ascii_lowercase().into(),
            sessions: settings.sessions,
            session_key: signing_key(keys),
            allowed_origins: allowed_origins(settings.allowed_origins),
            passwords: Passwords::new(),
            limiters: Limiters::new(settings.limits),
            rejection,
        }))
    }

    /// Makes and checks hashes of passwords.
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// For the operations that begin and end sessions: [`AuthState::log_in`] and [`SessionAccess`](crate::SessionAccess).
    pub fn session_layer(&self) -> SessionLayer {
        sessions::layer(&self.tenancy, self.session_key.clone(), self.sessions)
    }

    /// What a [`LimitLayer`](crate::limits::LimitLayer) says in answers.
    pub fn limit_headers(&self) -> LimitHeaders {
        self.limiters.headers()
    }

    /// The answer to a refused request.
    pub(crate) fn refuse(&self, refusal: Refusal, parts: &Parts) -> Response {
        (self.rejection)(refusal.note(self, parts))
    }
}

impl Deref for AuthState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
