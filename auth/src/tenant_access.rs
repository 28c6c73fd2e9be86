//! The extractor for handlers that act in one tenant.
//!
//! The order of its decisions is part of the contract, since each refusal tells the caller that everything before it was in
//! order: the credential, the tenants that the request names, the tenant's state, the role, the tenant's limits.

use std::{fmt, marker::PhantomData, sync::Arc};

use axum::{
    extract::{FromRef, FromRequestParts},
    response::Response,
};
use chrono::Utc;
use http::request::Parts;
use tenant_management::{Actor, Role, Route, Session, TenantDb, TenantState};

use crate::{
    caller::{CallerSlot, Principal},
    choice,
    credential::{self, Verified},
    error::{AuthError, CredentialFault},
    refusal::Refusal,
    role::RequiredRole,
    source::RequestSource,
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
    /// Where the request comes from.
    pub source: RequestSource,
    required: PhantomData<R>,
}

impl<R> TenantAccess<R> {
    /// Who acts, for the control plane's audit trail.
    pub fn actor(&self) -> Actor {
        self.source.actor(&self.principal)
    }
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
            .map_err(|refusal| auth.refuse(refusal, parts))
    }
}

async fn authorise<R>(auth: &AuthState, parts: &Parts, needed: Role) -> Result<TenantAccess<R>, Refusal> {
    let Verified { principal, reach } = credential::verify(auth, parts, Utc::now()).await?;
    // Known also when the request is refused for another reason.
    CallerSlot::note(&parts.extensions, &principal, reach.only_tenant());
    let (route, held) = choice::choose(auth, parts, reach).await?;
    admitted(route.state, &principal)?;
    if held < needed {
        return Err(AuthError::Forbidden { needed, held }.into());
    }
    auth.limiters.enter(parts, route.uuid)?;
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
        source: RequestSource::of(parts),
        required: PhantomData,
    })
}

/// Whether a tenant in this state serves anybody.
fn admitted(state: TenantState, principal: &Principal) -> Result<(), AuthError> {
    match state {
        TenantState::Created | TenantState::Moving => Ok(()),
        TenantState::Suspended => Err(AuthError::TenantSuspended),
        // Gone as far as its credentials are concerned; an operator hears that there is no such tenant.
        TenantState::Deleted | TenantState::InProgress | TenantState::Failed | TenantState::Purged => {
            Err(match principal {
                Principal::ApiKey(_) | Principal::User(_) | Principal::Token { .. } => {
                    AuthError::Unauthenticated(CredentialFault::Unknown)
                }
                Principal::Operator(_) => AuthError::UnknownTenant,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use tenant_management::UserId;

    use super::*;
    use crate::{key::KeyId, operator::OperatorName};

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
        let of_tenants = [
            Principal::ApiKey(KeyId::parse("k3q9x0v7m2w5z8a1").unwrap()),
            Principal::User(UserId::generate()),
        ];
        let operator = Principal::Operator(OperatorName::registered("ann"));
        for state in TenantState::ALL {
            for principal in &of_tenants {
                let verdict = admitted(state, principal);
                match state {
                    TenantState::Created | TenantState::Moving => assert_eq!(verdict, Ok(())),
                    TenantState::Suspended => assert_eq!(verdict, Err(AuthError::TenantSuspended)),
                    _ => assert_eq!(verdict, Err(AuthError::Unauthenticated(CredentialFault::Unknown))),
                }
            }
            let verdict = admitted(state, &operator);
            match state {
                TenantState::Created | TenantState::Moving => assert_eq!(verdict, Ok(())),
                TenantState::Suspended => assert_eq!(verdict, Err(AuthError::TenantSuspended)),
                _ => assert_eq!(verdict, Err(AuthError::UnknownTenant)),
            }
        }
    }
}
