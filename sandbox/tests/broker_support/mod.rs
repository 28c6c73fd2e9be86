//! What the tests of brokers share: a client, and the processes of a broker.

#![allow(dead_code, reason = "each test program uses a part of this")]

use std::path::Path;

use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::tcp::OwnedTLSConfig;
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ExchangeKind};

use super::support::processes_with;

/// Persistent, in the words of AMQP.
const PERSISTENT: u8 = 2;

pub(crate) async fn connect(url: &str) -> lapin::Result<Connection> {
    Connection::connect(url, ConnectionProperties::default()).await
}

pub(crate) async fn connect_tls(url: &str, authority: &str) -> lapin::Result<Connection> {
    let config = OwnedTLSConfig {
        identity: None,
        cert_chain: Some(authority.to_owned()),
    };
    let runtime = lapin::runtime::default_runtime()?;
    Connection::connect_with_config(url, ConnectionProperties::default(), config, runtime).await
}

/// A connection with a channel that confirms.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    pub(crate) channel: Channel,
}

impl Client {
    pub(crate) async fn connect(url: &str) -> Self {
        Self::connect_as(url, "test").await
    }

    pub(crate) async fn connect_as(url: &str, name: &str) -> Self {
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let connection = Connection::connect(url, properties).await.expect("it connects");
        let channel = connection.create_channel().await.expect("a channel opens");
        let confirmed = channel.confirm_select(ConfirmSelectOptions::default()).await;
        confirmed.expect("messages are confirmed");
        Self { connection, channel }
    }

    pub(crate) async fn declare(&self, queue: &str, options: QueueDeclareOptions) {
        let declared = self
            .channel
            .queue_declare(queue.into(), options, FieldTable::default());
        declared.await.expect("the queue is declared");
    }

    pub(crate) async fn topic(&self, exchange: &str) {
        let options = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        let kind = ExchangeKind::Topic;
        let declared = self
            .channel
            .exchange_declare(exchange.into(), kind, options, FieldTable::default());
        declared.await.expect("the exchange is declared");
    }

    pub(crate) async fn bind(&self, queue: &str, exchange: &str, key: &str) {
        let options = QueueBindOptions::default();
        let bound = self.channel.queue_bind(
            queue.into(),
            exchange.into(),
            key.into(),
            options,
            FieldTable::default(),
        );
        bound.await.expect("the queue is bound");
    }

    /// Publishes a persistent message, and waits until it is confirmed.
    pub(crate) async fn publish(&self, exchange: &str, key: &str, message: &[u8]) {
        let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
        let options = BasicPublishOptions::default();
        let sent = self
            .channel
            .basic_publish(exchange.into(), key.into(), options, message, properties);
        let confirmation = sent.await.expect("it is sent").await.expect("it is confirmed");
        assert!(
            matches!(confirmation, Confirmation::Ack(None)),
            "{confirmation:?}"
        );
    }
}

/// The processes of a broker, by its folder.
pub(crate) fn family(folder: &Path) -> Vec<i32> {
    processes_with("environ", &format!("SANDBOX_BROKER={}/\0", folder.display()))
}
