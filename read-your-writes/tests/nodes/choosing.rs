//! Which node serves a read, and what finding out costs.

use std::{collections::BTreeMap, time::Duration};

use read_your_writes::{Chosen, Cluster, Consistency, Position, ReadSettings, Reason, Session, Timeline};
use sandbox::Node;

use crate::support::{ask, becomes, run, seen, servers, until, watch_all, watch_all_with};

/// The position of a commit that has returned just now.
async fn position(primary: &Node) -> Position {
    let lsn: String = ask(primary, "select pg_current_wal_insert_lsn()::text").await;
    Position::now(Timeline(1), lsn.parse().unwrap())
}

async fn serves(cluster: &Cluster<()>, level: Consistency, session: &Session) -> (String, Reason) {
    let chosen = cluster.choose(level.into(), session).await.unwrap();
    (chosen.name().to_string(), chosen.reason())
}

fn having_written(position: Position) -> Session {
    let session = Session::default();
    session.wrote(&"main".into(), position);
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_behind_a_page_header_is_reached_on_an_idle_cluster() {
    let servers = servers(1).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    run(servers.primary(), "select pg_switch_wal()").await;
    let written = position(servers.primary()).await;
    // Without rounding, a standby would have to report what it never does while nothing is written.
    println!("{}", written.lsn);
    until("the replica serves and the position is dropped", async || {
        let session = having_written(written);
        let (by, _) = serves(&cluster, Consistency::Recent, &session).await;
        by == "replica-1" && session.position("main").is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_reads_are_the_primarys_and_others_are_spread() {
    let servers = servers(2).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    becomes(&cluster, "replica-2", Ok(())).await;
    let session = Session::default();
    let strict = serves(&cluster, Consistency::Strict, &session).await;
    assert_eq!(strict, ("primary".to_owned(), Reason::Strict));
    let mut counts = BTreeMap::new();
    let mut held = Vec::new();
    for _ in 0..200 {
        let chosen = cluster
            .choose(Consistency::Recent.into(), &session)
            .await
            .unwrap();
        *counts.entry(chosen.name().to_string()).or_insert(0) += 1;
        held.push(chosen);
    }
    // Of two the one with less to do: they never drift far apart.
    assert_eq!(counts.len(), 2, "{counts:?}");
    assert!(
        counts.values().all(|count| (95..=105).contains(count)),
        "{counts:?}"
    );
    assert_eq!(
        seen(&cluster, "replica-1").in_flight + seen(&cluster, "replica-2").in_flight,
        200
    );
    drop(held);
    assert_eq!(seen(&cluster, "replica-1").in_flight, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_just_after_its_write_waits_a_moment_for_the_replica() {
    let servers = servers(1).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    let mut waited_for = 0;
    for _ in 0..50 {
        run(
            servers.primary(),
            "create table if not exists written (n int); insert into written values (1)",
        )
        .await;
        let session = having_written(position(servers.primary()).await);
        let (by, reason) = serves(&cluster, Consistency::Recent, &session).await;
        if reason == Reason::WaitedFor {
            assert_eq!(by, "replica-1");
            waited_for += 1;
        }
    }
    assert!(
        waited_for > 0,
        "no read found that the replica had caught up since its last probe"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_wait_for_the_same_replica_share_its_probes() {
    let servers = servers(1).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    servers.replica(0).pause_replay().await.unwrap();
    run(servers.primary(), "create table written (n int)").await;
    let written = position(servers.primary()).await;
    let replica = servers.replica(0);
    let transactions = "select xact_commit from pg_stat_database where datname = 'postgres'";
    let before: i64 = ask(replica, transactions).await;
    let callers = (0..500).map(|_| {
        let cluster = cluster.clone();
        tokio::spawn(async move {
            let session = having_written(written);
            let chosen = cluster.choose(Consistency::Recent.into(), &session).await;
            chosen.map(|chosen| (chosen.is_primary(), chosen.reason()))
        })
    });
    for caller in futures::future::join_all(callers).await {
        // Some find the budget of the primary used up, which is another matter.
        if let Ok(chosen) = caller.unwrap() {
            assert_eq!(chosen, (true, Reason::NotCaughtUp));
        }
    }
    // Statistics are written when a session has been idle for a while.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let probes = ask::<i64>(replica, transactions).await - before;
    println!("{probes} transactions on the replica for 500 callers");
    assert!(probes < 250, "{probes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_fall_back_are_counted_and_bounded() {
    let servers = servers(1).await;
    let settings = ReadSettings {
        fallback_limit: 4,
        fallback_wait: Duration::from_millis(20),
        ..ReadSettings::default()
    };
    let cluster = watch_all_with(&servers, settings);
    becomes(&cluster, "replica-1", Ok(())).await;
    servers.replica(0).kill().await.unwrap();
    until("nobody may be chosen", async || {
        seen(&cluster, "replica-1").eligible.is_err()
    })
    .await;
    let session = Session::default();
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(
            cluster
                .choose(Consistency::Eventual.into(), &session)
                .await
                .unwrap(),
        );
    }
    assert!(
        cluster
            .choose(Consistency::Eventual.into(), &session)
            .await
            .is_err()
    );
    for _ in 0..2 {
        held.push(
            cluster
                .choose(Consistency::Recent.into(), &session)
                .await
                .unwrap(),
        );
    }
    assert!(
        cluster
            .choose(Consistency::Recent.into(), &session)
            .await
            .is_err()
    );
    assert!(cluster.choose(Consistency::Strict.into(), &session).await.is_ok());
    assert!(held.iter().all(Chosen::is_primary));
    drop(held);
    assert!(
        cluster
            .choose(Consistency::Eventual.into(), &session)
            .await
            .is_ok()
    );
}
