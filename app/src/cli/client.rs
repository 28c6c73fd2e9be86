//! The REST API from a terminal: requests with the operator's credentials, and problems told to a person.
//!
//! Refuses to know the operations; the commands name paths and bodies.

use std::time::Duration;

use clap::Args;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tenant_management::TenantId;
use url::Url;

use super::{
    failure::Failure,
    output::{Output, harmless},
};

/// How long an answer may take. Creating a tenant on the spot, without a spare database, takes seconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// How long it may take to reach the service.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Items that are asked for at once when a whole list is read.
const PAGE: &str = "200";

/// Where the service is, who asks, and how answers are printed.
#[derive(Clone, Debug, Args)]
pub(super) struct Connection {
    /// Where the service is
    #[arg(
        long,
        global = true,
        env = "TENANTRY_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:8080"
    )]
    url: Url,
    /// The operator's token; better in the environment, where other users of this machine do not see it
    #[arg(
        long,
        global = true,
        env = "TENANTRY_OPERATOR_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    operator_token: Option<SecretString>,
    /// How answers are printed
    #[arg(long, short, global = true, value_enum, default_value_t)]
    output: Output,
}

impl Connection {
    /// How answers are printed.
    pub(super) fn output(&self) -> Output {
        self.output
    }

    /// A client that asks as the operator.
    pub(super) fn client(self) -> Result<ApiClient, Failure> {
        let token = self.operator_token.filter(|token| !token.expose_secret().is_empty()).ok_or_else(|| {
            Failure::usage(
                "no operator token: set TENANTRY_OPERATOR_TOKEN (`tenantry dev` prints one and keeps it in its dev.json)",
            )
        })?;
        ApiClient::new(self.url, token)
    }
}

/// A client of one service, with one credential.
#[derive(Clone, Debug)]
pub struct ApiClient {
    http: reqwest::Client,
    base: Url,
    token: SecretString,
    tenant: Option<TenantId>,
}

impl ApiClient {
    /// A client of the service at `base`. `token` is an operator's token or a tenant's API key.
    pub fn new(base: Url, token: SecretString) -> Result<Self, Failure> {
        if !matches!(base.scheme(), "http" | "https") {
            return Err(Failure::usage(format_args!(
                "{base} is no address of a service: it begins with http:// or https://"
            )));
        }
        let http = reqwest::Client::builder()
            .user_agent(concat!("tenantry/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_LIMIT)
            .timeout(ANSWER_LIMIT)
            .build()
            .map_err(|error| {
                Failure::operation(format_args!("cannot make an HTTP client: {}", cause(&error)))
            })?;
        Ok(Self {
            http,
            base,
            token,
            tenant: None,
        })
    }

    /// The same client for requests in a tenant, which it names: an operator's token is good for any.
    #[must_use]
    pub fn in_tenant(self, tenant: TenantId) -> Self {
        Self {
            tenant: Some(tenant),
            ..self
        }
    }

    /// Reads one page of a list.
    pub async fn page(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value, Failure> {
        self.answer(self.request(Method::GET, path).query(query)).await
    }

    /// Reads one object.
    pub async fn get(&self, path: &[&str]) -> Result<Value, Failure> {
        self.answer(self.request(Method::GET, path)).await
    }

    /// Reads one object, if it is there.
    pub async fn find(&self, path: &[&str]) -> Result<Option<Value>, Failure> {
        let response = self.send(self.request(Method::GET, path)).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            _ => self.body(response).await.map(Some),
        }
    }

    /// Reads a whole list, page by page.
    pub async fn list(&self, path: &[&str], filters: &[(&str, String)]) -> Result<Value, Failure> {
        let mut items = Vec::new();
        let mut cursor = None;
        loop {
            let page = [("limit", PAGE.to_owned())]
                .into_iter()
                .chain(cursor.map(|cursor| ("cursor", cursor)));
            let request = self
                .request(Method::GET, path)
                .query(filters)
                .query(&page.collect::<Vec<_>>());
            let mut answer = self.answer(request).await?;
            items.extend(
                answer["items"]
                    .as_array_mut()
                    .map(std::mem::take)
                    .unwrap_or_default(),
            );
            match answer["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(json!({ "items": items, "next_cursor": null })),
            }
        }
    }

    /// Sends a command with a body.
    pub async fn post(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        self.answer(self.request(Method::POST, path).json(body)).await
    }

    /// Removes something.
    pub async fn delete(&self, path: &[&str]) -> Result<Value, Failure> {
        self.answer(self.request(Method::DELETE, path)).await
    }

    /// Whether the credential is good: `Ok(false)` when the service refuses it.
    pub async fn accepts_credential(&self, path: &[&str]) -> Result<bool, Failure> {
        let response = self.send(self.request(Method::GET, path)).await?;
        match response.status() {
            status if status.is_success() => Ok(true),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Ok(false),
            _ => Err(self.problem(response).await),
        }
    }

    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .expect("http and https addresses have a path")
            .pop_if_empty()
            .extend(path);
        let request = self
            .http
            .request(method, url)
            .bearer_auth(self.token.expose_secret());
        match &self.tenant {
            Some(tenant) => request.header(auth::TENANT_HEADER, tenant.as_str()),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        request.send().await.map_err(|error| {
            let hint = if error.is_timeout() && !error.is_connect() {
                "The service may still be at work; look again in a moment."
            } else {
                "Start one with `tenantry dev`, or set TENANTRY_URL to where the service is."
            };
            Failure::operation(format_args!(
                "no answer from {}: {}\n  {hint}",
                self.base,
                cause(&error)
            ))
        })
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Value, Failure> {
        self.body(self.send(request).await?).await
    }

    /// The body of a success.
    async fn body(&self, response: Response) -> Result<Value, Failure> {
        match response.status() {
            StatusCode::NO_CONTENT => Ok(Value::Null),
            status if status.is_success() => response.json().await.map_err(|error| {
                let (base, cause) = (&self.base, cause(&error));
                Failure::operation(format_args!("the answer of {base} is no JSON: {cause}"))
            }),
            _ => Err(self.problem(response).await),
        }
    }

    /// A refusal in words: what it is, why, and what to do.
    async fn problem(&self, response: Response) -> Failure {
        let status = response.status();
        let retry_after = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok().map(str::to_owned));
        let problem: Value = response.json().await.unwrap_or_default();
        let text = |field: &str| problem[field].as_str().map(harmless);
        let mut words = format!(
            "{} ({})",
            text("title").unwrap_or_else(|| "the service refused".to_owned()),
            status.as_u16()
        );
        let mut line = |text: &str| {
            words.push_str("\n  ");
            words.push_str(text);
        };
        if let Some(detail) = text("detail") {
            line(&detail);
        }
        for error in problem["errors"].as_array().into_iter().flatten() {
            line(&harmless(&error.to_string()));
        }
        if let Some(advice) = self.advice(problem["type"].as_str()).await {
            line(&advice);
        }
        if let Some(seconds) = retry_after {
            line(&format!("Try again in {} s.", harmless(&seconds)));
        }
        if let Some(operation) = text("operation") {
            line(&format!("See `tenantry operations show {operation}`."));
        }
        if let Some(request) = text("instance") {
            line(&format!("Request: {request}"));
        }
        Failure::Operation(words)
    }

    /// What the service's own documentation of the problem says to do.
    async fn advice(&self, slug: Option<&str>) -> Option<String> {
        let slug = slug?.strip_prefix("/problems/")?;
        let request = self
            .request(Method::GET, &["problems", slug])
            .header("accept", "application/json");
        let documentation: Value = request
            .send()
            .await
            .ok()?
            .error_for_status()
            .ok()?
            .json()
            .await
            .ok()?;
        documentation["explanation"].as_str().map(harmless)
    }
}

/// What is at the bottom of an error: the layers above it say that a request failed, which is known.
fn cause(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
