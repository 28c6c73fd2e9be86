//! Sessions of people who have logged in: a cookie with a random id, and a row in the catalog.
//!
//! [`store`] keeps sessions where the session layer wants them, [`origin`] tells requests of a browser's own page from those of
//! others, [`access`] is the extractor for handlers that are about a session itself, [`login`] begins one. Refuses to know what
//! a session may do: a person's memberships say that.

mod access;
mod invitation;
mod login;
mod origin;
mod password;
mod store;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use http::request::Parts;
use sha2::{Digest, Sha256};
use tenant_management::{KeyRing, PersonSession, Tenancy};
use tower_sessions::{
    Session as WebSession, SessionManagerLayer,
    cookie::{Key, SameSite},
    service::SignedCookie,
    session::Id,
};

pub(crate) use self::origin::{allowed_origins, is_own as own_origin, is_safe};
pub use self::{
    access::SessionAccess,
    invitation::{AcceptedInvitation, InvitationError},
    login::LoginError,
    password::PasswordError,
    store::CatalogStore,
};
use crate::{
    error::{AuthError, CredentialFault},
    state::AuthState,
};

/// The name of the cookie.
pub const COOKIE: &str = "tenantry_session";
/// What the two halves of the key that signs cookies are derived for.
const PURPOSES: [&str; 2] = [
    "cookies of sessions, first half",
    "cookies of sessions, second half",
];

/// How sessions live.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// A session ends after so long without a request.
    pub idle_timeout: Duration,
    /// A session ends so long after its login in any case.
    pub lifetime: Duration,
    /// Whether browsers send the cookie over HTTPS only.
    pub secure: bool,
}

impl Default for SessionSettings {
    /// 30 minutes without a request, 12 hours in all, HTTPS only (OWASP's session management cheat sheet: 15 to 30 minutes for
    /// ordinary applications, and a working day).
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(30 * 60),
            lifetime: Duration::from_secs(12 * 60 * 60),
            secure: true,
        }
    }
}

/// What finds a request's session.
pub type SessionLayer = SessionManagerLayer<CatalogStore, SignedCookie>;

/// The layer that finds a request's session by its cookie. The cookie is signed, so that only ids that were given out are looked
/// up. It has no `Domain`: a browser sends it to the very host that has set it.
pub fn layer(tenancy: &Tenancy, keys: &KeyRing, settings: SessionSettings) -> SessionLayer {
    let halves = PURPOSES.map(|purpose| keys.derive(purpose).0);
    SessionManagerLayer::new(CatalogStore::new(tenancy.clone(), settings))
        .with_name(COOKIE)
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_secure(settings.secure)
        .with_path("/")
        .with_signed(Key::from(halves.as_flattened()))
}

/// The hash of a session's id, by which the catalog knows it.
fn id_sha256(id: &Id) -> [u8; 32] {
    Sha256::digest(id.0.to_le_bytes()).into()
}

/// The session that a request's cookie is for. A request that changes something has to come from a page of the service itself,
/// since browsers add cookies to whatever any page makes them send.
pub(crate) async fn of_request(
    auth: &AuthState,
    parts: &Parts,
    now: DateTime<Utc>,
) -> Result<(Arc<PersonSession>, Id), AuthError> {
    let id = parts.extensions.get::<WebSession>().and_then(WebSession::id);
    let id = id.ok_or(AuthError::Unauthenticated(CredentialFault::Missing))?;
    if !auth.tenancy.may_believe_credentials() {
        return Err(AuthError::Unavailable);
    }
    let idle_timeout = auth.sessions.idle_timeout;
    let session = auth
        .tenancy
        .people()
        .session(&id_sha256(&id), idle_timeout, now)
        .await
        .map_err(|_| AuthError::Unavailable)?
        .ok_or(AuthError::Unauthenticated(CredentialFault::Expired))?;
    if !is_safe(&parts.method) && !own_origin(auth, parts).unwrap_or(false) {
        return Err(AuthError::ForeignOrigin);
    }
    Ok((session, id))
}
