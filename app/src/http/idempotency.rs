//! `Idempotency-Key`: the same request again gets the answer of the first, and is done once.
//!
//! Answers of the control plane are kept in the catalog, sealed. Only successes are kept: what was refused or did not work out
//! may be tried again under the same key. Refuses to know what the work is.

use axum::{
    extract::OptionalFromRequestParts,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header, request::Parts};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenant_management::{IdempotencyLease, Idempotent};
use tokio::sync::oneshot;
use utoipa::{
    IntoParams,
    openapi::{
        ObjectBuilder, Required, Type,
        path::{Parameter, ParameterBuilder, ParameterIn},
    },
};

use super::{
    AppState,
    problem::{Problem, ProblemKind},
};

/// The header.
pub const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// On an answer that was kept.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Longest key in bytes.
const MAX_LENGTH: usize = 255;

/// The caller's name for a request: 1 to 255 visible ASCII characters. Extracted as `Option<IdempotencyKey>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key in a header's value.
    pub fn parse(text: &str) -> Option<Self> {
        let sane = (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        sane.then(|| Self(text.to_owned()))
    }

    /// The key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Problem> {
        let mut values = parts.headers.get_all(HEADER).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let key = value
            .to_str()
            .ok()
            .and_then(Self::parse)
            .filter(|_| values.next().is_none());
        let refused = || {
            let detail = format!(
                "`Idempotency-Key` must be sent once, with 1 to {MAX_LENGTH} visible ASCII characters"
            );
            Problem::new(ProblemKind::InvalidIdempotencyKey, detail)
        };
        key.map(Some).ok_or_else(refused)
    }
}

impl IntoParams for IdempotencyKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(MAX_LENGTH));
        let description = "Names this request, so that it can be repeated: the same key and body get the answer of the first, \
                           another body is refused. A random UUID is a good key.";
        let parameter = ParameterBuilder::new()
            .name("Idempotency-Key")
            .parameter_in(ParameterIn::Header);
        vec![
            parameter
                .required(Required::False)
                .description(Some(description))
                .schema(Some(schema))
                .build(),
        ]
    }
}

/// A successful answer that can be kept.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    #[serde(skip)]
    status: StatusCode,
    location: Option<String>,
    body: String,
}

impl Answer {
    pub(crate) fn new(status: StatusCode, body: &impl Serialize) -> Self {
        let body =
            serde_json::to_string(body).expect("an answer has only keys and values that JSON can express");
        Self {
            status,
            location: None,
            body,
        }
    }

    pub(crate) fn at(mut self, location: String) -> Self {
        self.location = Some(location);
        self
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = (
            self.status,
            [(header::CONTENT_TYPE, "application/json")],
            self.body,
        )
            .into_response();
        if let Some(location) = self.location {
            let location =
                HeaderValue::try_from(location).expect("a location is made of ids, which are visible ASCII");
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}

/// Does `work` once for all requests with this key. `scope` says who asks for what: method and path.
///
/// With a key, work that has begun goes on when its client goes away or its request takes too long: the client comes back with
/// the same key for the answer.
pub(crate) async fn once<W>(
    state: &AppState,
    scope: &str,
    key: Option<IdempotencyKey>,
    request: &impl Serialize,
    work: W,
) -> Result<Response, Problem>
where
    W: Future<Output = Result<Answer, Problem>> + Send + 'static,
{
    let Some(key) = key else {
        return work.await.map(IntoResponse::into_response);
    };
    match state
        .control()
        .begin_idempotent(scope, key.as_str(), &fingerprint(request))
        .await?
    {
        Idempotent::New(lease) => to_the_end(state, lease, work)
            .await
            .map(IntoResponse::into_response),
        Idempotent::Stored { status, body } => replay(status, &body),
        Idempotent::InProgress => {
            let detail = "the first request with this Idempotency-Key is still at work; send the same request again later";
            Err(Problem::new(ProblemKind::IdempotencyInProgress, detail))
        }
        Idempotent::OtherBody => {
            let detail = "this Idempotency-Key was used for a different request; use a new key";
            Err(Problem::new(ProblemKind::IdempotencyKeyReused, detail))
        }
    }
}

/// Does the work and keeps its answer, whether or not anybody still waits for it.
async fn to_the_end<W>(state: &AppState, lease: IdempotencyLease, work: W) -> Result<Answer, Problem>
where
    W: Future<Output = Result<Answer, Problem>> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    state.tasks().spawn("idempotent-request", async move {
        let outcome = work.await;
        settle(lease, outcome.as_ref().ok()).await;
        // Nobody waits any more: the answer has been kept for the next request.
        let _ = sender.send(outcome);
    });
    receiver.await.unwrap_or_else(|_| {
        Err(Problem::internal(
            "the task of an idempotent request ended without an answer",
        ))
    })
}

/// A request by what it means: how its JSON was written makes no difference.
fn fingerprint(request: &impl Serialize) -> [u8; 32] {
    let bytes = serde_json::to_vec(request).expect("a request was made from JSON");
    Sha256::digest(bytes).into()
}

/// Keeps the answer, or gives the key free. When that fails the work has been done all the same, and the caller is told so;
/// the key then stays claimed until its lease ends.
async fn settle(lease: IdempotencyLease, answer: Option<&Answer>) {
    let settled = match answer {
        Some(answer) => {
            let kept = serde_json::to_vec(answer).expect("an answer consists of text");
            lease.finish(answer.status.as_u16(), &kept).await
        }
        None => lease.abandon().await,
    };
    if let Err(error) = settled {
        tracing::warn!(%error, "The outcome of an idempotent request could not be kept.");
    }
}

fn replay(status: u16, kept: &[u8]) -> Result<Response, Problem> {
    let mut answer: Answer = serde_json::from_slice(kept).map_err(Problem::internal)?;
    answer.status = StatusCode::from_u16(status).map_err(Problem::internal)?;
    let mut response = answer.into_response();
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use http::Request;

    use super::*;

    async fn extracted(values: &[&str]) -> Result<Option<IdempotencyKey>, Problem> {
        let mut request = Request::builder();
        for value in values {
            request = request.header(HEADER, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        IdempotencyKey::from_request_parts(&mut request.body(()).unwrap().into_parts().0, &()).await
    }

    #[tokio::test]
    async fn a_key_is_sent_once_and_is_visible_ascii() {
        assert_eq!(extracted(&[]).await, Ok(None));
        assert_eq!(extracted(&["a-key"]).await, Ok(IdempotencyKey::parse("a-key")));
        for values in [&[""][..], &["a b"], &["ä"], &["a", "a"], &[&"x".repeat(256)]] {
            assert_eq!(
                extracted(values).await.unwrap_err().kind(),
                ProblemKind::InvalidIdempotencyKey,
                "{values:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_kept_answer_is_the_same_answer() {
        let answer =
            || Answer::new(StatusCode::CREATED, &serde_json::json!({"id": 1})).at("/things/1".to_owned());
        let kept = serde_json::to_vec(&answer()).unwrap();
        let (first, again) = (answer().into_response(), replay(201, &kept).unwrap());
        assert_eq!(first.status(), again.status());
        assert_eq!(first.headers()["location"], again.headers()["location"]);
        assert_eq!(again.headers()["idempotency-replayed"], "true");
        assert_eq!(
            to_bytes(first.into_body(), 100).await.unwrap(),
            to_bytes(again.into_body(), 100).await.unwrap()
        );
    }
}
