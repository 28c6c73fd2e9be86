//! The id of a request: taken from the caller when sane, else made here, and in every answer.

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Request},
    middleware::Next,
    response::Response,
};
use http::{HeaderName, HeaderValue, request::Parts};
use uuid::Uuid;

use super::problem::finish;

/// The header that carries it, both ways.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken from a caller, in bytes.
const MAX_LENGTH: usize = 128;

/// The id of a request: 1 to 128 bytes of letters, digits, `.`, `_`, `:` and `-`. A clone is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The caller's id, if it is sane. Anything else could forge log lines or grow without limit.
    pub fn from_header(text: &str) -> Option<Self> {
        let sane = (1..=MAX_LENGTH).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-'));
        sane.then(|| Self(text.into()))
    }

    /// A new id (UUIDv7, so that ids sort by time).
    pub fn generate() -> Self {
        Self(Uuid::now_v7().to_string().into())
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(Self::generate))
    }
}

/// Gives the request its id, and the answer the finish that needs it.
pub(crate) async fn layer(mut request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(HEADER)
        .and_then(|value| value.to_str().ok());
    let id = given
        .and_then(RequestId::from_header)
        .unwrap_or_else(RequestId::generate);
    request.extensions_mut().insert(id.clone());
    let value = HeaderValue::from_str(id.as_str()).expect("an id has only characters that a header may have");
    // For whoever knows requests only, and not this service.
    request.headers_mut().insert(HEADER, value.clone());
    let mut response = finish(next.run(request).await, &id);
    response.headers_mut().insert(HEADER, value);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sane_id_is_taken() {
        for sane in ["a", "018f-1.x:Y_", &"x".repeat(128)] {
            assert_eq!(RequestId::from_header(sane).unwrap().as_str(), sane);
        }
        for insane in ["", "a b", "a\"", "a\n", "ä", "{}", "a,b", &"x".repeat(129)] {
            assert_eq!(RequestId::from_header(insane), None, "{insane:?}");
        }
        assert_ne!(RequestId::generate(), RequestId::generate());
    }
}
