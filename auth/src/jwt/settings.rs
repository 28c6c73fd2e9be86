//! Whom to trust, and for what. Parsed once; refuses to know how keys are fetched.

use std::{fmt, net::IpAddr, path::PathBuf, str::FromStr, time::Duration};

use tenant_management::Role;
use url::{Host, Url};

/// An issuer of tokens, and what its tokens are good for.
#[derive(Clone, Debug)]
pub struct IssuerSettings {
    /// Its name, exactly as its tokens have it in `iss`.
    pub issuer: String,
    /// The names of this service, of which a token has to have one in `aud`. At least one.
    pub audiences: Vec<String>,
    /// Where its keys are.
    pub keys: KeySource,
    /// How it may sign.
    pub algorithms: Vec<Algorithm>,
    /// How far its clock may be off.
    pub leeway: Duration,
    /// The claim that says which tenants a token is good for: a tenant's id or uuid, or a list of them.
    pub tenant_claim: String,
    /// The claim that says what a token may do: `viewer`, `member` or `admin`.
    pub role_claim: String,
    /// What a token may do that does not say; `None` refuses it.
    pub default_role: Option<Role>,
    /// How often its keys are fetched.
    pub refresh_interval: Duration,
}

/// Where an issuer's keys are, as a JWK set (RFC 7517, section 5).
#[derive(Clone, Debug)]
pub enum KeySource {
    /// A file, which is read again and again.
    File(PathBuf),
    /// An address.
    Url(KeyAddress),
}

/// The address of a JWK set. Only over TLS: whoever can change the keys on the way can make tokens. On this machine itself,
/// plain HTTP will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAddress(pub(super) Url);

/// The text is no [`KeyAddress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be an address such as \"https://login.example.com/.well-known/jwks.json\"; http:// only on this machine itself"
)]
pub struct InvalidKeyAddress;

impl FromStr for KeyAddress {
    type Err = InvalidKeyAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url: Url = text.parse().map_err(|_| InvalidKeyAddress)?;
        let here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
            None => false,
        };
        match url.scheme() {
            "https" => Ok(Self(url)),
            "http" if here => Ok(Self(url)),
            _ => Err(InvalidKeyAddress),
        }
    }
}

/// How a token may be signed: with a key of which only the issuer has the secret half. `none`, and HMAC, for which this service
/// would have to have the secret, do not exist here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256, for keys of 2,048 bits and more.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

/// The text is no [`Algorithm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be \"RS256\", \"ES256\" or \"EdDSA\"")]
pub struct UnknownAlgorithm;

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// The one that a token's header names, if it is one of these.
    pub(super) const fn from_header(algorithm: jsonwebtoken::Algorithm) -> Option<Self> {
        match algorithm {
            jsonwebtoken::Algorithm::RS256 => Some(Self::Rs256),
            jsonwebtoken::Algorithm::ES256 => Some(Self::Es256),
            jsonwebtoken::Algorithm::EdDSA => Some(Self::EdDsa),
            _ => None,
        }
    }

    /// Its name (RFC 7518, section 3.1; RFC 8037, section 3.1).
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == text);
        found.ok_or(UnknownAlgorithm)
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(KeyAddress(url)) => url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_tls_or_from_this_machine() {
        for good in [
            "https://login.example.com/jwks",
            "http://127.0.0.1:8080/jwks",
            "http://[::1]/jwks",
            "http://localhost/jwks",
        ] {
            assert!(good.parse::<KeyAddress>().is_ok(), "{good}");
        }
        for bad in [
            "http://login.example.com/jwks",
            "http://localhost.example.com/jwks",
            "file:///etc/passwd",
            "login.example.com",
            "",
        ] {
            assert_eq!(bad.parse::<KeyAddress>(), Err(InvalidKeyAddress), "{bad}");
        }
    }

    #[test]
    fn no_algorithm_works_with_a_shared_secret() {
        for name in ["none", "HS256", "HS384", "HS512", "PS256", "rs256", ""] {
            assert_eq!(name.parse::<Algorithm>(), Err(UnknownAlgorithm), "{name}");
        }
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.as_str().parse(), Ok(algorithm));
        }
    }
}
