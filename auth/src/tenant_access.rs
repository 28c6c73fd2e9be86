//! The extractor for handlers that act in one tenant.
//!
//! The order of its decisions is part of the contract, since each refusal tells the caller that everything before it was in
//! order: the credential, the tenants that the request names, the tenant's state, the role.

use std::{fmt, marker::PhantomData, sync::Arc};

use axum::{
    extract::{FromRef, FromRequestParts},
    response::Response,
};
use chrono::{DateTime, Utc};
use http::request::Parts;
use tenant_management::{ApiKey, ResolveError, Role, Route, Session, TenantDb, TenantState};

use crate::{
    api_key::PresentedKey,
    bearer,
    caller::{CallerSlot, Principal},
    error::{AuthError, CredentialFault},
    naming::{Named, named},
    role::RequiredRole,
    state::AuthState,
};

/// The caller may act in one tenant, with at least the role `R`. Holds no database connection.
pub struct TenantAccess<R> {
    /// The right to reach the tenant's data.
    pub db: TenantDb,
    /// The tenant: its name, identity and place.
    pub route: Arc<Route>,
    /// Who acts.
    pub principal: Principal,
    /// What they may do.
    pub role: Role,
    required: PhantomData<R>,
}

impl<R> fmt::Debug for TenantAccess<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantAccess")
            .field("tenant", &self.route.tenant)
            .field("principal", &self.principal)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl<R, S> FromRequestParts<S> for TenantAccess<R>
where
    R: RequiredRole,
    AuthState: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let auth = AuthState::from_ref(state);
        authorise(&auth, parts, R::ROLE)
            .await
            .map_err(|error| auth.refuse(error))
    }
}

async fn authorise<R>(auth: &AuthState, parts: &Parts, needed: Role) -> Result<TenantAccess<R>, AuthError> {
    let token = bearer::token(&parts.headers).map_err(AuthError::Unauthenticated)?;
    let (principal, held, route) = match auth.operators.identify(token) {
        Some(operator) => {
            let principal = Principal::Operator(operator.clone());
            CallerSlot::note(&parts.extensions, &principal, None);
            (principal, Role::Admin, chosen_by_operator(auth, parts).await?)
        }
        None => by_key(auth, parts, token).await?,
    };
    admitted(route.state, &principal)?;
    if held < needed {
        return Err(AuthError::Forbidden { needed, held });
    }
    let session = parts.extensions.get::<Session>().cloned();
    let session = session.ok_or(AuthError::NoSession)?;
    let db = auth.tenancy.db(Arc::clone(&route), session).map_err(|error| {
        tracing::warn!(tenant.id = %route.tenant, %error, "A tenant's cluster is not known to this instance.");
        AuthError::Unavailable
    })?;
    Ok(TenantAccess {
        db,
        route,
        principal,
        role: held,
        required: PhantomData,
    })
}

/// The tenant of a valid key, with which everything that the request names agrees.
async fn by_key(
    auth: &AuthState,
    parts: &Parts,
    token: &str,
) -> Result<(Principal, Role, Arc<Route>), AuthError> {
    let unauthenticated = AuthError::Unauthenticated;
    let presented = PresentedKey::parse(token).map_err(|_| unauthenticated(CredentialFault::Malformed))?;
    let nowhere = |error| match error {
        ResolveError::Unknown => unauthenticated(CredentialFault::Unknown),
        ResolveError::Unavailable(_) => AuthError::Unavailable,
    };
    let key = auth
        .tenancy
        .api_key(presented.id().as_str())
        .await
        .map_err(nowhere)?;
    valid(&presented, &key, Utc::now()).map_err(unauthenticated)?;
    let route = auth.tenancy.resolve_uuid(key.tenant).await.map_err(nowhere)?;
    let principal = Principal::ApiKey(presented.id().clone());
    CallerSlot::note(&parts.extensions, &principal, Some(&route.tenant));
    if !named(parts, &auth.base_domain)?
        .iter()
        .all(|name| agrees(auth, name, &route))
    {
        return Err(AuthError::WrongTenant);
    }
    Ok((principal, key.role, route))
}

/// Whether a presented key is the catalog's, and still good at `now`. The secret comes first: without it nobody learns whether
/// a key was revoked.
fn valid(presented: &PresentedKey, key: &ApiKey, now: DateTime<Utc>) -> Result<(), CredentialFault> {
    if !presented.matches(&key.secret_sha256) {
        return Err(CredentialFault::Unknown);
    }
    if key.revoked_at.is_some() {
        return Err(CredentialFault::Revoked);
    }
    if key.expires_at.is_some_and(|end| end <= now) {
        return Err(CredentialFault::Expired);
    }
    Ok(())
}

/// Whether a name means the credential's tenant. Nothing is looked up: the answer is the same, and takes the same time, whether
/// or not another tenant exists, and a host that nobody has registered (an address inside a cluster, a load balancer's) costs the
/// catalog nothing and works without it. A registration that has not arrived here yet is missed for that moment; the credential
/// has the last word anyway.
fn agrees(auth: &AuthState, name: &Named, route: &Route) -> bool {
    match name {
        Named::Tenant(id) => *id == route.tenant,
        Named::Malformed => false,
        Named::Domain(domain) => auth
            .tenancy
            .table()
            .get_by_domain(domain)
            .is_none_or(|owner| owner.uuid == route.uuid),
    }
}

/// The one tenant that an operator's request names.
async fn chosen_by_operator(auth: &AuthState, parts: &Parts) -> Result<Arc<Route>, AuthError> {
    let mut chosen: Option<Arc<Route>> = None;
    for name in named(parts, &auth.base_domain)? {
        let found = match name {
            Named::Tenant(id) => auth.tenancy.resolve(&id).await,
            Named::Malformed => Err(ResolveError::Unknown),
            Named::Domain(domain) => match auth.tenancy.resolve_domain(&domain).await {
                Err(ResolveError::Unknown) => continue,
                found => found,
            },
        };
        let route = found.map_err(|error| match error {
            ResolveError::Unknown => AuthError::UnknownTenant,
            ResolveError::Unavailable(_) => AuthError::Unavailable,
        })?;
        if chosen.is_some_and(|other| other.uuid != route.uuid) {
            return Err(AuthError::WrongTenant);
        }
        chosen = Some(route);
    }
    chosen.ok_or(AuthError::TenantRequired)
}

/// Whether a tenant in this state serves anybody.
fn admitted(state: TenantState, principal: &Principal) -> Result<(), AuthError> {
    match state {
        TenantState::Created | TenantState::Moving => Ok(()),
        TenantState::Suspended => Err(AuthError::TenantSuspended),
        // Gone as far as its credentials are concerned; an operator hears that there is no such tenant.
        TenantState::Deleted | TenantState::InProgress | TenantState::Failed | TenantState::Purged => {
            Err(match principal {
                Principal::ApiKey(_) => AuthError::Unauthenticated(CredentialFault::Unknown),
                Principal::Operator(_) => AuthError::UnknownTenant,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use rand::{SeedableRng, rngs::StdRng};
    use secrecy::ExposeSecret;
    use tenant_management::{Revision, TenantUuid};

    use super::*;
    use crate::{api_key::GeneratedKey, operator::OperatorTokens};

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    fn generated() -> (PresentedKey, ApiKey) {
        let key = GeneratedKey::generate(&mut StdRng::seed_from_u64(7));
        let stored = ApiKey {
            id: key.id.to_string(),
            tenant: TenantUuid::generate(),
            name: "test".into(),
            role: Role::Member,
            secret_sha256: key.secret_sha256,
            created_at: now() - TimeDelta::days(1),
            expires_at: None,
            revoked_at: None,
            revision: Revision(1),
        };
        (
            PresentedKey::parse(key.plaintext.expose_secret()).unwrap(),
            stored,
        )
    }

    #[test]
    fn a_key_is_good_until_it_expires_or_is_revoked() {
        let (presented, mut key) = generated();
        assert_eq!(valid(&presented, &key, now()), Ok(()));
        key.expires_at = Some(now() + TimeDelta::milliseconds(1));
        assert_eq!(valid(&presented, &key, now()), Ok(()));
        key.expires_at = Some(now());
        assert_eq!(valid(&presented, &key, now()), Err(CredentialFault::Expired));
        key.revoked_at = Some(now());
        assert_eq!(valid(&presented, &key, now()), Err(CredentialFault::Revoked));
    }

    #[test]
    fn without_the_secret_nobody_learns_that_a_key_was_revoked() {
        let (presented, mut key) = generated();
        key.revoked_at = Some(now());
        key.secret_sha256[0] ^= 1;
        assert_eq!(valid(&presented, &key, now()), Err(CredentialFault::Unknown));
    }

    #[test]
    fn every_fault_of_a_credential_reads_the_same() {
        let texts: std::collections::BTreeSet<String> = [
            CredentialFault::Missing,
            CredentialFault::Malformed,
            CredentialFault::Unknown,
            CredentialFault::Revoked,
            CredentialFault::Expired,
        ]
        .map(|fault| AuthError::Unauthenticated(fault).to_string())
        .into();
        assert_eq!(texts.len(), 1);
    }

    #[test]
    fn only_tenants_in_service_serve() {
        let (presented, _) = generated();
        let key = Principal::ApiKey(presented.id().clone());
        let tokens = OperatorTokens::new([("test".to_owned(), "token".to_owned().into())]).unwrap();
        let operator = Principal::Operator(tokens.identify("token").unwrap().clone());
        for state in TenantState::ALL {
            let (for_key, for_operator) = (admitted(state, &key), admitted(state, &operator));
            match state {
                TenantState::Created | TenantState::Moving => {
                    assert_eq!((for_key, for_operator), (Ok(()), Ok(())));
                }
                TenantState::Suspended => assert_eq!(for_key, Err(AuthError::TenantSuspended)),
                _ => {
                    assert_eq!(for_key, Err(AuthError::Unauthenticated(CredentialFault::Unknown)));
                    assert_eq!(for_operator, Err(AuthError::UnknownTenant));
                }
            }
        }
    }
}
