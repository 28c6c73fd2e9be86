//! A proxy, and what it does to those who connect by it.

mod support;

use std::time::{Duration, Instant};

use sandbox::{Cluster, Proxy};
use sqlx::{Connection, PgConnection};
use support::{connect_with, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(300);

async fn cluster() -> (Cluster, Proxy) {
    let cluster = Cluster::builder().start().await.expect("a cluster starts");
    let proxy = cluster.primary().proxy().await.expect("a proxy starts");
    (cluster, proxy)
}

async fn connect(proxy: &Proxy) -> PgConnection {
    connect_with(&proxy.connect_options("postgres")).await
}

async fn answer(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar("select 42").fetch_one(connection).await
}

#[tokio::test]
async fn queries_pass_and_are_counted() {
    let (_cluster, proxy) = cluster().await;
    let mut one = PgConnection::connect(&proxy.url("postgres")).await.unwrap();
    let two = connect(&proxy).await;
    assert_eq!(answer(&mut one).await.unwrap(), 42);
    assert_eq!(proxy.connections(), 2);

    let before = proxy.bytes();
    let large: String = sqlx::query_scalar("select repeat('x', 10000000)")
        .fetch_one(&mut one)
        .await
        .unwrap();
    assert_eq!(large.len(), 10_000_000);
    assert!(proxy.bytes() - before > 10_000_000);

    two.close().await.unwrap();
    eventually("the closed connection is gone", async || proxy.connections() == 1).await;
    drop(proxy);
    assert!(answer(&mut one).await.is_err());
}

#[tokio::test]
async fn a_cut_closes_everything_until_it_is_restored() {
    let (cluster, proxy) = cluster().await;
    let mut open = connect(&proxy).await;
    let options = proxy.connect_options("postgres");

    proxy.cut().await;
    assert_eq!(proxy.connections(), 0);
    assert!(answer(&mut open).await.is_err());
    let refused = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    connect_with(&cluster.primary().connect_options("postgres")).await;

    proxy.cut().await;
    proxy.restore().await;
    assert_eq!(answer(&mut connect_with(&options).await).await.unwrap(), 42);
}

#[tokio::test]
async fn a_black_hole_accepts_and_never_answers() {
    let (_cluster, proxy) = cluster().await;
    let mut open = connect(&proxy).await;
    let bytes = proxy.bytes();

    proxy.black_hole().await;
    assert!(timeout(SHORT, answer(&mut open)).await.is_err());
    let options = proxy.connect_options("postgres");
    assert!(
        timeout(SHORT, PgConnection::connect_with(&options))
            .await
            .is_err()
    );
    let mut fresh = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    fresh.write_all(b"hello?").await.unwrap();
    assert!(timeout(SHORT, fresh.read_u8()).await.is_err());
    assert_eq!(proxy.bytes(), bytes);

    // Those who lost bytes are closed; everybody else finds everything as before.
    proxy.restore().await;
    assert!(answer(&mut open).await.is_err());
    assert!(fresh.read_u8().await.is_err());
    assert_eq!(answer(&mut connect(&proxy).await).await.unwrap(), 42);
    eventually("all but the last are gone", async || proxy.connections() <= 1).await;
}

#[tokio::test]
async fn a_black_hole_that_nobody_had_time_to_notice_closes_connections_nevertheless() {
    let (_cluster, proxy) = cluster().await;
    let mut open = connect(&proxy).await;
    tokio::join!(proxy.black_hole(), proxy.restore());
    assert!(timeout(support::LIMIT, answer(&mut open)).await.unwrap().is_err());
}

#[tokio::test]
async fn a_delay_is_paid_in_each_direction() {
    let (_cluster, proxy) = cluster().await;
    let mut open = connect(&proxy).await;
    answer(&mut open).await.unwrap();

    let latency = Duration::from_millis(500);
    proxy.delay(latency).await;
    let began = Instant::now();
    answer(&mut open).await.unwrap();
    assert!(began.elapsed() >= 2 * latency, "{:?}", began.elapsed());

    proxy.restore().await;
    let began = Instant::now();
    answer(&mut open).await.unwrap();
    assert!(began.elapsed() < 2 * latency, "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_is_sent_without_waiting_pays_a_delay_once() {
    let (_cluster, proxy) = cluster().await;
    let mut open = connect(&proxy).await;
    let latency = Duration::from_millis(500);
    proxy.delay(latency).await;

    // One answer of many packets; and one request after another while the first is under way.
    let began = Instant::now();
    let sql = "select repeat('x', 1000000) from generate_series(1, 20)";
    let rows = sqlx::raw_sql(sql).fetch_all(&mut open).await.unwrap();
    assert_eq!(rows.len(), 20);
    let elapsed = began.elapsed();
    assert!(elapsed >= 2 * latency && elapsed < 20 * latency, "{elapsed:?}");
}

#[tokio::test]
async fn a_delay_does_not_change_the_order() {
    let (_cluster, proxy) = cluster().await;
    let mut open = connect(&proxy).await;
    // The latency shrinks while bytes are under way: later ones must not overtake them.
    proxy.delay(SHORT).await;
    let (many, ()) = tokio::join!(
        async {
            sqlx::query_scalar::<_, i32>("select generate_series(1, 50000)")
                .fetch_all(&mut open)
                .await
        },
        async {
            tokio::time::sleep(SHORT + Duration::from_millis(20)).await;
            proxy.delay(Duration::from_millis(1)).await;
        }
    );
    assert_eq!(many.unwrap(), (1..=50_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stopped_node_ends_its_connections_and_is_found_again() {
    let (cluster, proxy) = cluster().await;
    let mut open = connect(&proxy).await;
    cluster.primary().stop().await.unwrap();
    assert!(answer(&mut open).await.is_err());
    assert!(
        PgConnection::connect_with(&proxy.connect_options("postgres"))
            .await
            .is_err()
    );
    cluster.primary().start().await.unwrap();
    assert_eq!(answer(&mut connect(&proxy).await).await.unwrap(), 42);
}
