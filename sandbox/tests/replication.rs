//! Replicas: following, lagging, failing over.

mod support;

use std::time::Duration;

use sandbox::{Cluster, SandboxError};
use support::{ask, connect, count, eventually, execute};
use tokio::time::timeout;

async fn cluster(replicas: usize) -> Cluster {
    let cluster = Cluster::builder()
        .replicas(replicas)
        .start()
        .await
        .expect("a cluster starts");
    execute(cluster.primary(), "create table t (i int)").await;
    cluster
}

#[tokio::test]
async fn a_row_reaches_all_replicas() {
    let cluster = cluster(2).await;
    execute(cluster.primary(), "insert into t values (1)").await;
    cluster.wait_caught_up().await.unwrap();
    for (node, name) in cluster.replicas().iter().zip(["replica-1", "replica-2"]) {
        assert_eq!(node.name(), name);
        assert_eq!(ask(node, "show cluster_name").await, name);
        assert_eq!(ask(node, "select pg_is_in_recovery()::text").await, "true");
        assert_eq!(count(node).await, "1");
    }
    let slots =
        "select string_agg(slot_name || ':' || active, ' ' order by slot_name) from pg_replication_slots";
    assert_eq!(
        ask(cluster.primary(), slots).await,
        "replica_1:true replica_2:true"
    );
}

#[tokio::test]
async fn a_paused_replica_falls_behind_and_catches_up() {
    let cluster = cluster(2).await;
    cluster.wait_caught_up().await.unwrap();
    let [paused, other] = cluster.replicas() else {
        panic!("two replicas")
    };

    paused.pause_replay().await.unwrap();
    execute(cluster.primary(), "insert into t values (1)").await;
    let lsn = cluster.primary().current_lsn().await.unwrap();
    other.wait_for_replay(&lsn).await.unwrap();
    assert_eq!(count(other).await, "1");
    assert_eq!(count(paused).await, "0");
    assert!(
        timeout(Duration::from_millis(200), cluster.wait_caught_up())
            .await
            .is_err()
    );

    paused.resume_replay().await.unwrap();
    cluster.wait_caught_up().await.unwrap();
    assert_eq!(count(paused).await, "1");
}

#[tokio::test]
async fn replicas_come_back_after_they_and_their_primary_were_killed() {
    let cluster = cluster(1).await;
    for node in [cluster.replica(0), cluster.primary()] {
        node.kill().await.unwrap();
        node.start().await.unwrap();
        execute(cluster.primary(), "insert into t values (1)").await;
        cluster.wait_caught_up().await.unwrap();
    }
    assert_eq!(count(cluster.replica(0)).await, "2");
}

#[tokio::test]
async fn a_replica_that_is_added_has_everything() {
    let mut cluster = cluster(0).await;
    execute(cluster.primary(), "insert into t values (1)").await;
    assert_eq!(cluster.add_replica().await.unwrap().name(), "replica-1");
    assert_eq!(cluster.add_replica().await.unwrap().name(), "replica-2");
    cluster.wait_caught_up().await.unwrap();
    assert_eq!(count(cluster.replica(1)).await, "1");
    assert_eq!(cluster.nodes().len(), 3);
}

#[tokio::test]
async fn a_failover_from_a_running_primary() {
    let mut cluster = cluster(2).await;
    fail_over(&mut cluster).await;
    assert_eq!(cluster.add_replica().await.unwrap().name(), "replica-3");
}

#[tokio::test]
async fn a_failover_from_a_killed_primary() {
    let mut cluster = cluster(2).await;
    cluster.wait_caught_up().await.unwrap();
    cluster.primary().kill().await.unwrap();
    fail_over(&mut cluster).await;
}

#[tokio::test]
async fn a_failover_from_a_frozen_primary() {
    let mut cluster = cluster(2).await;
    cluster.wait_caught_up().await.unwrap();
    cluster.primary().freeze().await.unwrap();
    fail_over(&mut cluster).await;
}

async fn fail_over(cluster: &mut Cluster) {
    cluster.promote(1).await.expect("replica-2 takes over");
    assert_eq!(cluster.primary().name(), "replica-2");
    assert_eq!(cluster.replicas().len(), 1);
    assert_eq!(cluster.nodes()[2].name(), "primary");
    assert!(!cluster.nodes()[2].is_running(), "two primaries");

    execute(cluster.primary(), "insert into t values (1)").await;
    cluster.wait_caught_up().await.expect("replica-1 follows");
    assert_eq!(count(cluster.replica(0)).await, "1");
    let timeline = "select left(pg_walfile_name(pg_current_wal_lsn()), 8)";
    assert_eq!(ask(cluster.primary(), timeline).await, "00000002");
}

#[tokio::test]
async fn replicas_that_hang_or_pause_during_a_failover_follow_afterwards() {
    let mut cluster = cluster(3).await;
    cluster.wait_caught_up().await.unwrap();
    cluster.primary().kill().await.unwrap();
    cluster.replica(1).pause_replay().await.unwrap();
    cluster.replica(2).freeze().await.unwrap();
    cluster.promote(0).await.unwrap();
    execute(cluster.primary(), "insert into t values (1)").await;
    assert_eq!(count(cluster.replica(0)).await, "0");

    cluster.replica(0).resume_replay().await.unwrap();
    cluster.replica(1).thaw().await.unwrap();
    cluster.wait_caught_up().await.unwrap();
    assert_eq!(count(cluster.replica(0)).await, "1");
    assert_eq!(count(cluster.replica(1)).await, "1");
}

#[tokio::test]
async fn a_replica_that_is_ahead_of_the_new_primary_is_made_anew() {
    let mut cluster = cluster(2).await;
    cluster.wait_caught_up().await.unwrap();
    cluster.replica(0).kill().await.unwrap();
    execute(cluster.primary(), "insert into t values (1)").await;
    cluster.wait_caught_up().await.unwrap();
    cluster.primary().kill().await.unwrap();

    cluster.replica(0).start().await.unwrap();
    cluster.promote(0).await.unwrap();
    assert_eq!(
        count(cluster.primary()).await,
        "0",
        "the row went down with the primary"
    );
    execute(cluster.primary(), "insert into t values (2)").await;
    cluster.wait_caught_up().await.unwrap();
    assert_eq!(
        ask(cluster.replica(0), "select string_agg(i::text, ',') from t").await,
        "2"
    );
}

#[tokio::test]
async fn a_node_alone_can_be_promoted_too() {
    let cluster = cluster(1).await;
    cluster.wait_caught_up().await.unwrap();
    cluster.replica(0).promote().await.unwrap();
    execute(cluster.replica(0), "insert into t values (1)").await;
    execute(cluster.primary(), "insert into t values (1), (2)").await;
    cluster.replica(0).restart().await.unwrap();
    assert_eq!(count(cluster.replica(0)).await, "1");
}

#[tokio::test]
async fn a_replica_that_is_not_there_is_an_error() {
    let mut cluster = cluster(1).await;
    let error = cluster.promote(1).await.unwrap_err();
    assert!(
        matches!(error, SandboxError::NoSuchReplica { index: 1, count: 1 }),
        "{error}"
    );
    assert!(cluster.primary().is_running());
}

#[tokio::test]
async fn lag_is_visible_soon() {
    let cluster = cluster(1).await;
    cluster.replica(0).pause_replay().await.unwrap();
    execute(cluster.primary(), "insert into t values (1)").await;
    drop(connect(cluster.primary()).await);
    eventually("the primary sees the lag", async || {
        let lag = "select (pg_current_wal_lsn() > replay_lsn)::text from pg_stat_replication";
        ask(cluster.primary(), lag).await == "true"
    })
    .await;
}
