//! Answers, and what every one of them must be like.

use reqwest::{
    RequestBuilder, StatusCode,
    header::{HeaderMap, HeaderName},
};
use serde_json::Value;

/// An answer whose body has been read.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

/// Sends a request and reads its answer.
pub trait Responses {
    fn answer(self) -> impl Future<Output = Answer> + Send;
}

impl Responses for RequestBuilder {
    async fn answer(self) -> Answer {
        let response = self.send().await.expect("the service answers");
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.expect("the answer's body is complete");
        let answer = Answer {
            status,
            headers,
            text,
        };
        answer.is_like_every_answer();
        answer
    }
}

impl Answer {
    fn is_like_every_answer(&self) {
        assert!(
            self.headers.contains_key("x-request-id"),
            "every answer has a request id: {self:?}"
        );
        assert_eq!(self.header("x-content-type-options"), "nosniff");
        if matches!(self.status.as_u16(), 429 | 503) {
            let seconds: u64 = self.header("retry-after").parse().expect("whole seconds");
            assert!(seconds > 0);
        }
    }

    pub fn header(&self, name: impl TryInto<HeaderName>) -> &str {
        let Ok(name) = name.try_into() else {
            panic!("a header's name")
        };
        self.headers
            .get(&name)
            .map_or("", |value| value.to_str().expect("headers are text"))
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self.json()
    }

    /// The body of a problem of this type. Checks what holds for every problem.
    #[track_caller]
    pub fn problem(&self, status: u16, slug: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(self.header("content-type"), "application/problem+json", "{body}");
        assert_eq!(body["type"], format!("/problems/{slug}"), "{body}");
        assert_eq!(body["status"], status, "{body}");
        assert_eq!(body["instance"], self.header("x-request-id"), "{body}");
        for member in ["title", "detail"] {
            assert!(
                body[member].as_str().is_some_and(|text| !text.is_empty()),
                "{member} in {body}"
            );
        }
        body
    }
}
