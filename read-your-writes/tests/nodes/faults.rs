//! Nodes that fail leave the choice, and come back by themselves.

use std::time::{Duration, Instant};

use read_your_writes::{Ineligible, ReadSettings};

use crate::support::{ask, becomes, run, seen, servers, until, watch, watch_all, watch_all_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_replica_is_found_by_the_time_limit_and_has_to_prove_itself_again() {
    let servers = servers(2).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    becomes(&cluster, "replica-2", Ok(())).await;
    servers.replica(0).freeze().await.unwrap();
    becomes(&cluster, "replica-1", Err(Ineligible::Unreachable)).await;
    assert_eq!(seen(&cluster, "replica-2").eligible, Ok(()));
    servers.replica(0).thaw().await.unwrap();
    becomes(&cluster, "replica-1", Err(Ineligible::Recovering)).await;
    becomes(&cluster, "replica-1", Ok(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_replica_leaves_and_comes_back() {
    let servers = servers(1).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    servers.replica(0).kill().await.unwrap();
    becomes(&cluster, "replica-1", Err(Ineligible::Unreachable)).await;
    servers.replica(0).start().await.unwrap();
    becomes(&cluster, "replica-1", Ok(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_cut_off_leaves_and_comes_back() {
    let servers = servers(1).await;
    let proxy = servers.replica(0).proxy().await.unwrap();
    let nodes = [
        ("primary", servers.primary().connect_options("postgres")),
        ("replica-1", proxy.connect_options("postgres")),
    ];
    let cluster = watch(&nodes, ReadSettings::default());
    for hole in [false, true] {
        becomes(&cluster, "replica-1", Ok(())).await;
        if hole {
            proxy.black_hole().await;
        } else {
            proxy.cut().await;
        }
        becomes(&cluster, "replica-1", Err(Ineligible::Unreachable)).await;
        proxy.restore().await;
    }
    becomes(&cluster, "replica-1", Ok(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_receiver_has_stopped_is_stale_although_it_has_replayed_all_it_received() {
    let servers = servers(1).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    let replica = servers.replica(0);
    run(replica, "alter system set primary_conninfo = ''").await;
    run(replica, "select pg_reload_conf()").await;
    until("the receiver has stopped", async || {
        ask::<i64>(replica, "select count(*) from pg_stat_wal_receiver").await == 0
    })
    .await;
    run(servers.primary(), "create table written (n int)").await;
    becomes(&cluster, "replica-1", Err(Ineligible::Stale)).await;
    let caught_up = "select pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn()";
    assert!(
        ask::<bool>(replica, caught_up).await,
        "by this measure it would have no lag"
    );
    run(replica, "alter system reset primary_conninfo").await;
    run(replica, "select pg_reload_conf()").await;
    becomes(&cluster, "replica-1", Ok(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_that_is_paused_makes_a_replica_stale() {
    let servers = servers(2).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    servers.replica(0).pause_replay().await.unwrap();
    run(servers.primary(), "create table written (n int)").await;
    becomes(&cluster, "replica-1", Err(Ineligible::Stale)).await;
    assert!(seen(&cluster, "replica-1").lag_bytes.unwrap() > 0);
    assert_eq!(seen(&cluster, "replica-2").eligible, Ok(()));
    servers.replica(0).resume_replay().await.unwrap();
    becomes(&cluster, "replica-1", Ok(())).await;
}

/// `IDLE_SECONDS` says for how long (default 6).
#[tokio::test(flavor = "multi_thread")]
async fn while_nothing_is_written_replicas_stay_fresh() {
    let seconds = std::env::var("IDLE_SECONDS").map_or(6, |text| text.parse().unwrap());
    let servers = servers(2).await;
    let settings = ReadSettings {
        // A machine with a lot to do may take its time to answer.
        probe_timeout: Duration::from_secs(2),
        max_staleness: Duration::from_secs(4),
        ..ReadSettings::default()
    };
    let max_staleness = settings.max_staleness;
    let cluster = watch_all_with(&servers, settings);
    becomes(&cluster, "replica-1", Ok(())).await;
    becomes(&cluster, "replica-2", Ok(())).await;
    let begun = Instant::now();
    let mut oldest = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(seconds) {
        for name in ["replica-1", "replica-2"] {
            let node = seen(&cluster, name);
            assert_eq!(node.eligible, Ok(()), "{node:?}");
            oldest = oldest.max(node.staleness.unwrap());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("{oldest:?} at most");
    // It would be all the time since the last write, by the time of the last replayed transaction.
    assert!(oldest < max_staleness, "{oldest:?}");
    let by_the_last_transaction =
        "select extract(epoch from now() - pg_last_xact_replay_timestamp())::float8";
    let wrong: Option<f64> = ask(servers.replica(0), by_the_last_transaction).await;
    assert!(wrong.is_none_or(|seconds| seconds > oldest.as_secs_f64()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_is_found_out_when_the_primary_is_gone() {
    let mut servers = servers(2).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    let mut changes = cluster.primary_changes();
    servers.primary().kill().await.unwrap();
    servers.promote(0).await.unwrap();
    until("the promoted replica is the primary", async || {
        &**cluster.primary().name() == "replica-1"
    })
    .await;
    assert_eq!(*changes.borrow_and_update(), 1);
    becomes(&cluster, "replica-2", Ok(())).await;
    assert_eq!(seen(&cluster, "replica-1").timeline.unwrap().0, 2);
    becomes(&cluster, "primary", Err(Ineligible::Unreachable)).await;
}
