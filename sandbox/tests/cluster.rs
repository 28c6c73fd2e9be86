//! A cluster from its start to its end, and what its servers are like.

mod support;

use std::borrow::Cow;

use sandbox::{Cluster, SandboxError};
use sqlx::{Connection, PgConnection};
use support::{ask, connect_with, servers, shared_memory};

#[tokio::test]
async fn a_cluster_answers_and_leaves_nothing() {
    let cluster = Cluster::builder().start().await.unwrap();
    let mut connection = PgConnection::connect(&cluster.primary().url("postgres"))
        .await
        .unwrap();
    let name: String = sqlx::query_scalar("show cluster_name")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(name, "primary");
    assert_eq!(cluster.primary().host(), "127.0.0.1");

    let folder = cluster.folder().to_owned();
    let pids = servers(&folder);
    assert_eq!(pids.len(), 1);
    drop(cluster);
    assert!(!folder.exists());
    assert!(servers(&folder).is_empty());
    assert!(shared_memory(&pids).is_empty());
}

#[tokio::test]
async fn stopping_and_deleting_leave_nothing_either() {
    for delete in [false, true] {
        let cluster = Cluster::builder().start().await.unwrap();
        let (folder, node) = (cluster.folder().to_owned(), cluster.primary().clone());
        if delete {
            cluster.delete().await.unwrap();
        } else {
            cluster.stop().await.unwrap();
        }
        assert!(!folder.exists());
        assert!(!node.is_running());
        assert!(
            matches!(node.start().await, Err(SandboxError::Closed { .. })),
            "nobody would stop it"
        );
    }
}

#[tokio::test]
async fn a_password_is_asked_for_and_is_the_clusters_own() {
    let one = Cluster::builder().start().await.unwrap();
    let other = Cluster::builder().start().await.unwrap();
    let code_of = async |options: &sqlx::postgres::PgConnectOptions| {
        let error = PgConnection::connect_with(options).await.unwrap_err();
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code);
        code.map(Cow::into_owned)
    };

    let wrong = one.primary().connect_options("postgres").password("wrong");
    assert_eq!(code_of(&wrong).await.as_deref(), Some("28P01"));
    let of_the_other = other
        .primary()
        .connect_options("postgres")
        .port(one.primary().port());
    assert_eq!(code_of(&of_the_other).await.as_deref(), Some("28P01"));

    let methods = "select string_agg(distinct auth_method, ',') from pg_hba_file_rules";
    assert_eq!(ask(one.primary(), methods).await, "scram-sha-256");
    let sockets = "select current_setting('unix_socket_directories') || current_setting('listen_addresses')";
    assert_eq!(ask(one.primary(), sockets).await, "127.0.0.1");
    let identity = "select system_identifier::text from pg_control_system()";
    assert_ne!(
        ask(one.primary(), identity).await,
        ask(other.primary(), identity).await
    );
}

#[tokio::test]
async fn the_password_is_in_no_command_line_and_no_log() {
    let cluster = Cluster::builder().replicas(1).start().await.unwrap();
    let url = cluster.primary().url("postgres");
    let password = url.split([':', '@']).nth(2).unwrap();
    support::execute(cluster.primary(), "select pg_reload_conf()").await;

    assert!(support::processes_with("cmdline", password).is_empty());
    for node in cluster.nodes() {
        assert!(
            !node.log_tail(10_000).contains(password),
            "the log of {}",
            node.name()
        );
    }
    assert!(!format!("{cluster:?}").contains(password));
}

#[tokio::test]
async fn settings_reach_all_nodes_and_the_last_one_wins() {
    let builder = Cluster::builder().replicas(1).setting("max_connections", "55");
    let cluster = builder.setting("max_connections", "66").start().await.unwrap();
    for node in cluster.nodes() {
        assert_eq!(ask(node, "show max_connections").await, "66");
        assert_eq!(ask(node, "show fsync").await, "off");
        assert_eq!(ask(node, "show synchronous_commit").await, "on");
    }
    let durable = Cluster::builder().durable(true).start().await.unwrap();
    assert_eq!(ask(durable.primary(), "show fsync").await, "on");
    assert_eq!(ask(durable.primary(), "show full_page_writes").await, "on");
}

#[tokio::test]
async fn a_server_that_does_not_start_shows_its_log() {
    let error = Cluster::builder()
        .setting("no_such_setting", "1")
        .start()
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("primary did not start"), "{text}");
    assert!(
        text.contains("unrecognized configuration parameter \"no_such_setting\""),
        "{text}"
    );
}

#[tokio::test]
async fn ports_that_are_asked_for_are_used_or_reported() {
    let taken = Cluster::builder().start().await.unwrap();
    let port = taken.primary().port();
    let error = Cluster::builder().ports(port).start().await.unwrap_err();
    assert!(
        matches!(error, SandboxError::PortTaken { port: reported } if reported == port),
        "{error}"
    );

    taken.stop().await.unwrap();
    let again = Cluster::builder().ports(port).start().await.unwrap();
    assert_eq!(again.primary().port(), port);
}

#[tokio::test]
async fn many_clusters_start_at_once() {
    let start = || async { Cluster::builder().start().await.unwrap() };
    let clusters = futures::future::join_all((0..6).map(|_| start())).await;
    for cluster in &clusters {
        connect_with(&cluster.primary().connect_options("postgres")).await;
    }
}
