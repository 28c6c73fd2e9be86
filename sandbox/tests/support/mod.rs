//! What the tests share: SQL in one line, and waiting with a limit.

#![allow(dead_code, reason = "each test program uses a part of this")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sandbox::Node;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

/// Long enough for a busy machine; nothing here takes nearly as long.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

pub(crate) async fn connect(node: &Node) -> PgConnection {
    connect_with(&node.connect_options("postgres")).await
}

pub(crate) async fn connect_with(options: &PgConnectOptions) -> PgConnection {
    PgConnection::connect_with(options)
        .await
        .expect("the node accepts connections")
}

pub(crate) async fn execute(node: &Node, sql: &'static str) {
    sqlx::raw_sql(sql)
        .execute(&mut connect(node).await)
        .await
        .expect(sql);
}

/// The answer to a question, as text.
pub(crate) async fn ask(node: &Node, sql: &'static str) -> String {
    let mut connection = connect(node).await;
    let answer: Option<String> = sqlx::query_scalar(sql)
        .fetch_one(&mut connection)
        .await
        .expect(sql);
    answer.unwrap_or_default()
}

pub(crate) async fn count(node: &Node) -> String {
    ask(node, "select count(*)::text from t").await
}

/// Looks again and again until it is so.
pub(crate) async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !look().await {
        assert!(began.elapsed() < LIMIT, "this never came to pass: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A temporary folder that the servers' user can pass through.
pub(crate) fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).expect("it is ours");
    folder
}

/// The processes whose command line or environment contains this text.
pub(crate) fn processes_with(file: &str, text: &str) -> Vec<i32> {
    let found = fs::read_dir("/proc")
        .expect("Linux has /proc")
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let content = fs::read(entry.path().join(file)).ok()?;
            String::from_utf8_lossy(&content).contains(text).then_some(pid)
        });
    found.filter(|&pid| pid != std::process::id() as i32).collect()
}

/// The postmasters of a folder.
pub(crate) fn servers(root: &Path) -> Vec<i32> {
    processes_with("cmdline", &format!("-D{}/", root.display()))
}

/// The guardian of a folder.
pub(crate) fn guardians(root: &Path) -> Vec<i32> {
    processes_with("environ", &format!("SANDBOX_ROOT={}\0", root.display()))
}

/// The shared memory segments that one of these processes made.
pub(crate) fn shared_memory(creators: &[i32]) -> Vec<String> {
    let list = fs::read_to_string("/proc/sysvipc/shm").expect("Linux has it");
    let made_by = |line: &str| line.split_whitespace().nth(4).and_then(|pid| pid.parse().ok());
    list.lines()
        .filter(|line| made_by(line).is_some_and(|pid| creators.contains(&pid)))
        .map(Into::into)
        .collect()
}
