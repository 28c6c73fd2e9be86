//! `/v1/api-keys`

use auth::{Admin, TenantAccess};
use axum::{
    extract::{Path, State},
    response::Response,
};

use crate::http::{
    AppState, api_keys,
    control::model::{ApiKeyBody, CreateApiKey, Mutated, NewApiKeyBody},
    idempotency::IdempotencyKey,
    json::Json,
    problem::Problem,
    query::{Listing, PageParams, Paged},
};

/// Create an API key for the own tenant
///
/// The answer is the only place where the key's secret ever appears.
#[utoipa::path(post, path = "/api-keys", tag = "people", operation_id = "create_own_api_key",
    params(IdempotencyKey), request_body = CreateApiKey,
    responses((status = CREATED, description = "The key, with its secret", body = Mutated<NewApiKeyBody>,
        headers(("Location" = String, description = "Where the key can be revoked"))))
)]
pub(super) async fn create(
    access: TenantAccess<Admin>,
    State(state): State<AppState>,
    idempotency: Option<IdempotencyKey>,
    Json(request): Json<CreateApiKey>,
) -> Result<Response, Problem> {
    let path = "/v1/api-keys".to_owned();
    api_keys::create(
        &state,
        access.route.uuid,
        path,
        access.actor(),
        idempotency,
        request,
    )
    .await
}

/// List the own tenant's API keys
#[utoipa::path(get, path = "/api-keys", tag = "people", operation_id = "list_own_api_keys", params(PageParams),
    responses((status = OK, description = "One page of keys, without their secrets, in the order of their ids",
        body = Listing<ApiKeyBody>))
)]
pub(super) async fn list(
    access: TenantAccess<Admin>,
    State(state): State<AppState>,
    Paged { page, .. }: Paged,
) -> Result<Json<Listing<ApiKeyBody>>, Problem> {
    api_keys::list(&state, access.route.uuid, &page).await
}

/// Revoke an API key of the own tenant
///
/// From then on it is refused, on every instance that `propagation` counts. A key that was revoked before is no error.
#[utoipa::path(delete, path = "/api-keys/{key}", tag = "people", operation_id = "revoke_own_api_key",
    params(("key" = String, Path, description = "The key's id")),
    responses((status = OK, description = "The revoked key", body = Mutated<ApiKeyBody>))
)]
pub(super) async fn revoke(
    access: TenantAccess<Admin>,
    State(state): State<AppState>,
    Path(key): Path<String>,
) -> Result<Json<Mutated<ApiKeyBody>>, Problem> {
    api_keys::revoke(&state, access.route.uuid, &key, &access.actor()).await
}
