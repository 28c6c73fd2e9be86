//! What a broker is to be like, and its first start.

use parking_lot::Mutex;
use rand::distr::{Alphanumeric, SampleString};

use super::certificate::Certificates;
use super::files::{Configuration, Files};
use super::programs::Programs;
use super::{Broker, BrokerRoute, Ports};
use crate::account::Account;
use crate::error::{Doing, SandboxError};
use crate::folder::Root;
use crate::guardian::Orders;
use crate::port::ReservedPort;
use crate::secret;

/// Describes a [`Broker`]; made by [`Broker::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is started before `start`"]
pub struct BrokerBuilder {
    tls: bool,
    port: Option<u16>,
    settings: Vec<(String, String)>,
}

impl BrokerBuilder {
    /// Whether there is a second port that speaks TLS, with a certificate for `127.0.0.1` and `localhost`
    /// by an authority of the broker's own. Off by default: it takes a moment.
    pub fn tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// The port for AMQP. Otherwise the kernel chooses.
    pub fn port(mut self, port: impl Into<Option<u16>>) -> Self {
        self.port = port.into();
        self
    }

    /// Sets a key of `rabbitmq.conf`, such as `heartbeat`. The last one of a name wins.
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Starts the broker, and returns when it answers clients, which takes some seconds.
    ///
    /// # Errors
    ///
    /// When there is no RabbitMQ, the folder or a port cannot be had, or the broker does not start.
    /// Nothing is left running then.
    pub async fn start(self) -> Result<Broker, SandboxError> {
        let programs = Programs::find()?;
        let account = Account::for_brokers()?;
        let ports = Ports {
            amqp: amqp_port(self.port)?,
            tls: self.tls.then(any_port).transpose()?,
            erlang: any_port()?,
        };
        let certificates = self.tls.then(Certificates::make).transpose()?;

        let root = Root::temporary(&account).await?;
        let guardian = root.guard(Orders::Remove)?;
        let id = Alphanumeric.sample_string(&mut rand::rng(), 8);
        let route = BrokerRoute::new("sandbox", secret::password());
        let configuration = Configuration {
            port: ports.amqp.number(),
            tls_port: ports.tls.as_ref().map(ReservedPort::number),
            route: &route,
            chosen: &self.settings,
        };
        let files = Files::create(&account, root.path(), certificates, &configuration)?;
        let broker = Broker {
            name: format!("sandbox-{id}@localhost"),
            programs,
            account,
            files,
            route,
            ports,
            vm: Mutex::default(),
            guardian: Some(guardian),
            root,
        };
        broker.start().await?;
        Ok(broker)
    }
}

fn amqp_port(chosen: Option<u16>) -> Result<ReservedPort, SandboxError> {
    match chosen {
        Some(port) => ReservedPort::exactly(port).map_err(|_| SandboxError::PortTaken { port }),
        None => any_port(),
    }
}

fn any_port() -> Result<ReservedPort, SandboxError> {
    ReservedPort::any().doing(|| "reserve a port for a broker".to_owned())
}
