//! The proxy's background task: accepts connections, and owns the tasks that serve them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Mode, Order, Status, connection};
use crate::port::ReservedPort;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Everything the background task works with.
pub(super) struct Task {
    /// Keeps the port ours while nobody listens on it.
    pub(super) port: ReservedPort,
    pub(super) target: SocketAddr,
    pub(super) orders: watch::Receiver<Order>,
    pub(super) status: watch::Sender<Status>,
    pub(super) bytes: Arc<AtomicU64>,
}

/// Listens on a port that is reserved.
pub(super) fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    socket.listen(BACKLOG)
}

impl Task {
    /// Runs until the proxy is dropped; its connections end with it.
    pub(super) async fn run(mut self, listener: TcpListener) {
        let mut listener = Some(listener);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Ok(()) = self.orders.changed() => {
                    let order = *self.orders.borrow_and_update();
                    listener = self.obey(order.mode, listener);
                    self.status.send_modify(|status| status.order = order.number);
                }
                client = accept(listener.as_ref()) => {
                    let (orders, bytes) = (self.orders.clone(), self.bytes.clone());
                    connections.spawn(connection::serve(client, self.target, orders, bytes));
                }
                Some(ended) = connections.join_next() => {
                    if let Ok(Err(error)) = ended {
                        tracing::debug!(%error, "A connection through a proxy broke.");
                    }
                }
                else => return,
            }
            self.status
                .send_modify(|status| status.connections = connections.len());
        }
    }

    /// Listens, or does not.
    fn obey(&self, mode: Mode, listener: Option<TcpListener>) -> Option<TcpListener> {
        match (mode, listener) {
            (Mode::Cut, _) => None,
            (_, Some(listener)) => Some(listener),
            (_, None) => listen(self.port.number())
                .inspect_err(|error| tracing::warn!(%error, "A proxy cannot listen again."))
                .ok(),
        }
    }
}

/// The next client; never one while nobody listens.
async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    loop {
        match listener.accept().await {
            Ok((client, _)) => return client,
            // Too many open files, for example: others may be closed meanwhile.
            Err(error) => {
                tracing::warn!(%error, "A proxy could not accept a connection.");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
