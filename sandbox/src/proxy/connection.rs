//! One connection through the proxy.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::{Mode, Order};

/// As much as is read at a time.
const CHUNK: usize = 32 * 1024;

/// How many chunks may be under way in one direction. Senders wait beyond that, as with a full window.
const UNDER_WAY: usize = 1024;

/// Serves one client until either side closes, or the proxy's orders end it.
pub(super) async fn serve(
    mut client: TcpStream,
    target: SocketAddr,
    mut orders: watch::Receiver<Order>,
    bytes: Arc<AtomicU64>,
) -> io::Result<()> {
    let mut server = None;
    let start = *orders.borrow();
    let path = Path {
        orders: orders.clone(),
        interruptions: start.interruptions,
        bytes: &bytes,
    };
    let forwarding = async {
        let server = server.insert(TcpStream::connect(target).await?);
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
        tokio::try_join!(
            path.carry(from_client, to_server),
            path.carry(from_server, to_client)
        )?;
        Ok(())
    };
    let interrupted = |order: &Order| !order.mode.forwards() || order.interruptions != start.interruptions;
    let order = tokio::select! {
        biased;
        order = orders.wait_for(interrupted) => order.map_or(start, |order| *order),
        ended = forwarding => return ended,
    };

    // Unless this is a black hole, both sides are closed now. In a black hole nobody learns anything.
    tokio::select! {
        _ = orders.wait_for(|latest| order.mode != Mode::Swallow || latest.number != order.number) => {}
        () = swallow(Some(&mut client)) => {}
        () = swallow(server.as_mut()) => {}
    }
    Ok(())
}

/// Both directions' way through the proxy.
struct Path<'a> {
    orders: watch::Receiver<Order>,
    /// As many as there were when the connection began.
    interruptions: u64,
    bytes: &'a AtomicU64,
}

impl Path<'_> {
    /// Carries bytes in one direction until there are no more.
    async fn carry(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<()> {
        let (sender, mut under_way) = mpsc::channel(UNDER_WAY);
        let send = async move {
            let mut buffer = vec![0; CHUNK];
            let mut due = Instant::now();
            loop {
                let length = from.read(&mut buffer).await?;
                // Not before what was sent earlier, even if the latency is shorter now.
                due = due.max(Instant::now() + self.latency());
                let delivered = sender.send((due, buffer[..length].to_vec())).await;
                if length == 0 || delivered.is_err() {
                    return io::Result::Ok(());
                }
            }
        };
        let deliver = async {
            while let Some((due, chunk)) = under_way.recv().await {
                if due > Instant::now() {
                    sleep_until(due).await;
                }
                self.stop_if_interrupted().await;
                if chunk.is_empty() {
                    // The end of the stream takes as long as what came before it.
                    return to.shutdown().await;
                }
                to.write_all(&chunk).await?;
                self.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            }
            Ok(())
        };
        tokio::try_join!(send, deliver).map(drop)
    }

    fn latency(&self) -> Duration {
        match self.orders.borrow().mode {
            Mode::Forward(latency) => latency,
            Mode::Cut | Mode::Swallow => Duration::ZERO,
        }
    }

    /// An order is in effect from the moment it is given, even if the task has not been told yet.
    async fn stop_if_interrupted(&self) {
        if self.orders.borrow().interruptions != self.interruptions {
            std::future::pending::<()>().await;
        }
    }
}

/// Reads and forgets. Does not return at the end of the stream: nobody learns of that either.
async fn swallow(stream: Option<&mut TcpStream>) {
    if let Some(stream) = stream {
        let mut buffer = vec![0; CHUNK];
        while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
    }
    std::future::pending::<()>().await;
}
