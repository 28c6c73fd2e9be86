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
use http::{HeaderMap, header, request::Parts};
use sha2::{Digest, Sha256};
use tenant_management::{KeyRing, PersonSession, Tenancy};
use tower_sessions::{
    SessionManagerLayer,
    cookie::{Cookie, CookieJar, Key, SameSite},
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

/// What begins and ends the session of a request. Only operations that do so need it: who a request is from is found out without.
pub type SessionLayer = SessionManagerLayer<CatalogStore, SignedCookie>;

/// The key that signs cookies, so that only ids that were given out are looked up.
pub(crate) fn signing_key(keys: &KeyRing) -> Key {
    let halves = PURPOSES.map(|purpose| keys.derive(purpose).0);
    Key::from(halves.as_flattened())
}

/// The cookie has no `Domain`: a browser sends it to the very host that has set it.
pub(crate) fn layer(tenancy: &Tenancy, key: Key, settings: SessionSettings) -> SessionLayer {
    SessionManagerLayer::new(CatalogStore::new(tenancy.clone(), settings))
        .with_name(COOKIE)
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_secure(settings.secure)
        .with_path("/")
        .with_signed(key)
}

/// The session's id in a request's cookie. A cookie that this service has not signed is none, and of two cookies nobody knows
/// which was planted.
fn id_in(headers: &HeaderMap, key: &Key) -> Result<Id, CredentialFault> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let mut ours = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(Cookie::split_parse)
        .filter_map(Result::ok)
        .filter(|cookie| cookie.name() == COOKIE);
    let cookie = ours.next().ok_or(CredentialFault::Missing)?;
    if ours.next().is_some() {
        return Err(CredentialFault::Malformed);
    }
    let mut jar = CookieJar::new();
    jar.add_original(cookie.into_owned());
    let signed = jar.signed(key).get(COOKIE).ok_or(CredentialFault::Malformed)?;
    signed.value().parse().map_err(|_| CredentialFault::Malformed)
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
    let id = id_in(&parts.headers, &auth.session_key).map_err(AuthError::Unauthenticated)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::from(&[7; 64])
    }

    fn signed(id: &Id, key: &Key) -> String {
        let mut jar = CookieJar::new();
        jar.signed_mut(key).add(Cookie::new(COOKIE, id.to_string()));
        jar.get(COOKIE).unwrap().to_string()
    }

    fn of(values: &[&str]) -> Result<Id, CredentialFault> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::COOKIE, value.parse().unwrap());
        }
        id_in(&headers, &key())
    }

    #[test]
    fn a_session_is_in_one_cookie_that_this_service_has_signed() {
        let id = Id::default();
        let cookie = signed(&id, &key());
        assert_eq!(of(&[&cookie]), Ok(id));
        assert_eq!(of(&[&format!("theme=dark; {cookie}; x=y")]), Ok(id));
        assert_eq!(of(&["theme=dark", &cookie]), Ok(id));
        for none in [&[][..], &["theme=dark"], &["tenantry_position=x"]] {
            assert_eq!(of(none), Err(CredentialFault::Missing));
        }
        let other = signed(&id, &Key::from(&[8; 64]));
        for bad in [
            &[other.as_str()][..],
            &[&format!("{COOKIE}={id}")],
            &[&format!("{COOKIE}=")],
            &[&cookie, &cookie],
            &[&format!("{cookie}; {cookie}")],
            &[&other, &cookie],
        ] {
            assert_eq!(of(bad), Err(CredentialFault::Malformed), "{bad:?}");
        }
    }
}
