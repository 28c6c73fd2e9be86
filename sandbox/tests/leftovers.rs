//! Nothing remains of a cluster, however the process that owns it ends.
//!
//! Each test runs this program once more, as a process that holds a cluster, and ends that process.

mod support;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sandbox::Cluster;
use support::{eventually, guardians, processes_with, servers, shared_memory};

/// What the process that is ended does, by environment.
const ROLE: &str = "SANDBOX_TEST_ROLE";

/// Not a test: the process that is ended. Prints its folder when it is ready.
#[tokio::test]
#[ignore = "started by the tests below"]
async fn holder() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let cluster = Cluster::builder().replicas(1).start().await.unwrap();
    match role.as_str() {
        "frozen" => {
            for node in cluster.nodes() {
                node.freeze().await.unwrap();
            }
        }
        "killed" => cluster.primary().kill().await.unwrap(),
        _ => {}
    }
    println!("\nfolder: {}", cluster.folder().display());
    assert!(role != "panic", "as it was asked to");
    std::future::pending::<()>().await;
}

/// A process that holds a cluster.
struct Holder {
    process: Child,
    folder: PathBuf,
    servers: Vec<i32>,
}

impl Holder {
    fn command(role: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("a program knows itself"));
        command
            .args(["holder", "--exact", "--ignored", "--nocapture"])
            .env(ROLE, role);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    fn start(mut command: Command) -> Self {
        let mut process = command.spawn().expect("a program can run itself");
        let lines = BufReader::new(process.stdout.take().expect("it is piped"))
            .lines()
            .map_while(Result::ok);
        let folder = lines
            .filter_map(|line| line.strip_prefix("folder: ").map(PathBuf::from))
            .next();
        let folder = folder.expect("the holder starts its cluster");
        let servers = servers(&folder);
        Self {
            process,
            folder,
            servers,
        }
    }

    fn signal(&mut self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).expect("it is there");
        self.process.wait().expect("it is ours");
    }

    async fn leaves_nothing(&self) {
        eventually("the folder is gone", async || !self.folder.exists()).await;
        eventually("the servers are gone", async || servers(&self.folder).is_empty()).await;
        eventually("the guardian is gone", async || {
            guardians(&self.folder).is_empty()
        })
        .await;
        assert!(shared_memory(&self.servers).is_empty());
    }
}

#[tokio::test]
async fn after_signals() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
        let mut holder = Holder::start(Holder::command("wait"));
        assert_eq!(holder.servers.len(), 2);
        holder.signal(signal);
        holder.leaves_nothing().await;
    }
}

#[tokio::test]
async fn after_a_panic() {
    let mut holder = Holder::start(Holder::command("panic"));
    assert!(!holder.process.wait().unwrap().success());
    holder.leaves_nothing().await;
}

#[tokio::test]
async fn after_a_kill_with_frozen_and_with_killed_servers() {
    for role in ["frozen", "killed"] {
        let mut holder = Holder::start(Holder::command(role));
        holder.signal(Signal::SIGKILL);
        holder.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_whole_process_group_that_is_ended_as_by_ctrl_c() {
    use std::os::unix::process::CommandExt;
    let mut command = Holder::command("wait");
    command.process_group(0);
    let mut holder = Holder::start(command);
    nix::sys::signal::killpg(Pid::from_raw(holder.process.id() as i32), Signal::SIGINT).unwrap();
    holder.process.wait().unwrap();
    holder.leaves_nothing().await;
}

#[tokio::test]
async fn a_killed_guardian_is_replaced_by_the_owner() {
    let cluster = Cluster::builder().start().await.unwrap();
    let folder = cluster.folder().to_owned();
    let [guardian] = guardians(&folder)[..] else {
        panic!("one guardian")
    };
    kill(Pid::from_raw(guardian), Signal::SIGKILL).unwrap();
    drop(cluster);
    assert!(!folder.exists());
    assert!(servers(&folder).is_empty());
}

/// The clusters' folders below a temporary folder.
fn cluster_folders(temp: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).expect("the folder is there").flatten();
    let inner = entries(temp).flat_map(|base| entries(&base.path()));
    let is_cluster = |name: OsString| {
        ["run-", "new-"]
            .iter()
            .any(|prefix| name.display().to_string().starts_with(prefix))
    };
    inner
        .filter(|entry| is_cluster(entry.file_name()))
        .map(|entry| entry.path())
        .collect()
}

#[tokio::test]
async fn what_the_guardian_could_not_clear_away_the_next_start_does() {
    let temp = support::open_folder();
    let mut command = Holder::command("wait");
    command.env("SANDBOX_TMPDIR", temp.path());
    let mut holder = Holder::start(command);
    let [guardian] = guardians(&holder.folder)[..] else {
        panic!("one guardian")
    };
    kill(Pid::from_raw(guardian), Signal::SIGKILL).unwrap();
    holder.signal(Signal::SIGKILL);
    assert_eq!(
        servers(&holder.folder).len(),
        2,
        "there is nobody who could have stopped them"
    );

    let mut command = Holder::command("wait");
    command.env("SANDBOX_TMPDIR", temp.path());
    let mut next = Holder::start(command);
    assert!(next.folder.exists());
    holder.leaves_nothing().await;
    next.signal(Signal::SIGKILL);
    next.leaves_nothing().await;
}

#[tokio::test]
async fn processes_that_are_the_first_at_the_same_time_do_not_disturb_each_other() {
    let temp = support::open_folder();
    let start = || {
        let mut command = Holder::command("wait");
        command.env("SANDBOX_TMPDIR", temp.path());
        std::thread::spawn(move || Holder::start(command))
    };
    let starting = [start(), start(), start()];
    for mut holder in starting.map(|thread| thread.join().unwrap()) {
        holder.signal(Signal::SIGKILL);
        holder.leaves_nothing().await;
    }
}

#[tokio::test]
async fn killed_at_any_moment_of_the_start() {
    let temp = support::open_folder();
    let path = temp.path().display().to_string();
    // The first of them are killed while the template is made, the later ones while a cluster is.
    for step in 0..9 {
        let mut command = Holder::command("wait");
        let mut process = command.env("SANDBOX_TMPDIR", temp.path()).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(step * 200)).await;
        process.kill().unwrap();
        process.wait().unwrap();
        // Servers and their tools name the folder by `-D`; a guardian does in its environment.
        eventually("all processes are gone", async || {
            processes_with("cmdline", &path).is_empty() && guardians_below(&path).is_empty()
        })
        .await;
        let left = cluster_folders(temp.path());
        assert!(left.iter().all(|folder| servers(folder).is_empty()));
        assert!(
            left.len() <= 1,
            "only a start that was killed before it had a guardian leaves an empty folder"
        );
        for folder in left {
            assert!(!folder.join("primary").exists(), "killed after {} ms", step * 200);
        }
    }
}

fn guardians_below(path: &str) -> Vec<i32> {
    processes_with("environ", &format!("SANDBOX_ROOT={path}"))
}
