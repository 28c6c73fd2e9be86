//! Ports on loopback that stay ours.
//!
//! A number that was free a moment ago is not free for long on a machine where many tests run: while
//! a server is stopped, the kernel may give its port to any outgoing connection. A socket that is
//! bound but does not listen prevents that, and does not stand in the server's way: with
//! `SO_REUSEADDR` on both sides, which PostgreSQL sets, Linux lets a second socket bind and listen.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

use crate::error::{Doing, SandboxError};

/// A port that nobody else is given for as long as this value lives.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    number: u16,
    _holder: TcpSocket,
}

impl ReservedPort {
    /// The port of a node: the one its number gives it, counted from `first`, if there is a `first`;
    /// otherwise the one it had before, when that is still free; otherwise a free one.
    pub(crate) fn for_node(
        first: Option<u16>,
        node: &str,
        remembered: Option<u16>,
    ) -> Result<Self, SandboxError> {
        if let Some(first) = first {
            let number = node
                .rsplit_once('-')
                .map_or(0, |(_, number)| number.parse().unwrap_or(0));
            let port = first.saturating_add(number);
            return Self::exactly(port).map_err(|_| SandboxError::PortTaken { port });
        }
        let kept = remembered.and_then(|port| Self::exactly(port).ok());
        kept.map_or_else(Self::any, Ok)
            .doing(|| format!("reserve a port for {node}"))
    }

    /// A port of the kernel's choice.
    pub(crate) fn any() -> io::Result<Self> {
        Self::exactly(0)
    }

    /// This port, or an error when a server listens on it.
    pub(crate) fn exactly(number: u16) -> io::Result<Self> {
        let holder = TcpSocket::new_v4()?;
        holder.set_reuseaddr(true)?;
        holder.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, number)))?;
        Ok(Self {
            number: holder.local_addr()?.port(),
            _holder: holder,
        })
    }

    /// The port's number.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_refuses_connections_and_lets_a_server_in() {
        let port = ReservedPort::any().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number()));
        assert!(std::net::TcpStream::connect(address).is_err());

        // The standard library's listener sets SO_REUSEADDR, as PostgreSQL does.
        let _server = std::net::TcpListener::bind(address).unwrap();
        assert!(std::net::TcpStream::connect(address).is_ok());
        assert!(
            ReservedPort::exactly(port.number()).is_err(),
            "a port with a server is not free"
        );
    }
}
