//! One instance: a process of `tenantry serve`, and requests to it.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::world::{LIMIT, eventually};

pub(crate) const OPERATOR_TOKEN: &str = "operator-token-of-the-tests";

/// An answer, as far as these tests look at it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// A process of the service.
pub(crate) struct Instance {
    url: String,
    log: PathBuf,
    process: Child,
    client: reqwest::Client,
}

impl Instance {
    /// Starts one without waiting for it.
    pub(crate) fn start(config: &Path, log: PathBuf, environment: &[(&str, &str)]) -> Self {
        let output = File::create(&log).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_tenantry"))
            .args(["serve", "--config"])
            .arg(config)
            .env_remove("RUST_LOG")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(90))
            .build()
            .unwrap();
        Self {
            url: String::new(),
            log,
            process,
            client,
        }
    }

    /// Waits until it answers. It takes a free port by itself, so that no two can meet at one, and says in its log which.
    pub(crate) async fn answers(&mut self) {
        let deadline = Instant::now() + LIMIT;
        let address = loop {
            if let Some((_, address)) = self.log().rsplit_once("\"http.address\":\"") {
                break address.split('"').next().unwrap_or_default().to_owned();
            }
            let ended = self.process.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "not ready, {ended:?}\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        self.url = format!("http://{address}");
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Log lines that contain a text.
    pub(crate) fn lines_with(&self, text: &str) -> usize {
        self.log().lines().filter(|line| line.contains(text)).count()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "did not end\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn control(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = self
            .request(method, &format!("/control/v1{path}"))
            .bearer_auth(OPERATOR_TOKEN);
        answer(request.json(body)).await.expect("the instance answers")
    }

    pub(crate) async fn create(&self, tenant: &str) -> Answer {
        self.control(Method::POST, "/tenants", &json!({ "id": tenant }))
            .await
    }

    /// The secret of a new API key.
    pub(crate) async fn key(&self, tenant: &str) -> String {
        let path = format!("/tenants/{tenant}/api-keys");
        let key = self
            .control(Method::POST, &path, &json!({"name": "test", "role": "member"}))
            .await;
        assert_eq!(key.status, 201, "{key:?}");
        key.body["secret"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn whoami(&self, key: &str) -> Answer {
        let request = self.request(Method::GET, "/v1/whoami").bearer_auth(key);
        answer(request).await.expect("the instance answers")
    }

    /// A part of `/readyz`.
    pub(crate) async fn part(&self, part: &str) -> Value {
        let answer = answer(self.request(Method::GET, "/readyz")).await.unwrap();
        let parts = answer.body["parts"].as_array().unwrap().clone();
        parts
            .into_iter()
            .find(|one| one["part"] == part)
            .unwrap_or_default()
    }

    /// Waits until word of changes comes in and goes out.
    pub(crate) async fn hears(&self) {
        eventually("word travels", async || {
            self.part("events").await["ready"] == true
        })
        .await;
    }

    /// What a counter or gauge without labels has come to.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self
            .request(Method::GET, "/metrics")
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Sends a request that may come to nothing.
pub(crate) async fn answer(request: RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let body = response.bytes().await?;
    Ok(Answer {
        status,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}
