//! What an instance needs to reach one tenant. Refuses to know how routes are found or kept.

use crate::{
    ids::{ClusterName, Generation, Revision, TenantUuid},
    secret::Sealed,
    state::TenantState,
    tenant_id::TenantId,
};

/// What an instance needs to reach one tenant. Database and role follow from the identity
/// ([`TenantUuid::physical_name`]); the password stays sealed until a connection is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Public name.
    pub tenant: TenantId,
    /// Immutable identity.
    pub uuid: TenantUuid,
    /// State at [`Self::revision`].
    pub state: TenantState,
    /// The cluster that holds the database.
    pub cluster: ClusterName,
    /// Grows when placement or credentials change; pooled connections are keyed by it.
    pub generation: Generation,
    /// The catalog revision that last changed this tenant.
    pub revision: Revision,
    /// Password of the tenant's role, sealed for [`Route::secret_owner`].
    pub password: Sealed,
}

impl Route {
    /// Whom a tenant's password is sealed for, see [`crate::secret::KeyRing::seal`].
    pub fn secret_owner(uuid: TenantUuid) -> [u8; 16] {
        *uuid.0.as_bytes()
    }
}
