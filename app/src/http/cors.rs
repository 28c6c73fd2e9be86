//! Pages of other sites that may use the tenants' API. None may unless the configuration names them.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser remembers what it may do. (Chromium has a limit of two hours.)
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Where the tenants' API is. The control plane is for nobody's page.
const TENANTS: &str = "/v1/";

/// Lets pages of these origins use the tenants' API, with the cookies of its people. `None`: there are none, and answers say
/// nothing.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origins: Vec<HeaderValue> = origins
        .iter()
        .map(|origin| HeaderValue::from_str(origin).expect("an origin was checked to be ASCII"))
        .collect();
    let origins = AllowOrigin::predicate(move |origin, request| {
        request.uri.path().starts_with(TENANTS) && origins.contains(origin)
    });
    let names = |names: &[&'static str]| -> Vec<HeaderName> {
        names.iter().map(|name| HeaderName::from_static(name)).collect()
    };
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_credentials(true)
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        .allow_headers(
            [
                vec![header::AUTHORIZATION, header::CONTENT_TYPE, header::IF_MATCH],
                names(&[
                    "idempotency-key",
                    "x-tenant-id",
                    "x-request-id",
                    "tenantry-position",
                ]),
            ]
            .concat(),
        )
        .expose_headers(
            [
                vec![header::LOCATION, header::ETAG, header::RETRY_AFTER],
                names(&[
                    "x-request-id",
                    "idempotency-replayed",
                    "tenantry-position",
                    "tenantry-served-by",
                    "tenantry-staleness-ms",
                    "ratelimit",
                    "ratelimit-policy",
                ]),
            ]
            .concat(),
        )
        .max_age(REMEMBERED);
    Some(layer)
}
