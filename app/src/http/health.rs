//! `GET /livez`, `GET /readyz`: whether the process runs, and whether it should be sent requests.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::RETRY_AFTER};
use serde::Serialize;
use tenant_management::PartReadiness;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{AppState, json::Json, problem::Deliberate};

/// The process runs.
#[derive(Serialize, ToSchema)]
pub(crate) struct Alive {
    /// Always `true`.
    alive: bool,
}

/// Whether the instance should be sent requests.
#[derive(Serialize, ToSchema)]
pub(crate) struct Ready {
    /// Whether every essential part is ready.
    ready: bool,
    /// Each part.
    parts: Vec<Part>,
}

/// One part of an instance.
#[derive(Serialize, ToSchema)]
pub(crate) struct Part {
    /// Which.
    #[schema(examples("routing-table"))]
    part: &'static str,
    /// Whether it is ready.
    ready: bool,
    /// Whether the instance can serve without it.
    essential: bool,
    /// What is the matter with it.
    problem: Option<String>,
}

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(livez))
        .routes(routes!(readyz))
}

/// Whether the process runs
#[utoipa::path(get, path = "/livez", tag = "machines", responses((status = OK, description = "It runs", body = Alive)))]
pub(crate) async fn livez() -> Json<Alive> {
    Json(Alive { alive: true })
}

/// Whether the instance should be sent requests
///
/// It should not before it knows every tenant, nor once it is shutting down. Parts that are not essential are listed and do not
/// count: known tenants are served without the catalog.
#[utoipa::path(get, path = "/readyz", tag = "machines", responses(
    (status = OK, description = "It should", body = Ready),
    (status = SERVICE_UNAVAILABLE, description = "It should not; which part is not ready", body = Ready,
        headers(("Retry-After" = u64, description = "Seconds"))),
))]
pub(crate) async fn readyz(State(state): State<AppState>) -> Response {
    let readiness = state.tenancy().readiness().await;
    let mut parts: Vec<Part> = readiness.into_iter().map(Part::from).collect();
    let draining = state
        .is_draining()
        .then(|| "the instance is shutting down".to_owned());
    parts.push(Part {
        part: "listener",
        ready: draining.is_none(),
        essential: true,
        problem: draining,
    });
    let ready = parts.iter().all(|part| part.ready || !part.essential);
    let body = Json(Ready { ready, parts });
    if ready {
        return body.into_response();
    }
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], body).into_response();
    response.extensions_mut().insert(Deliberate);
    response
}

impl From<PartReadiness> for Part {
    fn from(
        PartReadiness {
            part,
            essential,
            problem,
        }: PartReadiness,
    ) -> Self {
        Self {
            part,
            ready: problem.is_none(),
            essential,
            problem,
        }
    }
}
