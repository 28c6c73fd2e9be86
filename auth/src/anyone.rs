//! The extractor for handlers that anybody may call: it says so in their signature.

use axum::{
    extract::{FromRef, FromRequestParts},
    response::Response,
};
use http::request::Parts;
use tower_sessions::Session as WebSession;

use crate::{
    caller::CallerSlot,
    error::AuthError,
    naming::{Named, named},
    sessions::{self, LoginError},
    source::RequestSource,
    state::AuthState,
};

/// Anybody, with or without a credential.
#[derive(Clone, Debug)]
pub struct Anyone {
    /// Where the request comes from.
    pub source: RequestSource,
    pub(crate) named: Result<Vec<Named>, AuthError>,
    /// Whether a page of the service itself sends the request; `None` when it is no browser's.
    pub(crate) own_origin: Option<bool>,
    pub(crate) web: Option<WebSession>,
    pub(crate) slot: Option<CallerSlot>,
}

impl Anyone {
    /// Refuses requests that a browser sends for another site's page: nobody is logged in by a page that they did not mean.
    pub(crate) fn not_foreign(&self) -> Result<(), LoginError> {
        if self.own_origin == Some(false) {
            Err(LoginError::ForeignOrigin)
        } else {
            Ok(())
        }
    }
}

impl<S> FromRequestParts<S> for Anyone
where
    AuthState: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let auth = AuthState::from_ref(state);
        Ok(Self {
            source: RequestSource::of(parts),
            named: named(parts, &auth.base_domain),
            own_origin: sessions::own_origin(&auth, parts),
            web: parts.extensions.get().cloned(),
            slot: parts.extensions.get().cloned(),
        })
    }
}
