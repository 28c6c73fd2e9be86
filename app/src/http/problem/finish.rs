//! The last touch on every answer: problems get the request id, and an error answer of somebody else's making (a router's, an
//! extractor's) becomes a problem.

use axum::response::Response;
use http::{HeaderName, header};

use super::{CONTENT_TYPE, Deliberate, Problem, ProblemKind};
use crate::http::request_id::RequestId;

/// Headers about the body, which a new body has of its own.
const OF_THE_BODY: [HeaderName; 4] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::TRANSFER_ENCODING,
];

/// Completes an answer.
pub(crate) fn finish(mut response: Response, request: &RequestId) -> Response {
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    if !failed || response.extensions().get::<Deliberate>().is_some() {
        return response;
    }
    let problem = response
        .extensions_mut()
        .remove::<Problem>()
        .or_else(|| foreign(&response));
    let Some(problem) = problem else {
        return response;
    };
    let (mut parts, _) = response.into_parts();
    for name in OF_THE_BODY {
        parts.headers.remove(name);
    }
    let mut finished = problem.render(Some(request.as_str()));
    *finished.status_mut() = parts.status;
    // What a layer has added stays, such as `Allow`.
    let own: Vec<HeaderName> = finished.headers().keys().cloned().collect();
    let added = parts.headers.iter().filter(|(name, _)| !own.contains(name));
    for (name, value) in added {
        finished.headers_mut().append(name, value.clone());
    }
    *finished.extensions_mut() = parts.extensions;
    finished
}

/// An error answer that is no problem, as a problem. Its text is not repeated: it was not written for this.
fn foreign(response: &Response) -> Option<Problem> {
    let is_problem = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(CONTENT_TYPE.as_bytes()));
    let kind = ProblemKind::from_status(response.status());
    let what = response.status().canonical_reason().unwrap_or(kind.title());
    (!is_problem).then(|| Problem::new(kind, format!("the request was refused: {what}")))
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, response::IntoResponse};
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;

    async fn body(response: Response) -> Value {
        serde_json::from_slice(&to_bytes(response.into_body(), 10_000).await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_problem_gets_the_request_id() {
        let id = RequestId::from_header("abc:1").unwrap();
        let finished = finish(
            Problem::new(ProblemKind::NotFound, "no such invoice").into_response(),
            &id,
        );
        assert_eq!(finished.headers()["content-type"], CONTENT_TYPE);
        let expected = json!({
            "type": "/problems/not-found",
            "title": "Not found",
            "status": 404,
            "detail": "no such invoice",
            "instance": "abc:1",
        });
        assert_eq!(body(finished).await, expected);
    }

    #[tokio::test]
    async fn a_foreign_error_becomes_a_problem_and_keeps_its_headers() {
        let foreign = (
            StatusCode::IM_A_TEAPOT,
            [("allow", "GET")],
            "secret text of a library",
        )
            .into_response();
        let finished = finish(foreign, &RequestId::from_header("r").unwrap());
        assert_eq!(finished.status(), StatusCode::IM_A_TEAPOT);
        assert_eq!(finished.headers()["allow"], "GET");
        assert_eq!(finished.headers().get_all("content-type").iter().count(), 1);
        let body = body(finished).await;
        assert_eq!(body["type"], "/problems/bad-request");
        assert!(!body.to_string().contains("secret"));
    }

    #[tokio::test]
    async fn every_cookie_of_an_error_answer_stays() {
        let cookies = [("set-cookie", "one=1"), ("set-cookie", "two=2")];
        let refused = (StatusCode::FORBIDDEN, http::HeaderMap::new(), ()).into_response();
        let (mut parts, body) = refused.into_parts();
        for (name, value) in cookies {
            parts.headers.append(name, value.parse().unwrap());
        }
        let finished = finish(
            Response::from_parts(parts, body),
            &RequestId::from_header("r").unwrap(),
        );
        assert_eq!(finished.headers().get_all("set-cookie").iter().count(), 2);
    }

    #[tokio::test]
    async fn a_success_is_left_alone() {
        let finished = finish("hello".into_response(), &RequestId::from_header("r").unwrap());
        assert_eq!(to_bytes(finished.into_body(), 100).await.unwrap(), "hello");
    }
}
