//! `/control/v1/tenants/{id}/api-keys`

use auth::{GeneratedKey, KeyId, OperatorAccess};
use axum::{
    extract::{Path, State},
    response::Response,
};
use chrono::{DateTime, Utc};
use http::StatusCode;
use secrecy::ExposeSecret;
use tenant_management::NewApiKey;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    PREFIX,
    model::{ApiKeyBody, CreateApiKey, Mutated, NewApiKeyBody},
    tenant_id,
};
use crate::http::{
    AppState,
    idempotency::{Answer, IdempotencyKey, once},
    json::Json,
    problem::{Problem, ProblemKind},
    query::{Listing, PageParams, Paged},
    request_id::RequestId,
    validate::Checks,
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
    access: OperatorAccess,
    State(state): State<AppState>,
    Path(id): Path<String>,
    request_id: RequestId,
    idempotency: Option<IdempotencyKey>,
    Json(request): Json<CreateApiKey>,
) -> Result<Response, Problem> {
    let tenant = tenant_id(&id)?;
    check(&request, Utc::now())?;
    let path = format!("{PREFIX}/tenants/{tenant}/api-keys");
    let actor = access.actor(request_id.as_str());
    let scope = format!("{} POST {path}", actor.name);
    let (
        control,
        CreateApiKey {
            name,
            role,
            expires_at,
        },
    ) = (state.clone(), request.clone());
    let work = async move {
        let GeneratedKey {
            id,
            plaintext,
            secret_sha256,
        } = GeneratedKey::generate(&mut rand::rng());
        let key = NewApiKey {
            id: id.to_string(),
            name,
            role,
            secret_sha256,
            expires_at,
        };
        let changed = control.control().create_api_key(&tenant, &key, &actor).await?;
        let secret = plaintext.expose_secret().to_owned();
        let body = Mutated::new(changed, |key| NewApiKeyBody {
            key: key.into(),
            secret,
        });
        Ok(Answer::new(StatusCode::CREATED, &body).at(format!("{path}/{id}")))
    };
    once(&state, &scope, idempotency, &request, work).await
}

fn check(request: &CreateApiKey, now: DateTime<Utc>) -> Result<(), Problem> {
    let mut checks = Checks::new();
    checks.text("name", &request.name, 1, 100);
    if request.expires_at.is_some_and(|end| end <= now) {
        checks.refuse("expires_at", "must be in the future");
    }
    checks.finish()
}

/// List a tenant's API keys
#[utoipa::path(get, path = "/tenants/{id}/api-keys", tag = "api-keys", operation_id = "list_api_keys",
    params(("id" = String, Path, description = "The tenant's id"), PageParams),
    responses((status = OK, description = "One page of keys, without their secrets, in the order of their ids",
        body = Listing<ApiKeyBody>))
)]
pub(super) async fn list(
    _: OperatorAccess,
    State(state): State<AppState>,
    Path(id): Path<String>,
    Paged { page, .. }: Paged,
) -> Result<Json<Listing<ApiKeyBody>>, Problem> {
    let tenant = tenant_id(&id)?;
    let list = format!("api-keys of {tenant}");
    let after: Option<KeyId> = page.after(&list)?;
    let keys = state
        .control()
        .api_keys(&tenant, after.as_ref().map(KeyId::as_str), page.limit)
        .await?;
    let last = keys.items.last().filter(|_| keys.more).map(|key| key.id.clone());
    Ok(Json(Listing::new(
        &list,
        keys.items.into_iter().map(ApiKeyBody::from).collect(),
        last,
    )))
}

/// Revoke an API key
///
/// From then on it is refused, on every instance that `propagation` counts. A key that was revoked before is no error.
#[utoipa::path(delete, path = "/tenants/{id}/api-keys/{key}", tag = "api-keys", operation_id = "revoke_api_key",
    params(("id" = String, Path, description = "The tenant's id"), ("key" = String, Path, description = "The key's id")),
    responses((status = OK, description = "The revoked key", body = Mutated<ApiKeyBody>))
)]
pub(super) async fn revoke(
    access: OperatorAccess,
    State(state): State<AppState>,
    Path((id, key)): Path<(String, String)>,
    request_id: RequestId,
) -> Result<Json<Mutated<ApiKeyBody>>, Problem> {
    let unknown = || Problem::new(ProblemKind::NotFound, "the tenant has no API key with this id");
    let tenant = tenant_id(&id)?;
    let key = KeyId::parse(&key).map_err(|_| unknown())?;
    let actor = access.actor(request_id.as_str());
    let revoked = state
        .control()
        .revoke_api_key(&tenant, key.as_str(), &actor)
        .await?
        .ok_or_else(unknown)?;
    Ok(Json(Mutated::new(revoked, ApiKeyBody::from)))
}
