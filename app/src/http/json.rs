//! JSON bodies: what a request may send, and what it is told when it sends something else.
//!
//! Put it last among a handler's arguments, after the extractor that authorises: then nobody's body is read before they may
//! send one. No database connection is held while a body arrives.

use std::time::Duration;

use auth::LimitSlot;
use axum::{
    body::{Body, to_bytes},
    extract::{FromRequest, Request},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header};
use http_body_util::LengthLimitError;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::error::Category;

use super::{
    AppState,
    problem::{FieldError, Problem, ProblemKind},
};

/// Largest body in bytes.
pub const MAX_BODY: usize = 1024 * 1024;

/// A JSON body. As an argument: at most [`MAX_BODY`], sent in time, with the right `Content-Type`, nested at most 127 deep
/// (the limit of `serde_json`), and of the type's shape. As an answer: the value as JSON.
///
/// Request types say `#[serde(deny_unknown_fields)]`, so that a misspelt field is an error and not ignored.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<AppState> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        if !says_json(request.headers()) {
            let detail = "the body must be JSON, sent with `Content-Type: application/json`";
            return Err(Problem::new(ProblemKind::UnsupportedMediaType, detail));
        }
        let slot = request.extensions().get::<LimitSlot>().cloned();
        let bytes = read(request.into_body(), state.limits().body_timeout).await?;
        if let Some(slot) = slot {
            slot.body_has_arrived()?;
        }
        parse(&bytes).map(Self)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

/// Whether the content type is `application/json` or another type in JSON (`application/*+json`), with any parameters.
fn says_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(http::HeaderValue::to_str) else {
        return false;
    };
    let essence = value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let Some(subtype) = essence.strip_prefix("application/") else {
        return false;
    };
    subtype == "json" || subtype.ends_with("+json")
}

async fn read(body: Body, limit: Duration) -> Result<axum::body::Bytes, Problem> {
    let read = tokio::time::timeout(limit, to_bytes(body, MAX_BODY))
        .await
        .map_err(|_| {
            Problem::new(
                ProblemKind::BodyTimeout,
                format!("the body did not arrive within {limit:?}"),
            )
        })?;
    read.map_err(|error| {
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            if error.is::<LengthLimitError>() {
                return Problem::new(
                    ProblemKind::BodyTooLarge,
                    format!("a body has at most {MAX_BODY} bytes"),
                );
            }
            cause = error.source();
        }
        Problem::new(
            ProblemKind::MalformedBody,
            "the body ended before it was complete",
        )
    })
}

/// Parses a body: what is no JSON is malformed, what is JSON of another shape is invalid, with the field that is wrong.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        refusal(error.inner(), &field, bytes)
    })?;
    json.end().map_err(|error| refusal(&error, ".", bytes))?;
    Ok(value)
}

fn refusal(error: &serde_json::Error, field: &str, bytes: &[u8]) -> Problem {
    match error.classify() {
        // A body that has the wrong shape early and a syntax error later is malformed all the same, and so is one that is
        // nested too deeply: only a type that is not skipped has the limit.
        Category::Data if serde_json::from_slice::<serde_json::Value>(bytes).is_ok() => {
            Problem::invalid_body(vec![FieldError {
                field: field.to_owned(),
                detail: without_place(error),
            }])
        }
        Category::Data | Category::Syntax | Category::Eof | Category::Io => {
            let detail = if bytes.is_empty() {
                "the body is empty; it must be JSON".to_owned()
            } else {
                syntax(error)
            };
            Problem::new(ProblemKind::MalformedBody, detail)
        }
    }
}

fn syntax(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => "the body is not JSON".to_owned(),
        _ => format!("the body is not JSON: {error}"),
    }
}

/// The message without the line and column, which say little about a body that is one line, and without the caller's own text
/// beyond what fits a line.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(message, _)| message);
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use http::HeaderValue;
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[expect(dead_code, reason = "only its shape matters")]
        name: String,
        #[serde(default)]
        #[expect(dead_code, reason = "only its shape matters")]
        labels: BTreeMap<String, String>,
    }

    fn refused(text: &str) -> (ProblemKind, String) {
        let problem = parse::<Sample>(text.as_bytes()).unwrap_err();
        (problem.kind(), problem.detail().to_owned())
    }

    #[test]
    fn what_is_no_json_is_malformed() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let deep_value = format!(r#"{{"name":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        for text in [
            "",
            "{",
            "name=x",
            r#"{"name":"x"} trailing"#,
            "{\"name\":\"\u{0}\"}",
            r#"{"name":1,"#,
            &deep,
            &deep_value,
        ] {
            assert_eq!(refused(text).0, ProblemKind::MalformedBody, "{text:.40}");
        }
        assert!(parse::<Sample>(b"{\"name\":\"\xff\"}").is_err());
    }

    #[test]
    fn json_of_another_shape_is_invalid_and_names_the_field() {
        for (text, field) in [
            (r#"{"name":1}"#, "name: "),
            (r#"{"name":"x","labels":{"a":["b"]}}"#, "labels.a: "),
            (r#"{"name":"x","nmae":"y"}"#, "nmae: unknown field"),
            (r#"{"name":"x","name":"y"}"#, "duplicate field"),
            ("{}", "missing field `name`"),
            ("[]", "invalid length 0"),
            ("null", "invalid type"),
        ] {
            let (kind, detail) = refused(text);
            assert_eq!(kind, ProblemKind::InvalidBody, "{text}");
            assert!(detail.contains(field), "{text}: {detail}");
        }
    }

    #[test]
    fn the_content_type_must_say_json() {
        let said = |value: &'static str| {
            says_json(&HeaderMap::from_iter([(
                header::CONTENT_TYPE,
                HeaderValue::from_static(value),
            )]))
        };
        assert!(
            said("application/json")
                && said("Application/JSON; charset=utf-8")
                && said("application/merge-patch+json")
        );
        assert!(
            !said("text/plain") && !said("application/x-www-form-urlencoded") && !said("json") && !said("")
        );
        assert!(!says_json(&HeaderMap::new()));
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(bytes: Vec<u8>) {
            let _ = parse::<Sample>(&bytes);
        }
    }
}
