//! A TCP proxy in front of a server, which can misbehave as networks do.
//!
//! Owns its port and its connections. Refuses to know any protocol: it moves bytes. What is behind it
//! only matters for the URLs that lead there.

mod connection;
mod listener;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::error::{Doing, SandboxError};
use crate::node::Node;
use crate::port::ReservedPort;

/// A TCP proxy in front of a [`Node`], a [`Broker`](crate::Broker) or any other server. Its port stays
/// the same as long as it lives; dropping it closes its connections.
///
/// It forwards until it is told otherwise. Each of [`cut`](Self::cut), [`black_hole`](Self::black_hole),
/// [`delay`](Self::delay) and [`restore`](Self::restore) replaces what was in effect before, and has
/// taken effect when it returns.
#[derive(Debug)]
pub struct Proxy<S = Node> {
    server: S,
    port: u16,
    orders: watch::Sender<Order>,
    status: watch::Receiver<Status>,
    bytes: Arc<AtomicU64>,
    _task: AbortOnDropHandle<()>,
}

/// What the proxy does with bytes and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Bytes arrive, after this time.
    Forward(Duration),
    /// Nobody gets in, and nobody stays.
    Cut,
    /// Everybody gets in, and nothing gets out.
    Swallow,
}

impl Mode {
    fn forwards(self) -> bool {
        matches!(self, Self::Forward(_))
    }
}

/// What is in effect since when.
#[derive(Clone, Copy, Debug)]
struct Order {
    mode: Mode,
    /// Counts all orders.
    number: u64,
    /// Counts the orders to stop forwarding. A connection for which this has grown has lost bytes, even
    /// if it has slept through the interruption.
    interruptions: u64,
}

/// What the background task reports.
#[derive(Clone, Copy, Debug, Default)]
struct Status {
    /// The latest order that is in effect.
    order: u64,
    /// How many connections are open.
    connections: usize,
}

impl Proxy<SocketAddr> {
    /// A new proxy in front of whatever listens at this address, now or later.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub async fn before(address: SocketAddr) -> Result<Self, SandboxError> {
        Self::start(address, &address.to_string(), address)
    }
}

impl Proxy {
    /// As [`Node::url`], by way of this proxy.
    pub fn url(&self, database: &str) -> String {
        self.server.url_at(self.port, database)
    }

    /// As [`Node::connect_options`], by way of this proxy.
    pub fn connect_options(&self, database: &str) -> PgConnectOptions {
        self.server.connect_options(database).port(self.port)
    }
}

impl<S> Proxy<S> {
    pub(crate) fn start(server: S, name: &str, target: SocketAddr) -> Result<Self, SandboxError> {
        let port = ReservedPort::any().doing(|| format!("reserve a port for a proxy of {name}"))?;
        let number = port.number();
        let listener = listener::listen(number).doing(|| format!("listen on port {number}"))?;

        let first = Order {
            mode: Mode::Forward(Duration::ZERO),
            number: 0,
            interruptions: 0,
        };
        let (orders, order_receiver) = watch::channel(first);
        let (status_sender, status) = watch::channel(Status::default());
        let bytes = Arc::new(AtomicU64::new(0));
        let task = listener::Task {
            port,
            target,
            orders: order_receiver,
            status: status_sender,
            bytes: bytes.clone(),
        };
        let span = tracing::debug_span!("proxy", server = name, port = number);
        // Owned by the proxy, and ended with it; it has nothing to finish.
        let task = AbortOnDropHandle::new(tokio::spawn(task.run(listener).instrument(span)));
        Ok(Self {
            server,
            port: number,
            orders,
            status,
            bytes,
            _task: task,
        })
    }

    /// The proxy's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What is behind the proxy.
    pub(crate) fn server(&self) -> &S {
        &self.server
    }

    /// Closes all connections, and refuses new ones: as when a machine goes down.
    pub async fn cut(&self) {
        let order = self.switch(Mode::Cut).await;
        self.await_status(|status| status.connections == 0 || status.order > order)
            .await;
    }

    /// Accepts connections and bytes, and forwards nothing: as when packets are lost. Connections that
    /// live through this have lost bytes, and are closed by the next change.
    pub async fn black_hole(&self) {
        self.switch(Mode::Swallow).await;
    }

    /// Adds this latency in each direction. The order is kept, and bytes do not wait for those before
    /// them to arrive: requests that are sent without waiting for answers take the latency once.
    pub async fn delay(&self, latency: Duration) {
        self.switch(Mode::Forward(latency)).await;
    }

    /// Forwards again, without delay.
    pub async fn restore(&self) {
        self.switch(Mode::Forward(Duration::ZERO)).await;
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.status.borrow().connections
    }

    /// How many bytes were forwarded so far, both directions together.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Gives an order, and waits until it, or a later one, is in effect.
    async fn switch(&self, mode: Mode) -> u64 {
        let mut number = 0;
        self.orders.send_modify(|order| {
            order.mode = mode;
            order.number += 1;
            order.interruptions += u64::from(!mode.forwards());
            number = order.number;
        });
        self.await_status(|status| status.order >= number).await;
        number
    }

    async fn await_status(&self, condition: impl FnMut(&Status) -> bool) {
        // An error means that the task ended with its runtime: then nothing is forwarded at all.
        let _ = self.status.clone().wait_for(condition).await;
    }
}
