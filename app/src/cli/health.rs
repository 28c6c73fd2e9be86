//! `tenantry health`: whether an instance should be sent requests, as an exit code.
//!
//! For health checks of containers, whose image has neither a shell nor `curl`. Needs no credentials.

use std::time::Duration;

use clap::Args;
use reqwest::StatusCode;
use serde_json::Value;
use url::Url;

use super::{
    failure::Failure,
    output::{harmless, print},
};

/// How long an instance may take to answer: it bounds the time that it asks its parts for to one second.
const LIMIT: Duration = Duration::from_secs(3);

/// Arguments of `tenantry health`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenantry health
  tenantry health --url http://10.0.0.7:8080

Exit codes: 0 the instance is ready, 1 it is not or does not answer, 2 wrong usage.")]
pub(super) struct HealthArguments {
    /// Where the instance is; TENANTRY_URL does not count, it may lead to a proxy in front of all instances
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: Url,
}

pub(super) async fn run(arguments: HealthArguments) -> Result<(), Failure> {
    let url = arguments.url;
    let ready = url
        .join("/readyz")
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| {
            Failure::usage(format_args!(
                "{url} is no address of an instance: it begins with http:// or https://"
            ))
        })?;
    // A proxy for the way out is no way to the instance that is meant.
    let client = reqwest::Client::builder().no_proxy().timeout(LIMIT).build();
    let asked = async { client?.get(ready).send().await };
    let response = asked.await.map_err(|error| {
        Failure::operation(format_args!(
            "no answer from {url}: {}\n  Start an instance with `tenantry serve`, or say with --url where it is.",
            anyhow::Error::from(error).root_cause()
        ))
    })?;
    let status = response.status();
    let answer: Value = response.json().await.unwrap_or_default();
    let unready = unready_parts(&answer);
    match (status, answer["ready"].as_bool()) {
        (StatusCode::OK, Some(true)) => print(&format!("ready{unready}")),
        (_, Some(false)) => Err(Failure::operation(format_args!("not ready{unready}"))),
        _ => Err(Failure::operation(format_args!(
            "{url} answered {status} and does not say whether it is ready; is it an instance of tenantry?"
        ))),
    }
}

/// A line for each part that is not ready.
fn unready_parts(answer: &Value) -> String {
    let parts = answer["parts"].as_array().into_iter().flatten();
    parts
        .filter(|part| part["ready"] != true)
        .map(|part| {
            let text = |field: &str| part[field].as_str().map_or_else(|| "?".to_owned(), harmless);
            let weight = if part["essential"] == true {
                ""
            } else {
                " (not essential)"
            };
            format!("\n  {}{weight}: {}", text("part"), text("problem"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use axum::{Json, Router, routing::get};
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    /// What `tenantry health` says to something that answers like this.
    async fn health_of(status: StatusCode, answer: Value) -> Result<(), Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answering = Router::new().route("/readyz", get(async move || (status, Json(answer))));
        let server = tokio::spawn(async { axum::serve(listener, answering).await });
        let result = run(HealthArguments {
            url: url.parse().unwrap(),
        });
        let result = result.await;
        server.abort();
        result
    }

    #[tokio::test]
    async fn only_an_instance_that_says_so_is_ready() {
        let part =
            json!({ "part": "listener", "ready": false, "essential": true, "problem": "shutting down" });
        let unready = json!({ "ready": false, "parts": [part] });

        assert!(
            health_of(StatusCode::OK, json!({ "ready": true, "parts": [] }))
                .await
                .is_ok()
        );
        let refusal = health_of(StatusCode::SERVICE_UNAVAILABLE, unready)
            .await
            .unwrap_err();
        assert_eq!(refusal.to_string(), "error: not ready\n  listener: shutting down");
        let other = health_of(StatusCode::OK, json!("welcome")).await.unwrap_err();
        assert!(matches!(other, Failure::Operation(_)), "{other}");
        assert!(
            other.to_string().contains("is it an instance of tenantry?"),
            "{other}"
        );
    }

    #[test]
    fn parts_that_are_not_ready_are_named_with_their_problem() {
        let answer = json!({ "ready": false, "parts": [
            { "part": "routing-table", "ready": true, "essential": true, "problem": null },
            { "part": "catalog", "ready": false, "essential": false, "problem": "no answer within 1s" },
            { "part": "listener", "ready": false, "essential": true, "problem": "the instance is shutting down" },
        ] });
        assert_eq!(
            unready_parts(&answer),
            "\n  catalog (not essential): no answer within 1s\n  listener: the instance is shutting down"
        );
    }

    #[test]
    fn an_answer_of_something_else_names_no_parts() {
        assert_eq!(unready_parts(&Value::Null), "");
    }
}
