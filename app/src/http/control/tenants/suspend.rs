//! `POST /control/v1/tenants/{id}/suspend`, `POST /control/v1/tenants/{id}/resume`

use auth::{OperatorAccess, Write};
use axum::extract::{Path, State};

use crate::http::{
    AppState,
    control::{
        model::{Mutated, TenantBody},
        tenant_id,
    },
    json::Json,
    problem::Problem,
};

/// Suspend a tenant
///
/// Its data is kept, and it answers nobody until it is resumed: `403` with `tenant-suspended`, on every instance that
/// `propagation` counts as informed. A tenant that is suspended already stays so.
#[utoipa::path(post, path = "/tenants/{id}/suspend", tag = "tenants", operation_id = "suspend_tenant",
    params(("id" = String, Path, description = "The tenant's id")),
    responses((status = OK, description = "The tenant, suspended", body = Mutated<TenantBody>))
)]
pub(crate) async fn suspend(
    access: OperatorAccess<Write>,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Mutated<TenantBody>>, Problem> {
    let actor = access.actor();
    let suspended = state.control().suspend_tenant(&tenant_id(&id)?, &actor).await?;
    Ok(Json(Mutated::new(suspended, TenantBody::from)))
}

/// Resume a suspended tenant
///
/// It answers again on every instance that `propagation` counts as informed. A tenant that is in service stays so.
#[utoipa::path(post, path = "/tenants/{id}/resume", tag = "tenants", operation_id = "resume_tenant",
    params(("id" = String, Path, description = "The tenant's id")),
    responses((status = OK, description = "The tenant, in service", body = Mutated<TenantBody>))
)]
pub(crate) async fn resume(
    access: OperatorAccess<Write>,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Mutated<TenantBody>>, Problem> {
    let actor = access.actor();
    let resumed = state.control().resume_tenant(&tenant_id(&id)?, &actor).await?;
    Ok(Json(Mutated::new(resumed, TenantBody::from)))
}
