//! Whose credential a request has, and for which tenants it is good. Refuses to know which tenant the request is for.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::request::Parts;
use tenant_management::{
    ApiKey, OperatorRole, OperatorToken, ResolveError, Role, Route, Tenancy, TenantId, TenantUuid,
};

use crate::{
    bearer,
    caller::Principal,
    error::{AuthError, CredentialFault},
    jwt::{self, TenantRef, TokenRefused},
    key::{KeyKind, PresentedKey},
    operator::OperatorName,
    refusal::Refusal,
    sessions,
    state::AuthState,
};

/// A credential that is good.
#[derive(Clone, Debug)]
pub(crate) struct Verified {
    pub(crate) principal: Principal,
    pub(crate) reach: Reach,
}

/// The tenants that a credential is good for, and what it may do there.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// Any tenant that the request names.
    Any(OperatorRole),
    /// This one, with its route when that is at hand.
    One(TenantUuid, Option<Arc<Route>>, Role),
    /// Each of these.
    Several(Vec<(TenantUuid, Role)>),
    /// Each of those that a token names, with the same role.
    Named(Vec<TenantRef>, Role),
}

impl Reach {
    /// The name of the tenant, when the credential leaves no choice and it is at hand.
    pub(crate) fn only_tenant(&self) -> Option<&TenantId> {
        match self {
            Self::One(_, route, _) => route.as_ref().map(|route| &route.tenant),
            Self::Any(_) | Self::Several(_) | Self::Named(..) => None,
        }
    }
}

/// The request's credential: the one in its `Authorization` header, or else its session. A request that has both is the
/// header's.
pub(crate) async fn verify(auth: &AuthState, parts: &Parts, now: DateTime<Utc>) -> Result<Verified, Refusal> {
    match bearer::token(&parts.headers) {
        Ok(token) => {
            if let Ok(presented) = PresentedKey::parse(KeyKind::Tenant, token) {
                return by_key(auth, &presented, now).await;
            }
            // What follows is rare and large: in boxes, it does not make the future of every request large.
            if let Some((name, role)) = Box::pin(operator(auth, token, now)).await? {
                return Ok(Verified {
                    principal: Principal::Operator(name),
                    reach: Reach::Any(role),
                });
            }
            if jwt::looks_like_jwt(token) {
                return Box::pin(by_jwt(auth, token, now)).await;
            }
            Err(CredentialFault::Malformed.into())
        }
        Err(CredentialFault::Missing) => {
            let (session, _) = Box::pin(sessions::of_request(auth, parts, now)).await?;
            Ok(Verified {
                principal: Principal::User(session.user),
                reach: Reach::Several(session.tenants().collect()),
            })
        }
        Err(fault) => Err(fault.into()),
    }
}

/// The operator whose token this is. `None`: it is no operator's.
pub(crate) async fn operator(
    auth: &AuthState,
    token: &str,
    now: DateTime<Utc>,
) -> Result<Option<(OperatorName, OperatorRole)>, Refusal> {
    if let Ok(presented) = PresentedKey::parse(KeyKind::Operator, token) {
        return registered_operator(&auth.tenancy, &presented, now)
            .await
            .map(Some);
    }
    let configured = auth.operators.identify(token);
    Ok(configured.map(|name| (name.clone(), OperatorRole::Write)))
}

async fn registered_operator(
    tenancy: &Tenancy,
    presented: &PresentedKey,
    now: DateTime<Utc>,
) -> Result<(OperatorName, OperatorRole), Refusal> {
    if !tenancy.may_believe_credentials() {
        return Err(AuthError::Unavailable.into());
    }
    let token = tenancy
        .operator_token(presented.id().as_str())
        .await
        .map_err(|_| AuthError::Unavailable)?
        .ok_or(CredentialFault::Unknown)?;
    let name = OperatorName::registered(&token.name);
    let OperatorToken {
        secret_sha256,
        revoked_at,
        expires_at,
        ..
    } = &*token;
    good(presented, secret_sha256, *revoked_at, *expires_at, now).map_err(|fault| match fault {
        // Whoever does not have the secret is somebody else.
        CredentialFault::Unknown => Refusal::from(fault),
        fault => Refusal::from(fault).of(Principal::Operator(name.clone()), None),
    })?;
    tenancy.trail().used(&token.id, now);
    Ok((name, token.role))
}

async fn by_key(auth: &AuthState, presented: &PresentedKey, now: DateTime<Utc>) -> Result<Verified, Refusal> {
    if !auth.tenancy.may_believe_credentials() {
        return Err(AuthError::Unavailable.into());
    }
    let key = auth.tenancy.api_key(presented.id().as_str()).await;
    let key = key.map_err(|error| match error {
        ResolveError::Unknown => AuthError::Unauthenticated(CredentialFault::Unknown),
        ResolveError::Unavailable(_) => AuthError::Unavailable,
    })?;
    let principal = Principal::ApiKey(*presented.id());
    let ApiKey {
        secret_sha256,
        revoked_at,
        expires_at,
        ..
    } = &*key;
    if let Err(fault) = good(presented, secret_sha256, *revoked_at, *expires_at, now) {
        return Err(match fault {
            CredentialFault::Unknown => fault.into(),
            fault => Refusal::from(fault).of(principal, Some(key.tenant)),
        });
    }
    auth.tenancy.trail().used(&key.id, now);
    let route = auth.tenancy.table().get_by_uuid(key.tenant);
    Ok(Verified {
        principal,
        reach: Reach::One(key.tenant, route, key.role),
    })
}

async fn by_jwt(auth: &AuthState, token: &str, now: DateTime<Utc>) -> Result<Verified, Refusal> {
    let token = auth.issuers.verify(token, now).await.map_err(|refused| {
        tracing::debug!(%refused, "A token is refused.");
        match refused {
            TokenRefused::KeysUnavailable => AuthError::Unavailable,
            TokenRefused::Malformed => AuthError::Unauthenticated(CredentialFault::Malformed),
            TokenRefused::Expired => AuthError::Unauthenticated(CredentialFault::Expired),
            TokenRefused::UnknownIssuer
            | TokenRefused::WrongAlgorithm
            | TokenRefused::UnknownKey
            | TokenRefused::BadSignature
            | TokenRefused::WrongAudience
            | TokenRefused::NotYet
            | TokenRefused::Claim(_) => AuthError::Unauthenticated(CredentialFault::Untrusted),
        }
    })?;
    Ok(Verified {
        principal: Principal::Token {
            issuer: token.issuer,
            subject: token.subject,
        },
        reach: Reach::Named(token.tenants, token.role),
    })
}

/// Whether a presented key is the catalog's, and still good at `now`. The secret comes first: without it nobody learns whether
/// a key was revoked.
fn good(
    presented: &PresentedKey,
    secret_sha256: &[u8; 32],
    revoked_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> Result<(), CredentialFault> {
    if !presented.matches(secret_sha256) {
        return Err(CredentialFault::Unknown);
    }
    if revoked_at.is_some() {
        return Err(CredentialFault::Revoked);
    }
    if expires_at.is_some_and(|end| end <= now) {
        return Err(CredentialFault::Expired);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use rand::{SeedableRng, rngs::StdRng};
    use secrecy::ExposeSecret;

    use super::*;
    use crate::key::GeneratedKey;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    fn generated() -> (PresentedKey, [u8; 32]) {
        let key = GeneratedKey::generate(KeyKind::Tenant, &mut StdRng::seed_from_u64(7));
        let presented = PresentedKey::parse(KeyKind::Tenant, key.plaintext.expose_secret());
        (presented.unwrap(), key.secret_sha256)
    }

    #[test]
    fn a_key_is_good_until_it_expires_or_is_revoked() {
        let (presented, stored) = generated();
        let verdict = |revoked, expires| good(&presented, &stored, revoked, expires, now());
        assert_eq!(verdict(None, None), Ok(()));
        assert_eq!(verdict(None, Some(now() + TimeDelta::milliseconds(1))), Ok(()));
        assert_eq!(verdict(None, Some(now())), Err(CredentialFault::Expired));
        assert_eq!(verdict(Some(now()), Some(now())), Err(CredentialFault::Revoked));
    }

    #[test]
    fn without_the_secret_nobody_learns_that_a_key_was_revoked() {
        let (presented, mut stored) = generated();
        stored[0] ^= 1;
        let verdict = good(&presented, &stored, Some(now()), Some(now()), now());
        assert_eq!(verdict, Err(CredentialFault::Unknown));
    }
}
