//! What can be done to a node.

mod support;

use std::time::Duration;

use sandbox::Cluster;
use sqlx::{Connection, PgConnection};
use support::{ask, connect, count, eventually, execute, servers};
use tokio::time::timeout;

#[tokio::test]
async fn a_frozen_server_is_silent_until_it_is_thawed() {
    let cluster = Cluster::builder().start().await.unwrap();
    let node = cluster.primary();
    let mut open = connect(node).await;

    node.freeze().await.unwrap();
    assert!(node.is_running() && node.is_frozen());
    {
        let mut question = std::pin::pin!(sqlx::query_scalar::<_, i32>("select 1").fetch_one(&mut open));
        assert!(
            timeout(Duration::from_millis(300), &mut question).await.is_err(),
            "a frozen backend answers"
        );
        let options = node.connect_options("postgres");
        let fresh = timeout(Duration::from_millis(300), PgConnection::connect_with(&options)).await;
        assert!(fresh.is_err(), "a frozen server lets somebody in");

        node.thaw().await.unwrap();
        assert_eq!(question.await.unwrap(), 1);
    }
    assert!(!node.is_frozen());
    connect(node).await;
}

#[tokio::test]
async fn a_killed_server_starts_again_with_what_it_had_confirmed() {
    let cluster = Cluster::builder().start().await.unwrap();
    let node = cluster.primary();
    execute(
        node,
        "create table t (i int); insert into t select generate_series(1, 1000)",
    )
    .await;
    let mut open = connect(node).await;
    let port = node.port();

    for frozen in [false, true] {
        if frozen {
            node.freeze().await.unwrap();
        }
        node.kill().await.unwrap();
        assert!(!node.is_running());
        assert!(servers(cluster.folder()).is_empty());
        assert!(open.ping().await.is_err());
        node.start().await.unwrap();
        assert_eq!(count(node).await, "1000");
        assert_eq!(node.port(), port);
        open = connect(node).await;
    }
    assert!(node.log_tail(200).contains("automatic recovery"));
}

#[tokio::test]
async fn stop_start_and_restart_can_be_repeated() {
    let cluster = Cluster::builder().start().await.unwrap();
    let node = cluster.primary();
    node.start().await.unwrap();
    node.restart().await.unwrap();
    for _ in 0..2 {
        node.stop().await.unwrap();
        node.kill().await.unwrap();
        node.freeze().await.unwrap();
        node.thaw().await.unwrap();
        assert!(!node.is_running());
    }
    assert!(
        PgConnection::connect_with(&node.connect_options("postgres"))
            .await
            .is_err()
    );
    node.start().await.unwrap();
    assert_eq!(ask(node, "select 'here'").await, "here");
    // A crash would have been recovered from.
    assert!(!node.log_tail(200).contains("automatic recovery"));
}

#[tokio::test]
async fn a_frozen_server_can_be_stopped() {
    let cluster = Cluster::builder().start().await.unwrap();
    cluster.primary().freeze().await.unwrap();
    cluster.primary().stop().await.unwrap();
    assert!(!cluster.primary().is_running());
}

#[tokio::test]
async fn a_server_that_ended_by_itself_is_noticed() {
    let cluster = Cluster::builder().start().await.unwrap();
    let node = cluster.primary();
    let [pid] = servers(cluster.folder())[..] else {
        panic!("one server")
    };
    std::process::Command::new("kill")
        .args(["-QUIT", &pid.to_string()])
        .status()
        .unwrap();
    eventually("the end is noticed", async || !node.is_running()).await;
    node.start().await.unwrap();
    assert!(node.is_running());
}
