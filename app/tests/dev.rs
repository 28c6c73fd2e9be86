//! `tenantry dev` as a person has it: the program, a folder, signals. And the command line against it.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// How long a start or a stop may take on a slow machine with a lot to do.
const LIMIT: Duration = Duration::from_secs(120);

/// A folder for `tenantry dev`, and the process that runs in it.
struct Dev {
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl Dev {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The servers' user has to get through.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        Self {
            folder,
            process: None,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn start(&mut self, arguments: &[&str]) {
        let log = fs::File::options()
            .append(true)
            .create(true)
            .open(self.folder.path().join("log"))
            .unwrap();
        let process = program()
            .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(self.data())
            .args(arguments)
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.process = Some(process.unwrap());
    }

    /// Waits until everything is ready and answers what `dev.json` says.
    async fn ready(&mut self) -> Value {
        let file = self.data().join("dev.json");
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Ok(text) = fs::read_to_string(&file) {
                return serde_json::from_str(&text).expect("the file is never there in part");
            }
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "not ready, {ended:?}:\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    async fn ended(&mut self) -> ExitStatus {
        let mut process = self.process.take().unwrap();
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = process.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "did not end:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until no process has anything to do with the folder.
    async fn nothing_left(&self) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = processes_that_mention(&self.data());
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "still there: {left:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().ok();
            process.wait().ok();
        }
        // The guardian has to be done before the folder goes.
        let deadline = Instant::now() + LIMIT;
        while !processes_that_mention(&self.data()).is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn processes_that_mention(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let commands = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    commands
        .map(|command| String::from_utf8_lossy(&command).replace('\0', " "))
        .filter(|command| command.contains(folder))
        .collect()
}

/// The program, without anything in the environment that would change what it does.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenantry"));
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"TENANTRY_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs the command line against a service.
fn tenantry(ready: &Value, arguments: &[&str]) -> Output {
    program()
        .args(arguments)
        .env("TENANTRY_URL", ready["api_url"].as_str().unwrap())
        .env(
            "TENANTRY_OPERATOR_TOKEN",
            ready["operator_token"].as_str().unwrap(),
        )
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

async fn get(ready: &Value, path: &str, token: &Value) -> (u16, Value) {
    let url = format!("{}{path}", ready["api_url"].as_str().unwrap());
    let answer = reqwest::Client::new()
        .get(url)
        .bearer_auth(token.as_str().unwrap())
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn create_invoice(ready: &Value, key: &Value) -> Value {
    let url = format!("{}/v1/invoices", ready["api_url"].as_str().unwrap());
    let invoice = json!({ "customer": "Initech", "amount_cents": 100, "currency": "EUR" });
    let request = reqwest::Client::new()
        .post(url)
        .bearer_auth(key.as_str().unwrap())
        .json(&invoice);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
    answer.json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_again_on_the_same_data_and_leaves_nothing_behind() {
    let mut dev = Dev::new();
    dev.start(&[]);
    let ready = dev.ready().await;

    // What is written is private, and works.
    for name in ["dev.json", "tenantry.toml", "memory.json"] {
        let mode = fs::metadata(dev.data().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(ready["replica_urls"].as_array().unwrap().len(), 1);
    assert_eq!(
        ready["config"],
        dev.data()
            .canonicalize()
            .unwrap()
            .join("tenantry.toml")
            .to_str()
            .unwrap()
    );
    for tenant in ["acme", "globex"] {
        let (status, who) = get(&ready, "/v1/whoami", &ready["tenants"][tenant]).await;
        assert_eq!(
            (status, &who["tenant"], &who["uuid"]),
            (200, &json!(tenant), &who["database_tenant"])
        );
    }
    assert!(
        dev.log().contains("/v1/whoami -H 'Authorization: Bearer tnt_"),
        "{}",
        dev.log()
    );
    let invoice = create_invoice(&ready, &ready["tenants"]["acme"]).await;

    // A second start in the same folder is refused in words, and the first goes on.
    let second = program()
        .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dev.data())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text(&second.stderr).contains("--data-dir"),
        "{}",
        text(&second.stderr)
    );

    dev.signal("KILL");
    dev.ended().await;
    fs::remove_file(dev.data().join("dev.json")).unwrap();
    dev.start(&[]);
    let again = dev.ready().await;
    for same in [
        "operator_token",
        "tenants",
        "primary_url",
        "catalog_url",
        "replica_urls",
    ] {
        assert_eq!(again[same], ready[same], "{same}");
    }
    let id = invoice["id"].as_str().unwrap();
    let (status, found) = get(&again, &format!("/v1/invoices/{id}"), &again["tenants"]["acme"]).await;
    assert_eq!((status, &found), (200, &invoice));
    let (status, _) = get(&again, &format!("/v1/invoices/{id}"), &again["tenants"]["globex"]).await;
    assert_eq!(status, 404);

    dev.signal("INT");
    assert!(dev.ended().await.success(), "{}", dev.log());
    assert!(
        !dev.data().join("dev.json").exists(),
        "what has stopped is not ready"
    );
    dev.nothing_left().await;

    // Forgetting is thorough.
    dev.start(&["--reset", "--replicas", "0", "--operator-token", "chosen-token"]);
    let fresh = dev.ready().await;
    assert_eq!(
        (&fresh["operator_token"], &fresh["replica_urls"]),
        (&json!("chosen-token"), &json!([]))
    );
    assert_ne!(fresh["tenants"], ready["tenants"]);
    let (status, invoices) = get(&fresh, "/v1/invoices", &fresh["tenants"]["acme"]).await;
    assert_eq!(
        (status, invoices),
        (200, json!({ "items": [], "next_cursor": null }))
    );
    dev.signal("TERM");
    assert!(dev.ended().await.success(), "{}", dev.log());
    dev.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_does_what_the_api_does() {
    let mut dev = Dev::new();
    dev.start(&["--replicas", "0"]);
    let ready = dev.ready().await;

    // Tenants.
    let create = [
        "tenants",
        "create",
        "initech",
        "--display-name",
        "Initech GmbH",
        "--region",
        "eu",
        "--label",
        "tier=gold",
    ];
    let created = tenantry(&ready, &[&create[..], &["--output", "json"]].concat());
    assert_eq!(created.status.code(), Some(0), "{}", text(&created.stderr));
    let tenant: Value = serde_json::from_slice(&created.stdout).unwrap();
    assert_eq!(
        (&tenant["state"], &tenant["labels"]),
        (&json!("CREATED"), &json!({ "tier": "gold" }))
    );
    assert_eq!(
        tenantry(&ready, &create).status.code(),
        Some(0),
        "the same again is no error"
    );

    let listed = tenantry(&ready, &["tenants", "list", "--label", "tier=gold", "-o", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["uuid"], tenant["uuid"]);
    let table = tenantry(&ready, &["tenants", "list"]);
    let table = text(&table.stdout);
    assert!(
        table.starts_with("ID ") && table.lines().count() == 4 && !table.contains(" \n"),
        "{table}"
    );
    let shown = tenantry(&ready, &["tenants", "show", "INITECH"]);
    assert!(
        text(&shown.stdout).contains("Initech GmbH"),
        "{}",
        text(&shown.stdout)
    );

    // Keys.
    let key = tenantry(
        &ready,
        &[
            "api-keys", "create", "initech", "--name", "ci", "--role", "viewer", "--output", "json",
        ],
    );
    let key: Value = serde_json::from_slice(&key.stdout).unwrap();
    assert_eq!(
        get(&ready, "/v1/whoami", &key["secret"]).await.1["role"],
        "viewer"
    );
    let keys = tenantry(&ready, &["api-keys", "list", "initech"]);
    let secret = key["secret"].as_str().unwrap();
    assert!(text(&keys.stdout).contains("viewer") && !text(&keys.stdout).contains(secret));
    let revoked = tenantry(
        &ready,
        &["api-keys", "revoke", "initech", key["id"].as_str().unwrap()],
    );
    assert_eq!(revoked.status.code(), Some(0), "{}", text(&revoked.stderr));
    assert_eq!(get(&ready, "/v1/whoami", &key["secret"]).await.0, 401);

    // The rest.
    let clusters = tenantry(&ready, &["clusters", "list"]);
    assert!(
        text(&clusters.stdout).contains("main"),
        "{}",
        text(&clusters.stdout)
    );
    let config = tenantry(
        &ready,
        &["config", "check", "--config", ready["config"].as_str().unwrap()],
    );
    assert_eq!(config.status.code(), Some(0));
    assert!(!text(&config.stdout).contains(ready["operator_token"].as_str().unwrap()));

    // Refusals.
    for (code, says, arguments) in [
        (1, "Unknown tenant (404)", &["tenants", "show", "nobody"][..]),
        (
            1,
            "Tenant exists (409)",
            &["tenants", "create", "initech", "--display-name", "Other"],
        ),
        (
            1,
            "No suitable cluster (409)",
            &["tenants", "create", "hooli", "--cluster", "nowhere"],
        ),
        (
            1,
            "Not found (404)",
            &["operations", "show", "00000000-0000-0000-0000-000000000000"],
        ),
        (
            1,
            "Start one with `tenantry dev`",
            &["tenants", "list", "--url", "http://127.0.0.1:1"],
        ),
        (
            1,
            "Credential required (401)",
            &["tenants", "list", "--operator-token", "wrong"],
        ),
        (2, "lower-case letters", &["tenants", "create", "Not_An_Id"]),
        (2, "KEY=VALUE", &["tenants", "create", "hooli", "--label", "tier"]),
        (
            2,
            "cannot be read",
            &["config", "check", "--config", "/nowhere.toml"],
        ),
        (2, "Usage:", &["tenants", "explode"]),
    ] {
        let refused = tenantry(&ready, arguments);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(
            told.contains(says) && refused.stdout.is_empty(),
            "{arguments:?}: {told}"
        );
    }

    // Another instance can be added with the file that this one runs with.
    let busy = ready["api_url"]
        .as_str()
        .unwrap()
        .strip_prefix("http://")
        .unwrap();
    let serve = ["serve", "--config", ready["config"].as_str().unwrap()];
    let taken = program()
        .args(serve)
        .env("TENANTRY__HTTP__LISTEN", busy)
        .output()
        .unwrap();
    assert_eq!(taken.status.code(), Some(1));
    assert!(
        text(&taken.stderr).contains("cannot listen"),
        "{}",
        text(&taken.stderr)
    );
    let mut second = program()
        .args(serve)
        .env("TENANTRY__HTTP__LISTEN", "127.0.0.1:0")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + LIMIT;
    let mut tenant = 0;
    loop {
        // Each creation waits for the instances that are there, so sooner or later it has waited for the second one.
        let created = tenantry(
            &ready,
            &["tenants", "create", &format!("next{tenant}"), "--output", "json"],
        );
        let created: Value = serde_json::from_slice(&created.stdout).unwrap();
        if created["propagation"]["live_instances"] == 2 {
            assert_eq!(created["propagation"]["pending"], json!([]));
            break;
        }
        assert!(Instant::now() < deadline, "{created}");
        tenant += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(
        Command::new("kill")
            .arg(second.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    assert!(second.wait().unwrap().success());

    dev.signal("TERM");
    assert!(dev.ended().await.success(), "{}", dev.log());
    dev.nothing_left().await;
}

#[tokio::test]
async fn without_postgresql_it_says_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let refused = program()
        .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .env("PG_BIN", folder.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("PG_BIN") || text(&refused.stderr).contains("apt-get"),
        "{}",
        text(&refused.stderr)
    );
}
