//! `/control/v1/tenants/{id}/api-keys`

use auth::{OperatorAccess, Read, Write};
use axum::{
    extract::{Path, State},
    response::Response,
};
use tenant_management::{TenantId, TenantUuid};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    PREFIX,
    model::{ApiKeyBody, CreateApiKey, Mutated, NewApiKeyBody},
    tenant_id, unknown_tenant,
};
use crate::http::{
    AppState, api_keys,
    idempotency::IdempotencyKey,
    json::Json,
    problem::Problem,
    query::{Listing, PageParams, Paged},
};

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(revoke))
}

/// Create an API key for a tenant
///
/// The answer is the only place where the key's secret ever appears.
#[utoipa::path(post, path = "/tenants/{id}/api-keys", tag = "api-keys", operation_id = "create_api_key",
    params(("id" = String, Path, description = "The tenant's id"), IdempotencyKey), request_body = CreateApiKey,
    responses((status = CREATED, description = "The key, with its secret", body = Mutated<NewApiKeyBody>,
        headers(("Location" = String, description = "Where the key can be revoked"))))
)]
pub(super) async fn create(
    access: OperatorAccess<Write>,
    State(state): State<AppState>,
    Path(id): Path<String>,
    idempotency: Option<IdempotencyKey>,
    Json(request): Json<CreateApiKey>,
) -> Result<Response, Problem> {
    let (tenant, uuid) = known(&state, &id).await?;
    let path = format!("{PREFIX}/tenants/{tenant}/api-keys");
    api_keys::create(&state, uuid, path, access.actor(), idempotency, request).await
}

/// List a tenant's API keys
#[utoipa::path(get, path = "/tenants/{id}/api-keys", tag = "api-keys", operation_id = "list_api_keys",
    params(("id" = String, Path, description = "The tenant's id"), PageParams),
    responses((status = OK, description = "One page of keys, without their secrets, in the order of their ids",
        body = Listing<ApiKeyBody>))
)]
pub(super) async fn list(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Path(id): Path<String>,
    Paged { page, .. }: Paged,
) -> Result<Json<Listing<ApiKeyBody>>, Problem> {
    let (_, uuid) = known(&state, &id).await?;
    api_keys::list(&state, uuid, &page).await
}

/// Revoke an API key
///
/// From then on it is refused, on every instance that `propagation` counts. A key that was revoked before is no error.
#[utoipa::path(delete, path = "/tenants/{id}/api-keys/{key}", tag = "api-keys", operation_id = "revoke_api_key",
    params(("id" = String, Path, description = "The tenant's id"), ("key" = String, Path, description = "The key's id")),
    responses((status = OK, description = "The revoked key", body = Mutated<ApiKeyBody>))
)]
pub(super) async fn revoke(
    access: OperatorAccess<Write>,
    State(state): State<AppState>,
    Path((id, key)): Path<(String, String)>,
) -> Result<Json<Mutated<ApiKeyBody>>, Problem> {
    let (_, uuid) = known(&state, &id).await?;
    api_keys::revoke(&state, uuid, &key, &access.actor()).await
}

/// The tenant that a path names.
async fn known(state: &AppState, id: &str) -> Result<(TenantId, TenantUuid), Problem> {
    let tenant = state.control().tenant(&tenant_id(id)?).await?;
    tenant
        .map(|tenant| (tenant.id, tenant.uuid))
        .ok_or_else(unknown_tenant)
}
