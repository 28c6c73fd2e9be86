//! Where each request comes from. Who of those in between is believed is the configuration's business.

use auth::TrustedProxies;
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

/// Notes the address of the request's client in its extensions.
pub(crate) async fn layer(
    State(proxies): State<TrustedProxies>,
    mut request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    proxies.note(&parts.headers, &mut parts.extensions);
    request = Request::from_parts(parts, body);
    next.run(request).await
}
