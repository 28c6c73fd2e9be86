//! `GET /v1/whoami`

use auth::{Role, TenantAccess, Viewer};
use serde::Serialize;
use tenant_management::{TenantId, TenantUuid};
use utoipa::ToSchema;

use crate::{
    http::{json::Json, problem::Problem},
    sample::store::whereabouts,
};

/// Who the caller is and where their requests lead.
#[derive(Serialize, ToSchema)]
pub(super) struct WhoAmI {
    /// The tenant that the request is for.
    #[schema(value_type = String, examples("acme"))]
    tenant: TenantId,
    /// The tenant's immutable identity.
    #[schema(value_type = Uuid)]
    uuid: TenantUuid,
    /// The name of the database that answered.
    #[schema(examples("t_0199a3c1d2e37f4a8b9c0d1e2f3a4b5c"))]
    database: String,
    /// The identity of the tenant for whom that database was made, as the database itself says: the same as `uuid`.
    #[schema(examples("0199a3c1-d2e3-7f4a-8b9c-0d1e2f3a4b5c"))]
    database_tenant: Option<String>,
    /// Who calls.
    #[schema(examples("api-key:k7f3q2k7f3q2k7f3"))]
    principal: String,
    /// What they may do.
    #[schema(value_type = String, examples("member"))]
    role: Role,
}

/// Who am I?
///
/// Tells which tenant the credential is for, and which database answers for it, as that database says itself.
#[utoipa::path(get, path = "/whoami", tag = "identity", responses((status = OK, description = "Who calls", body = WhoAmI)))]
pub(super) async fn whoami(access: TenantAccess<Viewer>) -> Result<Json<WhoAmI>, Problem> {
    let whereabouts = whereabouts(&access.db).await?;
    Ok(Json(WhoAmI {
        tenant: access.route.tenant,
        uuid: access.route.uuid,
        database: whereabouts.database,
        database_tenant: whereabouts.database_tenant,
        principal: access.principal.to_string(),
        role: access.role,
    }))
}
