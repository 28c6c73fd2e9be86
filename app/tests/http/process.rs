//! The program itself: what it logs, and how it ends.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use reqwest::Method;
use serde_json::{Value, json};

use crate::common::{OPERATOR_TOKEN, Responses, TestApp, eventually};

/// A second instance of a [`TestApp`], as a process of its own.
struct Process {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Process {
    fn start(app: &TestApp) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tenantry"))
            .args(["serve", "--config"])
            .arg(app.config_file())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The next log line that has this field.
    fn line_with(&self, field: &str) -> Value {
        loop {
            let line = self
                .lines
                .recv_timeout(Duration::from_secs(30))
                .expect("the line is logged");
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}"));
            if !line[field].is_null() {
                return line;
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_logs_each_request_and_no_secret_and_ends_in_order() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let key = app.key("acme", "admin").await;
    let mut process = Process::start(&app);
    let address = process.line_with("http.address")["http.address"]
        .as_str()
        .unwrap()
        .to_owned();

    let url = |path: &str| format!("http://{address}{path}");
    let asked = app
        .client
        .get(url("/v1/whoami?token=hunter2"))
        .bearer_auth(&key)
        .header("x-request-id", "request-1");
    asked
        .header("x-tenant-id", "acme")
        .header("cookie", "session=hunter2")
        .answer()
        .await
        .expect(200);
    let line = process.line_with("http.route");
    assert_eq!(
        (&line["http.method"], &line["http.route"], &line["http.status"]),
        (&json!("GET"), &json!("/v1/whoami"), &json!(200))
    );
    assert_eq!(
        (&line["tenant.id"], &line["span"]["request.id"]),
        (&json!("acme"), &json!("request-1"))
    );
    assert_eq!(
        line["principal"],
        format!("api-key:{}", key.split('_').nth(1).unwrap())
    );
    assert!(
        line["http.duration_ms"]
            .as_f64()
            .is_some_and(|duration| duration > 0.0)
    );

    app.client
        .get(url("/v1/whoami"))
        .bearer_auth("hunter2")
        .answer()
        .await
        .problem(401, "unauthenticated");
    let line = process.line_with("http.route");
    assert_eq!(
        (&line["http.status"], &line["principal"]),
        (&json!(401), &Value::Null)
    );
    let body = json!({"name": "x", "role": "admin"});
    let made = app
        .client
        .request(Method::POST, url("/control/v1/tenants/acme/api-keys"))
        .bearer_auth(OPERATOR_TOKEN)
        .json(&body);
    let secret = made.answer().await.expect(201)["secret"]
        .as_str()
        .unwrap()
        .to_owned();

    let pid = nix::unistd::Pid::from_raw(process.child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    eventually("the process ends", || {
        std::future::ready(process.child.try_wait().unwrap().is_some())
    })
    .await;
    assert!(process.child.wait().unwrap().success());
    let rest: Vec<String> = process.lines.iter().collect();
    assert!(
        rest.iter()
            .any(|line| line.contains("The instance has shut down.")),
        "{rest:#?}"
    );
    let secrets = [OPERATOR_TOKEN, &key[21..], &secret[21..], "hunter2"];
    assert!(
        !rest
            .iter()
            .any(|line| secrets.iter().any(|secret| line.contains(secret))),
        "{rest:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_is_wrong_ends_it_with_2_and_a_reason() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        "[security]\noperator_token = \"hunter2\"\n[http]\nlistn = \"x\"\n",
    )
    .unwrap();
    for arguments in [["serve", "--config"].as_slice(), &["config", "check", "--config"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_tenantry"))
            .args(arguments)
            .arg(file.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8([output.stderr, output.stdout].concat()).unwrap();
        for part in [
            "http.listn: unknown key",
            "catalog.url: is required",
            "security.master_key: is required",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert!(!said.contains("hunter2"), "{said}");
    }
}
