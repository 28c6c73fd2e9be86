//! Every answer that is not a success: problem details (RFC 9457).
//!
//! A [`Problem`] is a [`ProblemKind`] of the closed catalogue and what is particular to this one. It refuses to know where it
//! happened: domain errors become problems in `from`, and the request id is added on the way out (`finish`).

mod finish;
mod from;
mod kind;
pub(crate) mod pages;

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, Uri, header};
use problem_details::ProblemDetails;
use serde::Serialize;
use tenant_management::OperationId;
use utoipa::ToSchema;

pub(crate) use finish::finish;
pub use kind::ProblemKind;

/// The media type of problems.
pub const CONTENT_TYPE: &str = "application/problem+json";
/// `Retry-After` when nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// In the extensions of an answer with an error's status that is no problem on purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deliberate;

/// An answer that is not a success. The detail is shown to the caller: it names what was wrong with the request and what to do,
/// and never repeats a secret or text of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    kind: ProblemKind,
    detail: String,
    errors: Vec<FieldError>,
    retry_after: Option<Duration>,
    operation: Option<OperationId>,
}

/// One field of a request that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// The field, as a path such as `labels.team` or `domains[1]`.
    #[schema(examples("display_name"))]
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}

/// A problem (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// The kind of problem: the path of its documentation.
    #[schema(examples("/problems/not-found"))]
    pub r#type: String,
    /// The kind of problem in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What is particular to this problem, and what to do.
    pub detail: String,
    /// The id of the request, as in the header `X-Request-Id`.
    pub instance: String,
    /// Each field of the request that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldError>,
    /// The operation that goes on with what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<uuid::Uuid>,
}

/// The members that the `problem_details` crate does not have. `instance` is among them because the crate wants a URI there, and
/// a request id need not be one.
#[derive(Serialize)]
struct Members<'p> {
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<&'p str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'p [FieldError],
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<OperationId>,
}

impl Problem {
    /// A problem of this kind; `detail` says what is particular to it.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            errors: Vec::new(),
            retry_after: None,
            operation: None,
        }
    }

    /// A failure of the service itself. It is logged here, once, and the caller learns nothing about it.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "A request failed inside the service.");
        Self::new(
            ProblemKind::Internal,
            "the service failed; its log has the details under this request id",
        )
    }

    /// A body that is JSON and not what the operation takes.
    pub fn invalid_body(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [only] => format!("{}: {}", only.field, only.detail),
            several => format!("{} fields are wrong; see `errors`", several.len()),
        };
        Self {
            errors,
            ..Self::new(ProblemKind::InvalidBody, detail)
        }
    }

    /// Says when to try again. Shown by `503` and `429` only.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Names the operation that goes on with what was asked for.
    #[must_use]
    pub fn with_operation(mut self, operation: Option<OperationId>) -> Self {
        self.operation = operation;
        self
    }

    /// What kind of problem it is.
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// What is particular to it.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The answer, with the request id once that is known.
    fn render(&self, instance: Option<&str>) -> Response {
        let status = self.kind.status();
        let mut response = ProblemDetails::new()
            .with_type(Uri::from_static(self.kind.type_path()))
            .with_title(self.kind.title())
            .with_status(status)
            .with_detail(&self.detail)
            .with_extensions(Members {
                instance,
                errors: &self.errors,
                operation: self.operation,
            })
            .into_response();
        let headers = response.headers_mut();
        if matches!(
            status,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        ) {
            headers.insert(
                header::RETRY_AFTER,
                seconds(self.retry_after.unwrap_or(RETRY_AFTER)).into(),
            );
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static(auth::CHALLENGE),
            );
        }
        response
    }
}

/// Whole seconds, at least one: zero would ask for a busy loop.
fn seconds(duration: Duration) -> u64 {
    let rounded_up = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    rounded_up.max(1)
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.render(None);
        // `finish` renders it again, with the request id.
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_in_whole_seconds_and_never_none() {
        assert_eq!(seconds(Duration::ZERO), 1);
        assert_eq!(seconds(Duration::from_millis(1001)), 2);
        let busy = Problem::new(ProblemKind::Unavailable, "busy").with_retry_after(Duration::from_secs(7));
        assert_eq!(busy.into_response().headers()["retry-after"], "7");
        assert_eq!(
            Problem::new(ProblemKind::Overloaded, "busy")
                .into_response()
                .headers()["retry-after"],
            "1"
        );
        assert!(
            !Problem::new(ProblemKind::NotFound, "gone")
                .into_response()
                .headers()
                .contains_key("retry-after")
        );
    }

    #[test]
    fn a_missing_credential_is_challenged() {
        let response = Problem::new(ProblemKind::Unauthenticated, "who?").into_response();
        assert_eq!(response.headers()["www-authenticate"], auth::CHALLENGE);
    }
}
