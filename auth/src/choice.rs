//! Which of the tenants that a credential is good for a request is about. Everything in a request that names a tenant must name
//! that one.
//!
//! Refuses to know whose credential it is and what it may do.

use std::sync::Arc;

use http::request::Parts;
use tenant_management::{OperatorRole, ResolveError, Role, Route};

use crate::{
    credential::Reach,
    error::{AuthError, CredentialFault},
    jwt::TenantRef,
    naming::{Named, named},
    state::AuthState,
};

/// The tenant, and what the credential may do in it.
pub(crate) async fn choose(
    auth: &AuthState,
    parts: &Parts,
    reach: Reach,
) -> Result<(Arc<Route>, Role), AuthError> {
    match reach {
        Reach::Any(role) => {
            let role = match role {
                OperatorRole::Read => Role::Viewer,
                OperatorRole::Write => Role::Admin,
            };
            Ok((Box::pin(any(auth, parts)).await?, role))
        }
        Reach::One(tenant, at_hand, role) => {
            let route = match at_hand {
                Some(route) => Some(route),
                None => route_of(auth, TenantRef::Uuid(tenant)).await?,
            };
            let route = route.ok_or(AuthError::Unauthenticated(CredentialFault::Unknown))?;
            let names = named(parts, &auth.base_domain)?;
            if names.iter().all(|name| agrees(auth, name, &route)) {
                Ok((route, role))
            } else {
                Err(AuthError::WrongTenant)
            }
        }
        Reach::Several(tenants) => {
            let tenants = tenants
                .into_iter()
                .map(|(uuid, role)| (TenantRef::Uuid(uuid), role));
            Box::pin(several(auth, parts, tenants)).await
        }
        Reach::Named(tenants, role) => {
            let tenants = tenants.into_iter().map(|tenant| (tenant, role));
            Box::pin(several(auth, parts, tenants)).await
        }
    }
}

async fn route_of(auth: &AuthState, tenant: TenantRef) -> Result<Option<Arc<Route>>, AuthError> {
    let found = match tenant {
        TenantRef::Uuid(uuid) => auth.tenancy.resolve_uuid(uuid).await,
        TenantRef::Id(id) => auth.tenancy.resolve(&id).await,
    };
    match found {
        Ok(route) => Ok(Some(route)),
        Err(ResolveError::Unknown) => Ok(None),
        Err(ResolveError::Unavailable(_)) => Err(AuthError::Unavailable),
    }
}

/// The one of several tenants that the request names; without a name, the only one.
async fn several(
    auth: &AuthState,
    parts: &Parts,
    tenants: impl Iterator<Item = (TenantRef, Role)>,
) -> Result<(Arc<Route>, Role), AuthError> {
    let names = named(parts, &auth.base_domain)?;
    let names_one = names.iter().any(|name| match name {
        Named::Tenant(_) | Named::Malformed => true,
        Named::Domain(domain) => auth.tenancy.table().get_by_domain(domain).is_some(),
    });
    let mut found: Option<(Arc<Route>, Role)> = None;
    for (tenant, role) in tenants {
        // A tenant that is gone is none of the choices.
        let Some(route) = route_of(auth, tenant).await? else {
            continue;
        };
        if !names.iter().all(|name| agrees(auth, name, &route)) {
            continue;
        }
        match &found {
            // Named twice by the credential.
            Some((other, _)) if other.uuid == route.uuid => {}
            Some(_) => return Err(AuthError::TenantRequired),
            None => found = Some((route, role)),
        }
    }
    found.ok_or(if names_one {
        AuthError::WrongTenant
    } else {
        AuthError::Unauthenticated(CredentialFault::Unknown)
    })
}

/// Whether a name means this tenant. Nothing is looked up: the answer is the same, and takes the same time, whether or not another
/// tenant exists, and a host that nobody has registered (an address inside a cluster, a load balancer's) costs the catalog nothing
/// and works without it. A registration that has not arrived here yet is missed for that moment; the credential has the last word
/// anyway.
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

/// The one tenant that a request names whose credential is good for any.
async fn any(auth: &AuthState, parts: &Parts) -> Result<Arc<Route>, AuthError> {
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
