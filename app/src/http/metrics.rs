//! `GET /metrics`: what has been measured, in the text format of Prometheus. No label names a tenant.

use axum::{extract::State, response::IntoResponse};
use http::header::CONTENT_TYPE;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// What has been measured
#[utoipa::path(get, path = "/metrics", tag = "machines", responses(
    (status = OK, description = "All metrics, in the text format of Prometheus", body = String, content_type = "text/plain"),
))]
pub(crate) async fn metrics(State(state): State<AppState>) -> impl IntoResponse {
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        state.metrics().render(),
    )
}
