//! Where a request comes from.

use std::net::IpAddr;

use http::Extensions;

/// The address of a request's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// The client's address, when a layer has found it out.
    pub fn of(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Self>().map(|address| address.0)
    }
}
