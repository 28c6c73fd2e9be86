//! A folder for `tenantry dev`, the process in it, and the command line.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

/// How long a start or a stop may take on a slow machine with a lot to do.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// A folder for `tenantry dev`, and the process that runs in it.
pub(crate) struct Dev {
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl Dev {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The servers' user has to get through.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        Self {
            folder,
            process: None,
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn start(&mut self, arguments: &[&str]) {
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
    pub(crate) async fn ready(&mut self) -> Value {
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

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
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
    pub(crate) async fn nothing_left(&self) {
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

    pub(crate) fn log(&self) -> String {
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
pub(crate) fn program() -> Command {
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
pub(crate) fn tenantry(ready: &Value, arguments: &[&str]) -> Output {
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

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

pub(crate) async fn get(ready: &Value, path: &str, token: &Value) -> (u16, Value) {
    let url = format!("{}{path}", ready["api_url"].as_str().unwrap());
    let answer = reqwest::Client::new()
        .get(url)
        .bearer_auth(token.as_str().unwrap())
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}
