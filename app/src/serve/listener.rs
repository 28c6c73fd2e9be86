//! A listener and its connections: HTTP/1.1 over TCP, with bounds on slow clients, and an orderly end.
//!
//! Refuses to know what is answered.

use std::{net::SocketAddr, pin::pin, time::Duration};

use axum::{Router, body::Body, extract::ConnectInfo};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

/// How long to wait when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// A listener at work. Dropped, it and its connections end at once.
#[derive(Debug)]
pub(super) struct Listener {
    /// No more connections, and none for more than the request that is in flight on it.
    closing: CancellationToken,
    /// No more of anything.
    ending: CancellationToken,
    connections: TaskTracker,
}

impl Listener {
    /// Starts to answer. `alive` is held until the listener takes no more connections.
    pub(super) fn start(
        socket: TcpListener,
        router: Router,
        header_timeout: Duration,
        alive: mpsc::Sender<()>,
    ) -> Self {
        let connections = TaskTracker::new();
        let listener = Self {
            closing: CancellationToken::new(),
            ending: CancellationToken::new(),
            connections,
        };
        let accept = Accept {
            router,
            header_timeout,
            closing: listener.closing.clone(),
            ending: listener.ending.clone(),
            connections: listener.connections.clone(),
        };
        listener.connections.spawn(async move {
            accept.run(socket).await;
            drop(alive);
        });
        listener
    }

    /// Takes no more connections; requests in flight go on.
    pub(super) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits for requests in flight until the deadline, and ends those that are left.
    pub(super) async fn finish(self, deadline: Instant) {
        self.closing.cancel();
        self.connections.close();
        if tokio::time::timeout_at(deadline, self.connections.wait())
            .await
            .is_err()
        {
            let left = self.connections.len();
            tracing::warn!(
                http.connections = left,
                "Requests did not finish in time; their connections are closed."
            );
            self.ending.cancel();
            self.connections.wait().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.closing.cancel();
        self.ending.cancel();
    }
}

struct Accept {
    router: Router,
    header_timeout: Duration,
    closing: CancellationToken,
    ending: CancellationToken,
    connections: TaskTracker,
}

impl Accept {
    async fn run(&self, socket: TcpListener) {
        while let Some(accepted) = self.closing.run_until_cancelled(socket.accept()).await {
            match accepted {
                Ok((stream, peer)) => {
                    self.connections.spawn(
                        self.ending
                            .clone()
                            .run_until_cancelled_owned(self.connection(stream, peer)),
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, "A connection could not be accepted.");
                    tokio::time::sleep(NO_ROOM).await;
                }
            }
        }
    }

    /// Answers the requests of one connection. Only HTTP/1.1: HTTP/2 without TLS is rare, and what speaks it to browsers stands
    /// in front of this.
    fn connection(&self, stream: TcpStream, peer: SocketAddr) -> impl Future<Output = ()> + use<> {
        let service = self
            .router
            .clone()
            .map_request(move |request: http::Request<Incoming>| {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(ConnectInfo(peer));
                request
            });
        let (header_timeout, closing) = (self.header_timeout, self.closing.clone());
        async move {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "A connection does not take an option.");
            }
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(header_timeout)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = closing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                // Clients go away, are too slow or speak something else; none of it is the service's fault.
                tracing::debug!(%error, "A connection ended early.");
            }
        }
    }
}
