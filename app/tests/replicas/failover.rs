//! Another node becomes the primary, or the primary loses what it had confirmed.

use std::time::Duration;

use reqwest::Method;
use sandbox::{Cluster, Node};
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};

use crate::{
    client::{Carry, Client},
    common::eventually,
    world::{Instance, World, time_until},
};

/// How long service may be away after a promotion.
const BACK_WITHIN: Duration = Duration::from_secs(10);

async fn can_write(client: &mut Client) -> bool {
    let new = json!({ "customer": "Initech", "amount_cents": 1, "currency": "EUR" });
    let answer = client.send(Method::POST, "/invoices", Some(&new)).await;
    assert!(matches!(answer.status.as_u16(), 201 | 500..=504), "{answer:?}");
    answer.status == 201
}

async fn sql(node: &Node, database: &str, statement: &'static str) {
    let mut connection = PgConnection::connect_with(&node.connect_options(database))
        .await
        .unwrap();
    connection.execute(statement).await.unwrap();
    connection.close().await.unwrap();
}

/// The position is resolved: reads are served by a replica again, and there is nothing to wait for any more.
async fn is_not_stuck(instance: &Instance, client: &Client) {
    let mut client = client.clone();
    client.go_to(instance);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let (_, by) = client.list().await;
        if by.starts_with("replica-") && client.token.is_none() {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "still served by {by}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_is_found_out_and_no_write_that_survived_is_missed() {
    let mut world = World::start().await;
    let instances = [world.instance().await, world.instance().await];
    let key = instances[0].tenant("acme").await;
    let mut client = instances[0].client(&key, Carry::Cookie);
    for instance in &instances {
        instance.replicas_serve().await;
    }
    let id = client.invoice("Initech").await;
    let before = client.clone();
    world.cluster.promote(0).await.unwrap();
    let away = time_until("writes are served again", || {
        let mut client = client.clone();
        async move { can_write(&mut client).await }
    })
    .await;
    println!("writes are served {away:?} after the promotion");
    assert!(away < BACK_WITHIN, "{away:?}");
    for instance in &instances {
        // With the position of the old timeline.
        let mut client = before.clone();
        client.go_to(instance);
        eventually("the write that survived is seen", || {
            let mut client = client.clone();
            let path = format!("/invoices/{id}");
            async move {
                let answer = client.get(&path).await;
                assert!(matches!(answer.status.as_u16(), 200 | 503), "{answer:?}");
                answer.status == 200
            }
        })
        .await;
        instance.eligible(&["replica-2"], true).await;
        is_not_stuck(instance, &before).await;
        let nodes = instance.nodes().await;
        let primary = nodes.iter().find(|node| node["role"] == "primary").unwrap();
        assert_eq!(
            (&primary["name"], &primary["timeline"]),
            (&json!("replica-1"), &json!(2))
        );
    }
    eventually("the catalog knows", || async {
        let mut catalog = world.catalog().await;
        let asked = sqlx::query_scalar::<_, String>("select name from nodes where role = 'primary'");
        asked.fetch_one(&mut catalog).await.unwrap() == "replica-1"
    })
    .await;
    // An instance that starts now does not have to find out anything.
    let late = world.instance().await;
    let mut client = late.client(&key, Carry::Header);
    assert!(can_write(&mut client).await);
    assert!(client.list().await.0.contains(&id));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_that_lost_the_last_writes_leaves_no_position_stuck() {
    let mut world = World::start().await;
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    instance.replicas_serve().await;
    let mut client = instance.client(&key, Carry::Cookie);
    let survives = client.invoice("Initech").await;
    world.cluster.wait_caught_up().await.unwrap();
    // The replicas receive nothing from here on.
    for replica in world.cluster.replicas() {
        sql(replica, "postgres", "alter system set primary_conninfo = ''").await;
        sql(replica, "postgres", "select pg_reload_conf()").await;
    }
    eventually("nobody receives", || async {
        let options = world.cluster.primary().connect_options("postgres");
        let mut primary = PgConnection::connect_with(&options).await.unwrap();
        let receivers: i64 = sqlx::query_scalar("select count(*) from pg_stat_replication")
            .fetch_one(&mut primary)
            .await
            .unwrap();
        receivers == 0
    })
    .await;
    let lost = client.invoice("Initech").await;
    world.cluster.primary().kill().await.unwrap();
    for replica in world.cluster.replicas() {
        sql(replica, "postgres", "alter system reset primary_conninfo").await;
    }
    world.cluster.promote(0).await.unwrap();
    let away = time_until("reads are served again", || {
        let mut client = client.clone();
        let survives = survives.clone();
        async move {
            let answer = client.get(&format!("/invoices/{survives}")).await;
            assert!(matches!(answer.status.as_u16(), 200 | 503), "{answer:?}");
            answer.status == 200
        }
    })
    .await;
    println!("reads are served {away:?} after the promotion");
    assert!(away < BACK_WITHIN, "{away:?}");
    // The write is gone, and everybody says so.
    client
        .get(&format!("/invoices/{lost}"))
        .await
        .problem(404, "not-found");
    instance.eligible(&["replica-2"], true).await;
    is_not_stuck(&instance, &client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_loses_confirmed_commits_in_a_crash_pins_nobody() {
    let builder = Cluster::builder()
        .replicas(2)
        .setting("synchronous_commit", "off")
        // What is confirmed stays in memory for a while.
        .setting("wal_writer_delay", "10s");
    let world = World::with(builder).await;
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    instance.replicas_serve().await;
    let mut client = instance.client(&key, Carry::Cookie);
    let survives = client.invoice("Initech").await;
    sql(world.cluster.primary(), "postgres", "checkpoint").await;
    world.cluster.wait_caught_up().await.unwrap();
    let mut lost = String::new();
    for _ in 0..3 {
        lost = client.invoice("Initech").await;
    }
    world.cluster.primary().kill().await.unwrap();
    world.cluster.primary().start().await.unwrap();
    eventually("the primary serves again", || {
        let mut client = client.clone();
        let path = format!("/invoices/{survives}");
        async move { client.get(&path).await.status == 200 }
    })
    .await;
    client
        .get(&format!("/invoices/{lost}"))
        .await
        .problem(404, "not-found");
    instance.replicas_serve().await;
    is_not_stuck(&instance, &client).await;
    assert!(
        instance
            .metric("tenantry_position_total", &["outcome=\"lost\""])
            .await
            > 0.0
    );
}
