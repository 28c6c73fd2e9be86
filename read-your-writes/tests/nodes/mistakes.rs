//! Nodes that are not what they are said to be.

use std::time::{Duration, Instant};

use read_your_writes::{Ineligible, Mode, ReadSettings};

use crate::support::{becomes, run, seen, servers, watch, watch_all, watch_all_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_was_promoted_by_mistake_leaves_and_is_not_followed() {
    let servers = servers(2).await;
    let cluster = watch_all(&servers);
    becomes(&cluster, "replica-1", Ok(())).await;
    servers.replica(0).promote().await.unwrap();
    becomes(&cluster, "replica-1", Err(Ineligible::NotInRecovery)).await;
    let begun = Instant::now();
    while begun.elapsed() < ReadSettings::default().failover_after * 2 {
        assert_eq!(&**cluster.primary().name(), "primary");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(seen(&cluster, "replica-2").eligible, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_the_primary_is_no_replica() {
    let servers = servers(1).await;
    let primary = || servers.primary().connect_options("postgres");
    let nodes = [
        ("primary", primary()),
        ("replica-1", servers.replica(0).connect_options("postgres")),
        ("mistake", primary()),
    ];
    let cluster = watch(&nodes, ReadSettings::default());
    becomes(&cluster, "mistake", Err(Ineligible::NotInRecovery)).await;
    becomes(&cluster, "replica-1", Ok(())).await;
    assert_eq!(&**cluster.primary().name(), "primary");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_of_another_cluster_is_not_read_from() {
    let (ours, theirs) = (servers(1).await, servers(1).await);
    let nodes = [
        ("primary", ours.primary().connect_options("postgres")),
        ("replica-1", ours.replica(0).connect_options("postgres")),
        ("foreign", theirs.replica(0).connect_options("postgres")),
    ];
    let cluster = watch(&nodes, ReadSettings::default());
    becomes(&cluster, "replica-1", Ok(())).await;
    becomes(&cluster, "foreign", Err(Ineligible::ForeignSystem)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_usable_places_in_its_log_needs_the_window() {
    let servers = servers(1).await;
    // What tells Aurora apart.
    run(
        servers.primary(),
        "create function aurora_version() returns text language sql as 'select ''1.0'''",
    )
    .await;
    servers.wait_caught_up().await.unwrap();
    let by_log = watch_all(&servers);
    becomes(&by_log, "replica-1", Err(Ineligible::Unreachable)).await;
    let settings = ReadSettings {
        mode: Mode::Window,
        ..ReadSettings::default()
    };
    let by_window = watch_all_with(&servers, settings);
    becomes(&by_window, "replica-1", Ok(())).await;
    assert!(by_log.status().iter().all(|node| node.eligible.is_err()));
}
