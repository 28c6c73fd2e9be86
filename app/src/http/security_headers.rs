//! Headers that tell browsers what an answer may not be used for.

use axum::{extract::Request, middleware::Next, response::Response};
use http::{
    HeaderName, HeaderValue,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};

/// An answer of the API is data: nothing in it may run or load anything.
const FOR_DATA: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The documentation runs its own scripts and asks this service. (Swagger UI sets styles inline and draws with data URLs.)
const FOR_DOCS: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn layer(request: Request, next: Next) -> Response {
    let docs = request.uri().path().starts_with("/docs");
    let mut response = next.run(request).await;
    let (policy, cache) = if docs {
        (FOR_DOCS, "max-age=3600")
    } else {
        (FOR_DATA, "no-store")
    };
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(CONTENT_SECURITY_POLICY, policy);
    set(CACHE_CONTROL, cache);
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(X_FRAME_OPTIONS, "DENY");
    set(REFERRER_POLICY, "no-referrer");
    response
}
