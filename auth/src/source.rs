//! Where a request comes from, for audit trails. Refuses to know who sent it.

use std::net::IpAddr;

use http::{HeaderName, request::Parts};
use tenant_management::Actor;

use crate::{caller::Principal, proxies::ClientAddress};

/// The header by which a layer around the service names each request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Where a request comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestSource {
    /// The client's address, as far as it is known.
    pub address: Option<IpAddr>,
    /// The request's id, if a layer has given it one.
    pub request_id: Option<String>,
}

impl RequestSource {
    /// Where the request comes from.
    pub fn of(parts: &Parts) -> Self {
        let request_id = parts.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        Self {
            address: ClientAddress::of(&parts.extensions),
            request_id: request_id.map(str::to_owned),
        }
    }

    /// Somebody who acts by this request, as the audit trail wants it.
    pub fn actor(&self, principal: &Principal) -> Actor {
        Actor {
            name: principal.to_string(),
            ..self.unknown_actor()
        }
    }

    /// Whoever acts by this request, before it is known who that is.
    pub(crate) fn unknown_actor(&self) -> Actor {
        Actor {
            name: "unknown".to_owned(),
            request_id: self.request_id.clone(),
            address: self.address,
        }
    }
}
