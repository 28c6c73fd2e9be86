//! A folder that is kept, and what becomes of it.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sandbox::{Cluster, ClusterBuilder, Node, SandboxError};
use support::{ask, count, eventually, execute, guardians, servers};
use tempfile::TempDir;

/// A place for data folders that the servers' user can reach.
fn place() -> (TempDir, PathBuf) {
    let place = support::open_folder();
    let data = place.path().join("data");
    (place, data)
}

fn builder(data: &Path) -> ClusterBuilder {
    Cluster::builder().data_dir(data).replicas(1)
}

#[tokio::test]
async fn data_ports_and_passwords_are_kept() {
    let (_place, data) = place();
    let cluster = builder(&data).start().await.unwrap();
    execute(
        cluster.primary(),
        "create table t (i int); insert into t values (1)",
    )
    .await;
    let urls: Vec<_> = cluster.nodes().iter().map(|node| node.url("postgres")).collect();
    cluster.stop().await.unwrap();
    assert!(servers(&data).is_empty());

    let cluster = builder(&data).start().await.unwrap();
    assert_eq!(
        cluster
            .nodes()
            .iter()
            .map(|node| node.url("postgres"))
            .collect::<Vec<_>>(),
        urls
    );
    execute(cluster.primary(), "insert into t values (2)").await;
    cluster.wait_caught_up().await.unwrap();
    assert_eq!(count(cluster.replica(0)).await, "2");
    assert!(
        !cluster.primary().log_tail(100).contains("automatic recovery"),
        "it was stopped in an orderly way"
    );
    drop(cluster);
    assert!(servers(&data).is_empty());

    let cluster = builder(&data).start().await.unwrap();
    assert_eq!(count(cluster.primary()).await, "2");
    cluster.delete().await.unwrap();
    assert!(!data.exists());
}

/// Not a test: the process that is killed.
#[tokio::test]
#[ignore = "started by the test below"]
async fn holder() {
    let Some(data) = std::env::var_os("SANDBOX_TEST_DATA") else {
        return;
    };
    let cluster = builder(data.as_ref()).start().await.unwrap();
    execute(
        cluster.primary(),
        "create table if not exists t (i int); insert into t values (1)",
    )
    .await;
    println!("\nready");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_folder_starts_again_after_everything_was_killed() {
    let (_place, data) = place();
    // What is killed with the owner: nothing; its guardian; its guardian and all servers.
    for also in ["nothing", "guardian", "guardian and servers"] {
        let mut owner = Command::new(std::env::current_exe().unwrap())
            .args(["holder", "--exact", "--ignored", "--nocapture"])
            .env("SANDBOX_TEST_DATA", &data)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(owner.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        assert!(lines.any(|line| line == "ready"));

        let mut victims = vec![owner.id() as i32];
        let servers = servers(&data);
        assert_eq!(servers.len(), 2);
        if also != "nothing" {
            victims.splice(0..0, guardians(&data));
        }
        if also == "guardian and servers" {
            victims.extend(servers);
        }
        for victim in victims {
            kill(Pid::from_raw(victim), Signal::SIGKILL).unwrap();
        }
        owner.wait().unwrap();

        let cluster = builder(&data).start().await.unwrap();
        execute(cluster.primary(), "insert into t values (2)").await;
        cluster.wait_caught_up().await.unwrap();
        assert_eq!(ask(cluster.replica(0), "select max(i)::text from t").await, "2");
        cluster.stop().await.unwrap();
    }
    let cluster = builder(&data).start().await.unwrap();
    assert_eq!(count(cluster.primary()).await, "6");
}

#[tokio::test]
async fn a_failover_is_remembered() {
    let (_place, data) = place();
    let mut cluster = builder(&data).replicas(2).start().await.unwrap();
    execute(cluster.primary(), "create table t (i int)").await;
    cluster.wait_caught_up().await.unwrap();
    cluster.promote(0).await.unwrap();
    execute(cluster.primary(), "insert into t values (1)").await;
    cluster.stop().await.unwrap();

    let cluster = builder(&data).start().await.unwrap();
    let names: Vec<_> = cluster.nodes().iter().map(Node::name).collect();
    assert_eq!(names, ["replica-1", "replica-2", "primary"]);
    assert!(!cluster.nodes()[2].is_running());
    cluster.wait_caught_up().await.unwrap();
    assert_eq!(count(cluster.replica(0)).await, "1");
}

#[tokio::test]
async fn the_number_of_replicas_follows_the_wish() {
    let (_place, data) = place();
    for wanted in [2, 0, 1] {
        let cluster = builder(&data).replicas(wanted).start().await.unwrap();
        assert_eq!(cluster.replicas().len(), wanted);
        let slots = ask(
            cluster.primary(),
            "select count(*)::text from pg_replication_slots",
        )
        .await;
        assert_eq!(slots, wanted.to_string());
        cluster.wait_caught_up().await.unwrap();
        cluster.stop().await.unwrap();
    }
}

#[tokio::test]
async fn what_an_interrupted_start_left_undone_is_done() {
    let (_place, data) = place();
    let cluster = builder(&data).replicas(2).start().await.unwrap();
    execute(
        cluster.primary(),
        "create table t (i int); insert into t values (1)",
    )
    .await;
    cluster.stop().await.unwrap();
    // As if one replica had been lost while it was made anew, and a third one had been begun.
    fs::remove_dir_all(data.join("replica-1")).unwrap();
    fs::create_dir(data.join("replica-3.partial")).unwrap();

    let cluster = builder(&data).replicas(2).start().await.unwrap();
    cluster.wait_caught_up().await.unwrap();
    assert_eq!(count(cluster.replica(0)).await, "1");
    assert!(!data.join("replica-3.partial").exists());
}

#[tokio::test]
async fn a_port_that_was_taken_meanwhile_is_replaced() {
    let (_place, data) = place();
    let cluster = builder(&data).start().await.unwrap();
    let port = cluster.primary().port();
    cluster.stop().await.unwrap();

    let _thief = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let cluster = builder(&data).start().await.unwrap();
    assert_ne!(cluster.primary().port(), port);
    execute(cluster.primary(), "create table t (i int)").await;
    cluster.wait_caught_up().await.unwrap();
}

#[tokio::test]
async fn a_folder_has_one_owner_at_a_time() {
    let (_place, data) = place();
    let cluster = builder(&data).start().await.unwrap();
    let error = builder(&data).start().await.unwrap_err();
    assert!(matches!(error, SandboxError::FolderBusy { .. }), "{error}");
    assert!(cluster.primary().is_running());
    ask(cluster.primary(), "select 'untouched'").await;
}

#[tokio::test]
async fn what_others_made_is_left_alone() {
    let (_place, data) = place();
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(data.join("thesis.txt"), "years of work").unwrap();
    let error = builder(&data).start().await.unwrap_err();
    assert!(matches!(error, SandboxError::NotASandbox { .. }), "{error}");
    assert_eq!(fs::read_dir(&data).unwrap().count(), 1);

    fs::remove_file(data.join("thesis.txt")).unwrap();
    let cluster = builder(&data).start().await.unwrap();
    let error = cluster.delete().await.unwrap_err();
    assert!(matches!(error, SandboxError::NotCreatedHere { .. }), "{error}");
    assert!(data.join("primary").exists());
    eventually("the servers are stopped", async || servers(&data).is_empty()).await;
}

#[tokio::test]
async fn data_of_another_version_is_refused() {
    let (_place, data) = place();
    builder(&data).start().await.unwrap().stop().await.unwrap();
    fs::write(data.join("primary/PG_VERSION"), "9.6\n").unwrap();
    let error = builder(&data).start().await.unwrap_err();
    assert!(
        matches!(&error, SandboxError::WrongVersion { found, .. } if found == "9.6"),
        "{error}"
    );
}

#[tokio::test]
async fn a_folder_that_servers_cannot_reach_is_an_error_that_says_so() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let (place, data) = place();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let error = builder(&data).start().await.unwrap_err();
    assert!(matches!(error, SandboxError::Unreachable { .. }), "{error}");
}
