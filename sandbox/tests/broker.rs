//! A broker's life, as its clients see it.

mod broker_support;
mod support;

use std::time::Duration;

use broker_support::{Client, connect};
use futures::StreamExt;
use lapin::Event;
use lapin::options::{BasicConsumeOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use sandbox::Broker;
use support::{LIMIT, eventually};
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(500);

async fn broker() -> Broker {
    Broker::builder().start().await.expect("a broker starts")
}

#[tokio::test]
async fn a_durable_queue_survives_a_stop_and_a_kill_at_the_same_port() {
    let broker = broker().await;
    let port = broker.port();
    let client = Client::connect(&broker.url()).await;
    client.declare("kept", QueueDeclareOptions::durable()).await;
    client.publish("", "kept", b"one").await;

    broker.stop().await.unwrap();
    assert!(!broker.is_running());
    assert!(connect(&broker.url()).await.is_err());
    assert!(
        broker
            .queues()
            .await
            .unwrap_err()
            .to_string()
            .contains("does not run")
    );
    broker.stop().await.unwrap();

    broker.start().await.unwrap();
    broker.start().await.unwrap();
    let client = Client::connect(&broker.url()).await;
    client.publish("", "kept", b"two").await;
    broker.kill().await.unwrap();
    assert!(!broker.is_running());

    broker.start().await.unwrap();
    assert_eq!(broker.port(), port);
    let [queue] = &broker.queues().await.unwrap()[..] else {
        panic!("one queue")
    };
    assert!(queue.durable && !queue.exclusive && !queue.auto_delete);
    assert_eq!(
        (queue.name.as_str(), queue.messages, queue.consumers),
        ("kept", 2, 0)
    );
    assert_eq!(broker.purge().await.unwrap(), 2);
    assert_eq!(broker.queues().await.unwrap()[0].messages, 0);
}

#[tokio::test]
async fn a_frozen_broker_answers_nobody_until_it_is_thawed() {
    let broker = broker().await;
    let client = Client::connect(&broker.url()).await;
    client.declare("q", QueueDeclareOptions::durable()).await;

    broker.freeze().await.unwrap();
    assert!(broker.is_frozen() && broker.is_running());
    broker.start().await.unwrap();
    assert!(broker.is_frozen(), "it runs already");
    assert!(timeout(SHORT, client.publish("", "q", b"lost?")).await.is_err());
    assert!(timeout(SHORT, connect(&broker.url())).await.is_err());

    broker.thaw().await.unwrap();
    assert!(!broker.is_frozen());
    timeout(LIMIT, client.publish("", "q", b"found")).await.unwrap();
    broker.freeze().await.unwrap();
    broker.stop().await.unwrap();
    assert!(!broker.is_running());
}

#[tokio::test]
async fn a_memory_alarm_blocks_publishers_only() {
    let broker = broker().await;
    let publisher = Client::connect(&broker.url()).await;
    publisher.declare("q", QueueDeclareOptions::durable()).await;
    publisher.publish("", "q", b"before").await;
    let mut events = publisher.connection.events_listener();

    broker.memory_alarm(true).await.unwrap();
    // Only one who publishes is blocked.
    assert!(
        timeout(SHORT, publisher.publish("", "q", b"during"))
            .await
            .is_err()
    );
    let blocked = async || matches!(events.next().await, Some(Event::ConnectionBlocked(_)));
    eventually("the client is told", blocked).await;
    assert!(publisher.connection.status().blocked());
    let state = async || broker.connections().await.unwrap()[0].state.clone();
    eventually("it is blocked", async || state().await == "blocked").await;

    let consumer = Client::connect(&broker.url()).await;
    let options = BasicConsumeOptions::default();
    let consuming = consumer
        .channel
        .basic_consume("q".into(), "c".into(), options, FieldTable::default());
    let mut messages = consuming.await.unwrap();
    let message = timeout(LIMIT, messages.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(message.data, b"before");

    broker.memory_alarm(false).await.unwrap();
    eventually("the client may go on", async || {
        !publisher.connection.status().blocked()
    })
    .await;
    timeout(LIMIT, publisher.publish("", "q", b"after"))
        .await
        .unwrap();
}

#[tokio::test]
async fn messages_are_discarded_although_they_are_confirmed() {
    let broker = broker().await;
    let client = Client::connect(&broker.url()).await;
    client.topic("events").await;
    let exclusive = QueueDeclareOptions {
        exclusive: true,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    client.declare("mine", exclusive).await;
    client.bind("mine", "events", "#").await;
    let messages = async || broker.queues().await.unwrap()[0].messages;

    client.publish("events", "a", b"arrives").await;
    assert_eq!(messages().await, 1);
    assert_eq!(broker.discard(true).await.unwrap(), 1);
    assert_eq!(broker.discard(true).await.unwrap(), 0);
    client.publish("events", "a", b"is lost").await;
    assert_eq!(messages().await, 1);
    assert_eq!(broker.discard(false).await.unwrap(), 1);
    client.publish("events", "a", b"arrives again").await;
    assert_eq!(messages().await, 2);
}

#[tokio::test]
async fn connections_are_listed_and_closed() {
    let broker = broker().await;
    assert!(broker.connections().await.unwrap().is_empty());
    let client = Client::connect_as(&broker.url(), "instance ü").await;
    let [connection] = &broker.connections().await.unwrap()[..] else {
        panic!("one connection")
    };
    assert_eq!(connection.client.as_deref(), Some("instance ü"));
    assert_eq!(connection.state, "running");
    assert!(!connection.tls);

    assert_eq!(broker.close_connections().await.unwrap(), 1);
    eventually("the client is told", async || {
        !client.connection.status().connected()
    })
    .await;
    eventually("it is gone", async || {
        broker.connections().await.unwrap().is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_proxy_cuts_clients_off() {
    let broker = broker().await;
    let proxy = broker.proxy().await.unwrap();
    let client = Client::connect(&proxy.url()).await;
    client.declare("q", QueueDeclareOptions::durable()).await;
    client.publish("", "q", b"passes").await;
    assert_eq!(proxy.connections(), 1);

    proxy.cut().await;
    eventually("the client notices", async || {
        !client.connection.status().connected()
    })
    .await;
    assert!(connect(&proxy.url()).await.is_err());
    Client::connect(&broker.url()).await;
    proxy.restore().await;
    Client::connect(&proxy.url())
        .await
        .publish("", "q", b"passes")
        .await;
    assert_eq!(broker.queues().await.unwrap()[0].messages, 2);
}

#[tokio::test]
async fn tls_is_for_those_who_trust_the_authority() {
    let broker = Broker::builder()
        .tls(true)
        .setting("heartbeat", "7")
        .start()
        .await
        .unwrap();
    let authority = broker.ca_certificate().unwrap();
    let written = std::fs::read_to_string(broker.ca_certificate_path().unwrap()).unwrap();
    assert_eq!(written, authority);

    assert!(connect(&broker.tls_url()).await.is_err());
    let proxy = broker.tls_proxy().await.unwrap();
    for url in [broker.tls_url(), proxy.url()] {
        let connection = broker_support::connect_tls(&url, authority).await.unwrap();
        assert_eq!(connection.configuration().heartbeat(), 7);
        assert!(broker.connections().await.unwrap().iter().all(|seen| seen.tls));
    }
    Client::connect(&broker.url()).await;
}

#[tokio::test]
async fn two_brokers_know_nothing_of_each_other_and_leave_nothing() {
    let (one, two) = tokio::join!(broker(), broker());
    assert_ne!(one.port(), two.port());
    assert_ne!(one.name(), two.name());
    assert_ne!(one.url(), two.url());
    let client = Client::connect(&one.url()).await;
    client.declare("of one", QueueDeclareOptions::durable()).await;
    assert!(two.queues().await.unwrap().is_empty());
    let foreign = one
        .url()
        .replace(&one.port().to_string(), &two.port().to_string());
    assert!(connect(&foreign).await.is_err(), "each has its own password");

    one.kill().await.unwrap();
    let folder = two.folder().to_owned();
    assert!(folder.exists() && two.is_running());
    two.delete().await;
    assert!(!folder.exists());
    assert!(broker_support::family(&folder).is_empty());
    let folder = one.folder().to_owned();
    drop(one);
    assert!(!folder.exists());
}

#[tokio::test]
async fn one_that_cannot_start_says_why() {
    let started = Broker::builder().setting("no_such_key", "1").start().await;
    let error = started.unwrap_err().to_string();
    assert!(error.contains("no_such_key"), "{error}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let started = Broker::builder().port(port).start().await;
    assert!(started.unwrap_err().to_string().contains("is taken"));
}
