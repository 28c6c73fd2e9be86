//! What every request is held to: size of its head, time until its answer, and what becomes of a panic.

use std::any::Any;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::HeaderMap;

use super::{
    AppState,
    problem::{Problem, ProblemKind},
};

/// Largest path and query, in bytes.
const MAX_URI: usize = 8 * 1024;
/// Largest sum of all headers' names and values, in bytes.
const MAX_HEADERS: usize = 32 * 1024;

/// Refuses a head that is larger than the service reads. (One that is much larger is refused by the HTTP library itself, in
/// fewer words.)
pub(crate) async fn head(request: Request, next: Next) -> Response {
    if request
        .uri()
        .path_and_query()
        .is_some_and(|target| target.as_str().len() > MAX_URI)
    {
        return Problem::new(
            ProblemKind::UriTooLong,
            format!("path and query have at most {MAX_URI} bytes"),
        )
        .into_response();
    }
    if size(request.headers()) > MAX_HEADERS {
        let detail = format!("headers have at most {MAX_HEADERS} bytes together");
        return Problem::new(ProblemKind::HeadersTooLarge, detail).into_response();
    }
    next.run(request).await
}

fn size(headers: &HeaderMap) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum()
}

/// Ends a request that takes too long. Its handler is dropped where it waits, so that a transaction in it is rolled back.
pub(crate) async fn time(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let limit = state.limits().request_timeout;
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            tracing::warn!(limit = ?limit, "A request took too long and was ended.");
            Problem::new(
                ProblemKind::Timeout,
                format!("the request took longer than {limit:?}"),
            )
            .into_response()
        }
    }
}

/// The answer when a handler panicked. The panic itself has been logged by the process's hook.
pub(crate) fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    Problem::internal("a handler panicked").into_response()
}

/// The answer for a path that leads nowhere.
pub(crate) async fn unknown_path() -> Problem {
    Problem::new(
        ProblemKind::UnknownPath,
        "there is nothing at this path; /openapi.json lists every path",
    )
}

/// The answer for a method that a path does not have. The router adds `Allow`.
pub(crate) async fn method_not_allowed() -> Problem {
    Problem::new(
        ProblemKind::MethodNotAllowed,
        "this path does not have this method; see the header Allow",
    )
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::to_bytes, middleware::from_fn, routing::get};
    use http::StatusCode;
    use tower::ServiceExt;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;

    async fn breaks() -> &'static str {
        panic!("a secret of the handler")
    }

    #[tokio::test]
    async fn a_panic_is_a_problem_that_gives_nothing_away() {
        let router = Router::new()
            .route("/", get(breaks))
            .layer(CatchPanicLayer::custom(panicked))
            .layer(from_fn(super::super::request_id::layer));
        let request = Request::builder()
            .uri("/")
            .body(axum::body::Body::empty())
            .unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            (&problem["type"], &problem["instance"]),
            (&"/problems/internal".into(), &id.into())
        );
        assert!(!problem.to_string().contains("secret"));
    }
}
