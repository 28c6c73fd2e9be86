//! Headers that tell browsers what an answer may not be used for.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{
    HeaderName, HeaderValue,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
        X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};

/// Whether pages of other sites may load an answer as if it were theirs.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// An answer of the API is data: nothing in it may run or load anything.
const FOR_DATA: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The documentation runs its own scripts and asks this service. (Swagger UI sets styles inline and draws with data URLs.)
const FOR_DOCS: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How long browsers insist on TLS after an answer has said so: a year (the least for browsers' own lists). Sub-domains say it
/// for themselves.
const ONLY_TLS: &str = "max-age=31536000";

/// `only_tls`: the service is reached over TLS, as its cookies want it.
pub(crate) async fn layer(State(only_tls): State<bool>, request: Request, next: Next) -> Response {
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
    set(RESOURCE_POLICY, "same-origin");
    if only_tls {
        set(STRICT_TRANSPORT_SECURITY, ONLY_TLS);
    }
    response
}
