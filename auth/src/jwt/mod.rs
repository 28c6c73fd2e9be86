//! JSON Web Tokens (RFC 7519) of issuers that the configuration trusts.
//!
//! [`settings`] say whom to trust and for what, [`source`] fetches an issuer's keys, [`keys`] keeps those that may verify
//! something, [`claims`] reads what a token says. A token says itself only which issuer and which of its keys to try; everything
//! else counts once the signature has been verified. Refuses to know which tenants exist and what a role may do.

mod claims;
mod keys;
mod settings;
mod source;

use std::{fmt, sync::Arc};

use chrono::{DateTime, Utc};
use jsonwebtoken::{Header, Validation};
use serde::Deserialize;
use tenant_management::{Role, tasks::TaskGroup};

pub use self::{
    claims::{Subject, TenantRef},
    settings::{Algorithm, IssuerSettings, KeyAddress, KeySource},
    source::JwksError,
};
use self::{keys::Keys, source::KeyCache};

/// Longest token in bytes, which is more than any issuer makes and little enough to decode for anybody.
const MAX_LENGTH: usize = 8 * 1024;
/// Longest id of a key in bytes.
const MAX_KEY_ID: usize = 256;

/// The issuers that are trusted. A clone is cheap.
#[derive(Clone)]
pub struct Issuers(Arc<[Issuer]>);

struct Issuer {
    settings: IssuerSettings,
    name: Arc<str>,
    cache: KeyCache,
}

/// What a token says, after everything about it has been verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    /// Who made it.
    pub issuer: Arc<str>,
    /// Whom it is about.
    pub subject: Subject,
    /// The tenants that it is good for.
    pub tenants: Vec<TenantRef>,
    /// What it may do there.
    pub role: Role,
    /// From then on it is refused.
    pub expires_at: DateTime<Utc>,
}

/// Why a token is refused. No text repeats anything of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefused {
    /// It is no token, or one that is too long or asks for what is not supported.
    #[error("the token is malformed")]
    Malformed,
    /// No issuer of this name is trusted.
    #[error("the token's issuer is not trusted")]
    UnknownIssuer,
    /// The issuer may not sign in this way.
    #[error("the token's algorithm is not accepted from its issuer")]
    WrongAlgorithm,
    /// The issuer has no such key.
    #[error("the token's key is not one of its issuer's")]
    UnknownKey,
    /// Somebody else made it, or changed it.
    #[error("the token's signature is wrong")]
    BadSignature,
    /// It is for another service.
    #[error("the token is for another audience")]
    WrongAudience,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not good yet")]
    NotYet,
    /// A claim is missing or is not what it should be.
    #[error("the token's claim {0} is missing or not as it should be")]
    Claim(&'static str),
    /// The issuer's keys could not be fetched yet.
    #[error("the keys of the token's issuer are not known at the moment")]
    KeysUnavailable,
}

/// Whether a credential has the form of a token: three parts in base64url.
pub fn looks_like_jwt(credential: &str) -> bool {
    let mut parts = 0;
    credential.split('.').all(|part| {
        parts += 1;
        let base64url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        part.bytes().all(base64url)
    }) && parts == 3
}

/// The one claim that counts before the signature is verified: it chooses the keys to verify with.
#[derive(Deserialize)]
struct ClaimedIssuer {
    iss: String,
}

impl Issuers {
    /// Trusts nobody.
    pub fn none() -> Self {
        Self(Arc::from([]))
    }

    /// Trusts these issuers, and begins to keep their keys up to date. An address that cannot be reached is tried again and
    /// again; a file has to be there.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or holds no key that may verify a token.
    pub async fn start(settings: Vec<IssuerSettings>, tasks: &TaskGroup) -> Result<Self, JwksError> {
        let mut issuers = Vec::new();
        for settings in settings {
            issuers.push(Issuer {
                name: settings.issuer.as_str().into(),
                cache: KeyCache::start(&settings, tasks).await?,
                settings,
            });
        }
        Ok(Self(issuers.into()))
    }

    /// Verifies a token: who made it, for whom, until when.
    pub async fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<VerifiedToken, TokenRefused> {
        if token.len() > MAX_LENGTH || !looks_like_jwt(token) {
            return Err(TokenRefused::Malformed);
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| TokenRefused::Malformed)?;
        let claimed = jsonwebtoken::dangerous::insecure_decode_claims::<ClaimedIssuer>(token);
        let claimed = claimed.map_err(|_| TokenRefused::Claim("iss"))?;
        let issuer = self
            .0
            .iter()
            .find(|issuer| *issuer.name == *claimed.iss)
            .ok_or(TokenRefused::UnknownIssuer)?;
        issuer.verify(token, &header, now).await
    }
}

impl Issuer {
    async fn verify(
        &self,
        token: &str,
        header: &Header,
        now: DateTime<Utc>,
    ) -> Result<VerifiedToken, TokenRefused> {
        let algorithm = Algorithm::from_header(header.alg).filter(|it| self.settings.algorithms.contains(it));
        let algorithm = algorithm.ok_or(TokenRefused::WrongAlgorithm)?;
        if header.kid.as_ref().is_some_and(|id| id.len() > MAX_KEY_ID) {
            return Err(TokenRefused::UnknownKey);
        }
        let keys = self.keys_with(header.kid.as_deref(), algorithm).await?;
        let key = keys
            .find(header.kid.as_deref(), algorithm)
            .ok_or(TokenRefused::UnknownKey)?;
        let mut validation = Validation::new(header.alg);
        validation.set_audience(&self.settings.audiences);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // Against the clock that is passed in; see `claims`.
        validation.validate_exp = false;
        let decoded = jsonwebtoken::decode(token, key, &validation).map_err(|error| refused(error.kind()))?;
        claims::read(&decoded.claims, &self.settings, &self.name, now)
    }

    /// The issuer's keys, fetched anew when the wanted one is not among them: it may have been added since.
    async fn keys_with(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Arc<Keys>, TokenRefused> {
        let known = self.cache.keys();
        if known
            .as_ref()
            .is_some_and(|keys| keys.find(id, algorithm).is_some())
        {
            return Ok(known.expect("it has just been looked at"));
        }
        self.cache.refresh_for_unknown_key().await;
        self.cache.keys().ok_or(TokenRefused::KeysUnavailable)
    }
}

fn refused(kind: &jsonwebtoken::errors::ErrorKind) -> TokenRefused {
    use jsonwebtoken::errors::ErrorKind;
    match kind {
        ErrorKind::InvalidSignature => TokenRefused::BadSignature,
        ErrorKind::InvalidAudience => TokenRefused::WrongAudience,
        ErrorKind::InvalidIssuer => TokenRefused::UnknownIssuer,
        ErrorKind::MissingRequiredClaim(claim) => TokenRefused::Claim(match claim.as_str() {
            "exp" => "exp",
            "aud" => "aud",
            "sub" => "sub",
            _ => "iss",
        }),
        ErrorKind::InvalidAlgorithm => TokenRefused::WrongAlgorithm,
        _ => TokenRefused::Malformed,
    }
}

impl fmt::Debug for Issuers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|issuer| &issuer.name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_parts_in_base64url_look_like_a_token() {
        assert!(looks_like_jwt("eyJ.eyJ.c2ln") && looks_like_jwt("a-_.b.c") && looks_like_jwt(".."));
        for other in ["", "a.b", "a.b.c.d", "a.b.c=", "a b.c.d", "tnt_a_b_c", "ä.b.c"] {
            assert!(!looks_like_jwt(other), "{other}");
        }
    }
}
