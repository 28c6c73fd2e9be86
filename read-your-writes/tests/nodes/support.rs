//! Servers, and a cluster that watches them.

use std::time::{Duration, Instant};

use read_your_writes::{Cluster, Ineligible, NodeSpec, NodeStatus, ReadSettings};
use sandbox::Node;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, postgres::PgConnectOptions};

/// How long something may take to be noticed. Two intervals and the time limit of a probe are 0.7 s; the rest is for machines
/// that have other things to do.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) async fn servers(replicas: usize) -> sandbox::Cluster {
    sandbox::Cluster::builder()
        .replicas(replicas)
        .start()
        .await
        .unwrap()
}

/// Watches nodes at these addresses; the first is said to be the primary.
pub(crate) fn watch(nodes: &[(&str, PgConnectOptions)], settings: ReadSettings) -> Cluster<()> {
    let specs = nodes.iter().enumerate().map(|(index, (name, options))| NodeSpec {
        name: (*name).into(),
        probe: options.clone(),
        is_primary: index == 0,
        payload: (),
    });
    Cluster::start("main".into(), specs.collect(), settings)
}

/// Watches all servers.
pub(crate) fn watch_all(servers: &sandbox::Cluster) -> Cluster<()> {
    watch_all_with(servers, ReadSettings::default())
}

pub(crate) fn watch_all_with(servers: &sandbox::Cluster, settings: ReadSettings) -> Cluster<()> {
    let nodes: Vec<_> = servers
        .nodes()
        .iter()
        .map(|node| (node.name(), node.connect_options("postgres")))
        .collect();
    watch(&nodes, settings)
}

pub(crate) fn seen(cluster: &Cluster<()>, name: &str) -> NodeStatus {
    let mut nodes = cluster.status().into_iter();
    nodes.find(|node| *node.name == *name).unwrap()
}

/// Waits until a node is seen so.
pub(crate) async fn becomes(cluster: &Cluster<()>, name: &str, wanted: Result<(), Ineligible>) {
    until(&format!("{name} becomes {wanted:?}"), async || {
        seen(cluster, name).eligible == wanted
    })
    .await;
}

pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("{what}: after {:?}", begun.elapsed());
}

pub(crate) async fn run(node: &Node, statement: &str) {
    let mut connection = PgConnection::connect_with(&node.connect_options("postgres"))
        .await
        .unwrap();
    connection.execute(AssertSqlSafe(statement)).await.unwrap();
    connection.close().await.unwrap();
}

pub(crate) async fn ask<T>(node: &Node, question: &'static str) -> T
where
    T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    let mut connection = PgConnection::connect_with(&node.connect_options("postgres"))
        .await
        .unwrap();
    sqlx::query_scalar(question)
        .fetch_one(&mut connection)
        .await
        .unwrap()
}
