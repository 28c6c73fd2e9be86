//! The URL of a broker, whichever port leads there.

use secrecy::{ExposeSecret, SecretString};

use crate::proxy::Proxy;

/// Who one is to a broker: scheme, user and password of its URLs. What a [`Proxy`] of a
/// [`Broker`](crate::Broker) knows about it.
#[derive(Clone, Debug)]
pub struct BrokerRoute {
    scheme: &'static str,
    user: &'static str,
    password: SecretString,
}

impl BrokerRoute {
    pub(super) fn new(user: &'static str, password: SecretString) -> Self {
        Self {
            scheme: "amqp",
            user,
            password,
        }
    }

    pub(super) fn with_scheme(self, scheme: &'static str) -> Self {
        Self { scheme, ..self }
    }

    pub(super) fn user(&self) -> &str {
        self.user
    }

    pub(super) fn password(&self) -> &SecretString {
        &self.password
    }

    /// Letters and digits need no encoding; `%2f` is the virtual host `/`.
    pub(super) fn url_at(&self, scheme: &str, port: u16) -> String {
        let Self { user, password, .. } = self;
        format!(
            "{scheme}://{user}:{}@127.0.0.1:{port}/%2f",
            password.expose_secret()
        )
    }
}

impl Proxy<BrokerRoute> {
    /// As [`Broker::url`](crate::Broker::url), or [`Broker::tls_url`](crate::Broker::tls_url) if this is
    /// in front of the TLS port, by way of this proxy.
    pub fn url(&self) -> String {
        let route = self.server();
        route.url_at(route.scheme, self.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_the_virtual_host_and_debugging_hides_the_password() {
        let route = BrokerRoute::new("sandbox", "hidden".to_owned().into());
        assert_eq!(
            route.url_at("amqp", 5672),
            "amqp://sandbox:hidden@127.0.0.1:5672/%2f"
        );
        assert!(!format!("{route:?}").contains("hidden"));
    }
}
