//! One private RabbitMQ node: how to reach it, and everything that can be done to it.
//!
//! Owns the broker's folder, ports and processes. Refuses to know what is sent through it.

mod address;
mod builder;
mod certificate;
mod control;
mod files;
mod life;
mod meddling;
mod programs;
mod vm;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

pub use address::BrokerRoute;
pub use builder::BrokerBuilder;
pub use control::{BrokerConnection, BrokerQueue};

use crate::account::Account;
use crate::error::SandboxError;
use crate::folder::Root;
use crate::guardian::Guardian;
use crate::logfile;
use crate::port::ReservedPort;
use crate::proxy::Proxy;
use files::Files;
use programs::Programs;
use vm::Vm;

/// How much of the log an error carries. Erlang says what was wrong first, and then everything else.
const LOG_LINES_IN_ERRORS: usize = 120;

/// A RabbitMQ broker of its own, on loopback.
///
/// Dropping it ends its processes and removes its folder, which takes about a tenth of a second and holds
/// up the thread. The same happens when the process ends in any other way, even by `SIGKILL`.
#[derive(Debug)]
pub struct Broker {
    name: String,
    programs: Programs,
    account: Account,
    files: Files,
    route: BrokerRoute,
    ports: Ports,
    vm: Mutex<Option<Vm>>,
    /// `None` once the broker has ended. Before the folder: it uses the folder to its end.
    guardian: Option<Guardian>,
    root: Root,
}

/// The ports, which stay the same as long as the broker lives, whether it runs or not.
#[derive(Debug)]
struct Ports {
    amqp: ReservedPort,
    /// For `amqps`, if there is a certificate.
    tls: Option<ReservedPort>,
    /// For Erlang's own protocol, by which the sandbox gives its orders.
    erlang: ReservedPort,
}

impl Broker {
    /// Describes a new broker: on free ports, without TLS.
    pub fn builder() -> BrokerBuilder {
        BrokerBuilder::default()
    }

    /// The node's name, another one for each broker: `sandbox-4fK2…@localhost`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Always `127.0.0.1`.
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// The port for AMQP, which stays the same as long as the broker lives, whether it runs or not.
    pub fn port(&self) -> u16 {
        self.ports.amqp.number()
    }

    /// The port for AMQP in TLS, if the broker was [built](BrokerBuilder::tls) to have one.
    pub fn tls_port(&self) -> Option<u16> {
        self.ports.tls.as_ref().map(ReservedPort::number)
    }

    /// The `amqp` URL of the virtual host `/`, for a user who may do everything. It contains the password.
    pub fn url(&self) -> String {
        self.route.url_at("amqp", self.port())
    }

    /// The same in TLS, with the scheme `amqps`. The client must trust
    /// [`ca_certificate`](Self::ca_certificate).
    ///
    /// # Panics
    ///
    /// When the broker was not [built](BrokerBuilder::tls) to have TLS.
    pub fn tls_url(&self) -> String {
        let port = self.tls_port().expect("the broker was built with `tls(true)`");
        self.route.url_at("amqps", port)
    }

    /// The authority that signed the certificate of the TLS port, in PEM, made for this broker alone.
    /// `None` without TLS.
    pub fn ca_certificate(&self) -> Option<&str> {
        self.files.ca_certificate()
    }

    /// The file that holds [`ca_certificate`](Self::ca_certificate).
    pub fn ca_certificate_path(&self) -> Option<PathBuf> {
        self.ca_certificate().map(|_| self.files.ca_certificate_path())
    }

    /// The folder with the broker's data and log.
    pub fn folder(&self) -> &Path {
        self.root.path()
    }

    /// The broker's log.
    pub fn log_path(&self) -> &Path {
        self.files.log()
    }

    /// The last lines of the broker's log.
    pub fn log_tail(&self, lines: usize) -> String {
        logfile::tail(self.log_path(), lines)
    }

    /// A new proxy in front of the port for AMQP.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub async fn proxy(&self) -> Result<Proxy<BrokerRoute>, SandboxError> {
        self.proxy_of("amqp", self.port())
    }

    /// A new proxy in front of the port for AMQP in TLS.
    ///
    /// # Panics
    ///
    /// When the broker was not [built](BrokerBuilder::tls) to have TLS.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub async fn tls_proxy(&self) -> Result<Proxy<BrokerRoute>, SandboxError> {
        let port = self.tls_port().expect("the broker was built with `tls(true)`");
        self.proxy_of("amqps", port)
    }

    fn proxy_of(&self, scheme: &'static str, port: u16) -> Result<Proxy<BrokerRoute>, SandboxError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Proxy::start(self.route.clone().with_scheme(scheme), self.name(), address)
    }
}
