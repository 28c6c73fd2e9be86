//! The extractor for handlers that are about the caller's own session, whatever tenants it is good for.

use std::{fmt, sync::Arc};

use axum::{
    extract::{FromRef, FromRequestParts},
    response::Response,
};
use chrono::Utc;
use http::request::Parts;
use tenant_management::{Actor, PersonSession, control::Changed};
use tower_sessions::{Session as WebSession, session::Id};

use super::{id_sha256, of_request};
use crate::{
    caller::{CallerSlot, Principal},
    error::AuthError,
    source::RequestSource,
    state::AuthState,
};

/// The caller has logged in. An API key is no session: it gets the answer that no credential gets.
pub struct SessionAccess {
    /// Whose session, and what it is good for.
    pub session: Arc<PersonSession>,
    id: Id,
    web: WebSession,
    source: RequestSource,
}

impl fmt::Debug for SessionAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionAccess")
            .field("user", &self.session.user)
            .finish_non_exhaustive()
    }
}

impl SessionAccess {
    /// The person, for the audit trail.
    pub fn actor(&self) -> Actor {
        self.source.actor(&Principal::User(self.session.user))
    }

    /// The hash of the session's id, by which the catalog knows it.
    pub fn id_sha256(&self) -> [u8; 32] {
        id_sha256(&self.id)
    }

    /// Ends this session, and has the browser drop its cookie.
    pub async fn end(&self, auth: &AuthState) -> Result<Changed<()>, tenant_management::ControlError> {
        let ended = auth.tenancy.people().end_session(&self.id_sha256()).await?;
        self.forget().await;
        Ok(ended)
    }

    /// Ends all sessions of the person, and has this browser drop its cookie. Says how many there were.
    pub async fn end_all(&self, auth: &AuthState) -> Result<Changed<u64>, tenant_management::ControlError> {
        let ended = auth
            .tenancy
            .people()
            .end_sessions(self.session.user, &self.actor())
            .await?;
        self.forget().await;
        Ok(ended)
    }

    /// Has the browser drop its cookie. The session itself is gone already.
    async fn forget(&self) {
        if let Err(error) = self.web.flush().await {
            tracing::debug!(%error, "A session that has ended could not be ended again.");
        }
    }
}

impl<S> FromRequestParts<S> for SessionAccess
where
    AuthState: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let auth = AuthState::from_ref(state);
        let (session, id) = match of_request(&auth, parts, Utc::now()).await {
            Ok(found) => found,
            Err(error) => return Err(auth.refuse(error.into(), parts)),
        };
        let web = parts.extensions.get::<WebSession>().cloned();
        let web = web.ok_or_else(|| auth.refuse(AuthError::NoSession.into(), parts))?;
        CallerSlot::note(&parts.extensions, &Principal::User(session.user), None);
        Ok(Self {
            session,
            id,
            web,
            source: RequestSource::of(parts),
        })
    }
}
