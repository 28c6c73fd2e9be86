//! One log line and one count per request: what was asked for, what came of it, how long it took, and who asked.
//!
//! Never the query string (people put secrets there), never a header beyond the request id.

use std::{net::IpAddr, time::Instant};

use auth::{CallerSlot, ClientAddress};
use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, Method, StatusCode};
use tracing::Instrument;

use super::request_id::RequestId;

/// The route of requests that match none.
const UNMATCHED: &str = "unmatched";
/// Asked for every few seconds by machines; logged at `debug`.
const FOR_MACHINES: [&str; 3] = ["/livez", "/readyz", "/metrics"];
/// Which servers answered, as the data layer says in its response header.
const SERVED_BY: &str = "tenantry-served-by";
/// How old a replica's data can have been at most.
const STALENESS: &str = "tenantry-staleness-ms";

pub(crate) async fn layer(mut request: Request, next: Next) -> Response {
    let id = request
        .extensions()
        .get::<RequestId>()
        .map_or("", RequestId::as_str);
    let span = tracing::info_span!("request", request.id = id);
    let exchange = Exchange::begin(&mut request);
    async {
        let response = next.run(request).await;
        exchange.end(response.status(), response.headers());
        response
    }
    .instrument(span)
    .await
}

/// A request that is being answered. Dropped without an end when its client goes away.
struct Exchange {
    method: &'static str,
    route: String,
    started: Instant,
    caller: CallerSlot,
    address: Option<IpAddr>,
    outcome: Option<Outcome>,
}

/// The answer, as far as it is logged.
struct Outcome {
    status: StatusCode,
    served_by: String,
    staleness_ms: Option<u64>,
}

impl Exchange {
    fn begin(request: &mut Request) -> Self {
        let route = request
            .extensions()
            .get::<MatchedPath>()
            .map_or(UNMATCHED, MatchedPath::as_str)
            .to_owned();
        let caller = CallerSlot::default();
        request.extensions_mut().insert(caller.clone());
        metrics::gauge!("tenantry_http_requests_in_flight").increment(1);
        Self {
            method: method(request.method()),
            route,
            started: Instant::now(),
            caller,
            address: ClientAddress::of(request.extensions()),
            outcome: None,
        }
    }

    fn end(mut self, status: StatusCode, headers: &HeaderMap) {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        self.outcome = Some(Outcome {
            status,
            served_by: text(SERVED_BY).unwrap_or_default().to_owned(),
            staleness_ms: text(STALENESS).and_then(|text| text.parse().ok()),
        });
    }

    fn log(&self) {
        let duration_ms = self.started.elapsed().as_secs_f64() * 1000.0;
        let caller = self.caller.caller();
        let tenant = caller
            .and_then(|caller| caller.tenant.as_ref())
            .map(tracing::field::display);
        let principal = caller.map(|caller| tracing::field::display(&caller.principal));
        let address = self.address.map(tracing::field::display);
        let (method, route) = (self.method, self.route.as_str());
        match &self.outcome {
            Some(Outcome { status, .. }) if FOR_MACHINES.contains(&route) && status.is_success() => {
                tracing::debug!(
                    http.method = method,
                    http.route = route,
                    http.status = status.as_u16(),
                    http.duration_ms = duration_ms,
                    "A request was answered."
                );
            }
            Some(Outcome {
                status,
                served_by,
                staleness_ms,
            }) => tracing::info!(
                http.method = method,
                http.route = route,
                http.status = status.as_u16(),
                http.duration_ms = duration_ms,
                tenant.id = tenant,
                principal = principal,
                client.address = address,
                db.served_by = (!served_by.is_empty()).then_some(served_by.as_str()),
                db.staleness_ms = staleness_ms,
                "A request was answered."
            ),
            None => tracing::info!(
                http.method = method,
                http.route = route,
                http.duration_ms = duration_ms,
                tenant.id = tenant,
                principal = principal,
                client.address = address,
                "A client went away before its request was answered."
            ),
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.log();
        let status = match &self.outcome {
            Some(Outcome { status, .. }) => status.as_str().to_owned(),
            None => "abandoned".to_owned(),
        };
        metrics::gauge!("tenantry_http_requests_in_flight").decrement(1);
        let labels = [
            ("method", self.method.to_owned()),
            ("route", self.route.clone()),
            ("status", status),
        ];
        metrics::counter!("tenantry_http_requests_total", &labels).increment(1);
        metrics::histogram!("tenantry_http_request_duration_seconds", &labels[..2])
            .record(self.started.elapsed().as_secs_f64());
    }
}

/// The method as a label: callers can invent methods, and a label must have a bound.
fn method(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "OTHER",
    }
}
