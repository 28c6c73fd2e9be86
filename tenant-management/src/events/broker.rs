//! Word by a RabbitMQ broker: a durable topic exchange, and a queue for each instance that goes with its connection.
//!
//! Uses what RabbitMQ 3.10 and 4 both have: the queue is exclusive, so it is neither mirrored nor shared.

use std::{fmt, str::FromStr, time::Duration};

use futures::{FutureExt, StreamExt};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, ExchangeKind,
    message::Delivery,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
        ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
    },
    tcp::OwnedTLSConfig,
    types::{AMQPValue, FieldTable},
    uri::AMQPUri,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use super::{Ear, EventError, Transport, Word};
use crate::ids::{InstanceId, Revision};

/// The routing key of word about the catalog.
const KEY: &str = "catalog.revision";
/// How long a broker may take to answer a new connection.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);
/// Seconds between two signs of life on an idle connection, unless the URL says otherwise; after two without, the peer is gone.
const HEARTBEAT: u16 = 5;
/// Messages that the broker sends ahead of their acknowledgement.
const PREFETCH: u16 = 256;
/// Messages that wait for an instance at most. The newest says all that the older ones do.
const QUEUE_LENGTH: i32 = 1000;

/// The broker to use.
#[derive(Clone)]
pub struct BrokerSettings {
    uri: AMQPUri,
    exchange: String,
    authorities: Option<String>,
}

/// Not an `amqp://` or `amqps://` URL. What was given is not repeated: it may contain a password.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("must be like amqp://user:password@host:5672/%2f")]
pub struct InvalidBrokerUrl;

impl BrokerSettings {
    /// Settings for the broker at an `amqp` or `amqps` URL, and the exchange that all instances of one catalog share.
    ///
    /// # Errors
    ///
    /// When the URL is none.
    pub fn new(url: &SecretString, exchange: &str) -> Result<Self, InvalidBrokerUrl> {
        let mut uri = AMQPUri::from_str(url.expose_secret()).map_err(|_| InvalidBrokerUrl)?;
        uri.query.heartbeat.get_or_insert(HEARTBEAT);
        Ok(Self {
            uri,
            exchange: exchange.to_owned(),
            authorities: None,
        })
    }

    /// Trusts these authorities (certificates in PEM) with an `amqps` URL, and no longer the system's.
    #[must_use]
    pub fn trusting(mut self, authorities: String) -> Self {
        self.authorities = Some(authorities);
        self
    }
}

impl fmt::Debug for BrokerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerSettings")
            .field("host", &self.uri.authority.host)
            .field("port", &self.uri.authority.port)
            .field("exchange", &self.exchange)
            .finish_non_exhaustive()
    }
}

/// What went wrong with the broker.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokerError {
    #[error("the broker at {0} cannot be reached")]
    Connect(String, #[source] lapin::Error),
    #[error("the broker at {0} does not answer within {CONNECTED_WITHIN:?}")]
    Silent(String),
    #[error("the broker has ended the connection")]
    Lost(#[source] lapin::Error),
    #[error("the broker has ended the subscription")]
    Ended,
    #[error("the broker did not take the message")]
    Refused,
}

/// The way through a broker, with a connection for speaking: a broker that is short of memory stops reading from those who
/// publish, and hearing must go on.
#[derive(Debug)]
pub(crate) struct ByBroker {
    settings: BrokerSettings,
    instance: InstanceId,
    speaking: Mutex<Option<(Connection, Channel)>>,
}

/// A queue of this instance's own.
pub(crate) struct Subscription {
    consumer: Consumer,
    /// Ends with the subscription.
    _connection: Connection,
}

impl ByBroker {
    pub(crate) fn new(settings: BrokerSettings, instance: InstanceId) -> Self {
        Self {
            settings,
            instance,
            speaking: Mutex::default(),
        }
    }

    async fn connect(&self, purpose: &str) -> Result<(Connection, Channel), BrokerError> {
        let authority = &self.settings.uri.authority;
        let address = format!("{}:{}", authority.host, authority.port);
        let connect = async {
            let properties = ConnectionProperties::default()
                .with_connection_name(format!("tenantry/{}/{purpose}", self.instance).into());
            let trust = OwnedTLSConfig {
                identity: None,
                cert_chain: self.settings.authorities.clone(),
            };
            let runtime = lapin::runtime::default_runtime()?;
            let connection =
                Connection::connect_uri_with_config(self.settings.uri.clone(), properties, trust, runtime)
                    .await?;
            let channel = connection.create_channel().await?;
            channel
                .exchange_declare(
                    self.settings.exchange.as_str().into(),
                    ExchangeKind::Topic,
                    ExchangeDeclareOptions {
                        durable: true,
                        ..ExchangeDeclareOptions::default()
                    },
                    FieldTable::default(),
                )
                .await?;
            Ok((connection, channel))
        };
        match tokio::time::timeout(CONNECTED_WITHIN, connect).await {
            Ok(connected) => connected.map_err(|error| BrokerError::Connect(address, error)),
            Err(_) => Err(BrokerError::Silent(address)),
        }
    }

    async fn subscribe(&self) -> Result<Subscription, BrokerError> {
        let (connection, channel) = self.connect("hears").await?;
        let subscribe = async {
            channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
            let mut limits = FieldTable::default();
            limits.insert("x-max-length".into(), AMQPValue::LongInt(QUEUE_LENGTH));
            // The broker chooses the name: one of ours would be taken as long as it has not noticed the end of an earlier
            // connection.
            let queue = channel
                .queue_declare(
                    "".into(),
                    QueueDeclareOptions {
                        exclusive: true,
                        auto_delete: true,
                        ..QueueDeclareOptions::default()
                    },
                    limits,
                )
                .await?;
            channel
                .queue_bind(
                    queue.name().clone(),
                    self.settings.exchange.as_str().into(),
                    KEY.into(),
                    QueueBindOptions::default(),
                    FieldTable::default(),
                )
                .await?;
            channel
                .basic_consume(
                    queue.name().clone(),
                    "".into(),
                    BasicConsumeOptions::default(),
                    FieldTable::default(),
                )
                .await
        };
        let consumer = subscribe.await.map_err(BrokerError::Lost)?;
        Ok(Subscription {
            consumer,
            _connection: connection,
        })
    }

    async fn connect_to_speak(&self) -> Result<(Connection, Channel), BrokerError> {
        let (connection, channel) = self.connect("speaks").await?;
        let confirm = channel.confirm_select(ConfirmSelectOptions::default());
        confirm.await.map_err(BrokerError::Lost)?;
        Ok((connection, channel))
    }

    async fn publish(&self, revision: Revision) -> Result<(), BrokerError> {
        let mut speaking = self.speaking.lock().await;
        // Taken out: whoever gives up in the middle leaves no channel behind of which nobody knows how far it has got.
        let usable = speaking
            .take()
            .filter(|(_, channel)| channel.status().connected());
        let (connection, channel) = match usable {
            Some(open) => open,
            None => self.connect_to_speak().await?,
        };
        let confirmation = channel
            .basic_publish(
                self.settings.exchange.as_str().into(),
                KEY.into(),
                BasicPublishOptions::default(),
                revision.0.to_string().as_bytes(),
                BasicProperties::default(),
            )
            .await
            .map_err(BrokerError::Lost)?
            .await
            .map_err(BrokerError::Lost)?;
        if matches!(confirmation, Confirmation::Nack(_)) {
            return Err(BrokerError::Refused);
        }
        *speaking = Some((connection, channel));
        Ok(())
    }
}

impl Transport for ByBroker {
    type Ear = Subscription;

    async fn listen(&self) -> Result<Subscription, EventError> {
        Ok(self.subscribe().await?)
    }

    async fn say(&self, revision: Revision) -> Result<(), EventError> {
        Ok(self.publish(revision).await?)
    }
}

impl Ear for Subscription {
    async fn hear(&mut self) -> Result<Word, EventError> {
        let next = self.consumer.next().await.ok_or(BrokerError::Ended)?;
        let mut last = next.map_err(BrokerError::Lost)?;
        let mut said = vec![revision_in(&last)];
        while let Some(Some(next)) = self.consumer.next().now_or_never() {
            last = next.map_err(BrokerError::Lost)?;
            said.push(revision_in(&last));
        }
        let all_up_to_it = BasicAckOptions { multiple: true };
        last.ack(all_up_to_it).await.map_err(BrokerError::Lost)?;
        Ok(said.into_iter().collect())
    }
}

fn revision_in(delivery: &Delivery) -> Option<Revision> {
    std::str::from_utf8(&delivery.data)
        .ok()?
        .parse()
        .ok()
        .map(Revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_is_none_is_refused_without_repeating_it() {
        for wrong in [
            "",
            "broker",
            "http://guest:secret@broker/",
            "amqp://guest:secret@broker:port/",
        ] {
            let refusal = BrokerSettings::new(&wrong.into(), "tenantry").unwrap_err();
            assert!(!refusal.to_string().contains("secret"));
        }
    }

    #[test]
    fn settings_can_be_logged() {
        let settings = BrokerSettings::new(&"amqps://guest:secret@broker/%2f".into(), "tenantry").unwrap();
        let logged = format!("{settings:?}");
        assert!(
            logged.contains("broker") && logged.contains("5671") && !logged.contains("secret"),
            "{logged}"
        );
        assert_eq!(settings.uri.query.heartbeat, Some(HEARTBEAT));
    }
}
