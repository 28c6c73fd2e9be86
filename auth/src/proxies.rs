//! Where a request comes from when proxies stand in between: they are believed only when the configuration names them.
//!
//! A proxy says whom it speaks for by `X-Forwarded-For` and what they asked for by `X-Forwarded-Host`, and so can anybody else.
//! `Forwarded` (RFC 7239) is not read: a proxy that writes one header and passes the client's other on would be believed too much.
//! Refuses to know who the client is.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::extract::ConnectInfo;
use http::{Extensions, HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Proxies that are believed. A clone is cheap.
#[derive(Clone, Debug)]
pub struct TrustedProxies(Arc<[IpNet]>);

/// The text names no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an address such as \"10.0.0.7\" or a network such as \"10.0.0.0/8\"")]
pub struct InvalidNetwork;

/// The address of a request's client, as far as it can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(IpAddr);

/// A request that a trusted proxy has passed on: what it says about the request before may be believed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThroughProxy;

impl TrustedProxies {
    /// Believes nobody.
    pub fn none() -> Self {
        Self(Arc::from([]))
    }

    /// Believes these networks.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().collect())
    }

    /// A network, or a single address.
    ///
    /// # Errors
    ///
    /// When the text is neither.
    pub fn network(text: &str) -> Result<IpNet, InvalidNetwork> {
        text.parse::<IpNet>()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
            .map_err(|_| InvalidNetwork)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Notes in a request's extensions where it comes from. The listener has noted its peer there, as [`ConnectInfo`]; without
    /// that nothing is known.
    pub fn note(&self, headers: &HeaderMap, extensions: &mut Extensions) {
        let Some(ConnectInfo(peer)) = extensions.get::<ConnectInfo<SocketAddr>>() else {
            return;
        };
        let peer = peer.ip().to_canonical();
        if self.trusts(peer) {
            extensions.insert(ThroughProxy);
            extensions.insert(ClientAddress(self.client_behind(peer, headers)));
        } else {
            extensions.insert(ClientAddress(peer));
        }
    }

    /// The last address that somebody who is believed has written down: each proxy adds the one that it was asked by at the end,
    /// so the list is read from there, as long as it speaks of trusted proxies.
    fn client_behind(&self, proxy: IpAddr, headers: &HeaderMap) -> IpAddr {
        let values: Vec<&str> = headers
            .get_all(FORWARDED_FOR)
            .iter()
            .map(|value| value.to_str().unwrap_or_default())
            .collect();
        let mut client = proxy;
        for entry in values.iter().rev().flat_map(|value| value.rsplit(',')) {
            let Some(address) = address(entry.trim()) else {
                break;
            };
            client = address;
            if !self.trusts(address) {
                break;
            }
        }
        client
    }
}

impl ClientAddress {
    /// The address of a request's client, when it is known.
    pub fn of(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Self>().map(|address| address.0)
    }
}

/// An address, which some proxies write with a port.
fn address(text: &str) -> Option<IpAddr> {
    let parsed = text
        .parse::<IpAddr>()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    parsed.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> (String, bool) {
        let proxies =
            TrustedProxies::new(["10.0.0.0/8", "::1"].map(|it| TrustedProxies::network(it).unwrap()));
        let (mut headers, mut extensions) = (HeaderMap::new(), Extensions::new());
        for value in forwarded {
            headers.append(FORWARDED_FOR, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let peer: IpAddr = peer.parse().unwrap();
        extensions.insert(ConnectInfo(SocketAddr::new(peer, 4000)));
        proxies.note(&headers, &mut extensions);
        let client = ClientAddress::of(&extensions).unwrap();
        (client.to_string(), extensions.get::<ThroughProxy>().is_some())
    }

    #[test]
    fn nobody_but_a_trusted_proxy_is_believed() {
        for forwarded in [&[][..], &["192.0.2.1"], &["10.0.0.1"], &["192.0.2.1, 10.0.0.1"]] {
            assert_eq!(
                client("203.0.113.9", forwarded),
                ("203.0.113.9".to_owned(), false)
            );
        }
    }

    #[test]
    fn behind_trusted_proxies_the_last_stranger_is_the_client() {
        for (forwarded, expected) in [
            (&[][..], "10.0.0.1"),
            (&["192.0.2.1"], "192.0.2.1"),
            (&["6.6.6.6, 192.0.2.1"], "192.0.2.1"),
            (&["6.6.6.6, 192.0.2.1, 10.9.9.9"], "192.0.2.1"),
            (&["6.6.6.6", "192.0.2.1,10.9.9.9"], "192.0.2.1"),
            (&["192.0.2.1:4711"], "192.0.2.1"),
            (&["[2001:db8::1]:80"], "2001:db8::1"),
            (&["::ffff:192.0.2.1"], "192.0.2.1"),
            (&["6.6.6.6, nonsense"], "10.0.0.1"),
            (&["6.6.6.6, nonsense, 10.9.9.9"], "10.9.9.9"),
            (&["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
            (&["ä"], "10.0.0.1"),
        ] {
            assert_eq!(
                client("10.0.0.1", forwarded),
                (expected.to_owned(), true),
                "{forwarded:?}"
            );
        }
        assert_eq!(client("::ffff:10.0.0.1", &["192.0.2.1"]).0, "192.0.2.1");
    }

    #[test]
    fn without_a_peer_nothing_is_known() {
        let (headers, mut extensions) = (HeaderMap::new(), Extensions::new());
        TrustedProxies::none().note(&headers, &mut extensions);
        assert_eq!(ClientAddress::of(&extensions), None);
        for text in ["", "10.0.0.0/33", "example.com", "10.0.0"] {
            assert_eq!(TrustedProxies::network(text), Err(InvalidNetwork), "{text}");
        }
    }
}
