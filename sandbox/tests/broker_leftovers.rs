//! Nothing remains of a broker, however the process that owns it ends.
//!
//! Each test runs this program once more, as a process that holds a broker, and ends that process.

mod broker_support;
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use broker_support::family;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, User, geteuid};
use sandbox::{Broker, Cluster};
use support::{eventually, guardians, processes_with};

/// What the process that is ended does, by environment.
const ROLE: &str = "SANDBOX_TEST_ROLE";

/// Not a test: the process that is ended. Prints its folder when it is ready.
#[tokio::test]
#[ignore = "started by the tests below"]
async fn holder() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "cluster" {
        let cluster = Cluster::builder().start().await.unwrap();
        println!("\nfolder: {}", cluster.folder().display());
        return;
    }
    let broker = Broker::builder().start().await.unwrap();
    if role == "frozen" {
        broker.freeze().await.unwrap();
    }
    println!("\nfolder: {}", broker.folder().display());
    assert!(role != "panic", "as it was asked to");
    std::future::pending::<()>().await;
}

/// A process that holds a broker.
struct Holder {
    process: Child,
    folder: PathBuf,
}

impl Holder {
    fn command(role: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("a program knows itself"));
        command
            .args(["holder", "--exact", "--ignored", "--nocapture"])
            .env(ROLE, role);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
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
        let folder = folder.expect("the holder starts its broker");
        Self { process, folder }
    }

    fn signal(&mut self, signal: Signal) {
        kill(self.pid(), signal).expect("it is there");
        self.process.wait().expect("it is ours");
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id() as i32)
    }

    /// Erlang's virtual machine, and at least one helper.
    fn check_family(&self) -> Vec<i32> {
        let family = family(&self.folder);
        assert!(family.len() >= 2, "{family:?}");
        family
    }

    async fn leaves_nothing(&self) {
        leaves_nothing(&self.folder).await;
        eventually("the folder is gone", async || !self.folder.exists()).await;
    }
}

async fn leaves_nothing(folder: &Path) {
    eventually("the broker and its helpers are gone", async || {
        family(folder).is_empty()
    })
    .await;
    eventually("the guardian is gone", async || guardians(folder).is_empty()).await;
}

#[tokio::test]
async fn after_a_panic() {
    let mut holder = Holder::start(Holder::command("panic"));
    assert!(!holder.process.wait().unwrap().success());
    holder.leaves_nothing().await;
}

#[tokio::test]
async fn after_ctrl_c() {
    let mut holder = Holder::start(Holder::command("wait"));
    holder.check_family();
    killpg(holder.pid(), Signal::SIGINT).unwrap();
    holder.process.wait().unwrap();
    holder.leaves_nothing().await;
}

#[tokio::test]
async fn after_a_kill_even_of_a_frozen_broker() {
    for role in ["wait", "frozen"] {
        let mut holder = Holder::start(Holder::command(role));
        holder.check_family();
        holder.signal(Signal::SIGKILL);
        holder.leaves_nothing().await;
    }
}

#[tokio::test]
async fn what_the_guardian_could_not_clear_away_the_next_sandbox_does() {
    let temp = support::open_folder();
    let command = |role| {
        let mut command = Holder::command(role);
        command.env("SANDBOX_TMPDIR", temp.path());
        command
    };
    let mut holder = Holder::start(command("wait"));
    let [guardian] = guardians(&holder.folder)[..] else {
        panic!("one guardian")
    };
    kill(Pid::from_raw(guardian), Signal::SIGKILL).unwrap();
    holder.signal(Signal::SIGKILL);
    holder.check_family();

    let mut next = Holder::start(command("cluster"));
    next.process.wait().unwrap();
    holder.leaves_nothing().await;
}

#[tokio::test]
async fn killed_at_any_moment_of_the_start() {
    let temp = support::open_folder();
    let path = temp.path().display().to_string();
    for step in 0..6 {
        let mut command = Holder::command("wait");
        let mut process = command.env("SANDBOX_TMPDIR", temp.path()).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(step * 400)).await;
        process.kill().unwrap();
        process.wait().unwrap();
        for mark in ["SANDBOX_BROKER=", "SANDBOX_ROOT="] {
            let mark = format!("{mark}{path}");
            eventually("all processes are gone", async || {
                processes_with("environ", &mark).is_empty()
            })
            .await;
        }
        let bases = fs::read_dir(temp.path()).unwrap().flatten();
        let begun = bases.flat_map(|base| fs::read_dir(base.path()).unwrap().flatten());
        let begun: Vec<_> = begun
            .filter(|entry| entry.path().join("broker").exists())
            .collect();
        assert!(begun.is_empty(), "killed after {} ms: {begun:?}", step * 400);
    }
}

/// Root gives its brokers to another user; an ordinary user runs them as itself.
#[tokio::test]
async fn as_root_and_as_an_ordinary_user() {
    let owner = |pid: i32| fs::metadata(format!("/proc/{pid}")).map(|process| process.uid());
    let mut own = Holder::start(Holder::command("wait"));
    for pid in own.check_family() {
        let expected = geteuid().as_raw();
        assert_eq!(owner(pid).is_ok_and(|uid| uid == expected), expected != 0);
    }
    own.signal(Signal::SIGKILL);
    own.leaves_nothing().await;
    if !geteuid().is_root() {
        return;
    }

    let nobody = User::from_name("nobody").unwrap().expect("Linux has it");
    let temp = support::open_folder();
    chown(temp.path(), Some(nobody.uid.as_raw()), None).unwrap();
    let program = temp.path().join("holder");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(program);
    command
        .args(Holder::command("wait").get_args())
        .env(ROLE, "wait")
        .env("SANDBOX_TMPDIR", temp.path())
        .current_dir("/")
        .stdout(Stdio::piped())
        .uid(nobody.uid.as_raw())
        .gid(nobody.gid.as_raw());
    let mut ordinary = Holder::start(command);
    for pid in ordinary.check_family() {
        assert_eq!(owner(pid).unwrap(), nobody.uid.as_raw());
    }
    ordinary.signal(Signal::SIGKILL);
    ordinary.leaves_nothing().await;
}
