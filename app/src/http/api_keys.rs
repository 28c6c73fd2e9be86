//! A tenant's API keys, whoever manages them: operators through the control plane, and the tenant's own admins.
//!
//! Refuses to know who may: the handlers' signatures say that.

use auth::{GeneratedKey, KeyId, KeyKind};
use axum::response::Response;
use chrono::Utc;
use http::StatusCode;
use secrecy::ExposeSecret;
use tenant_management::{Actor, NewApiKey, TenantUuid};

use super::{
    AppState,
    control::model::{ApiKeyBody, CreateApiKey, Mutated, NewApiKeyBody},
    idempotency::{Answer, IdempotencyKey, once},
    json::Json,
    problem::{Problem, ProblemKind},
    query::{Listing, Page},
    validate::Checks,
};

/// Makes a key, and answers with the only copy of its secret. `path` is where the tenant's keys are.
pub(crate) async fn create(
    state: &AppState,
    tenant: TenantUuid,
    path: String,
    actor: Actor,
    idempotency: Option<IdempotencyKey>,
    request: CreateApiKey,
) -> Result<Response, Problem> {
    let mut checks = Checks::new();
    checks.text("name", &request.name, 1, 100);
    if request.expires_at.is_some_and(|end| end <= Utc::now()) {
        checks.refuse("expires_at", "must be in the future");
    }
    checks.finish()?;
    let scope = format!("{} POST {path} of {tenant}", actor.name);
    let (service, wanted) = (state.clone(), request.clone());
    let work = async move {
        let generated = GeneratedKey::generate(KeyKind::Tenant, &mut rand::rng());
        let key = NewApiKey {
            id: generated.id.to_string(),
            name: wanted.name,
            role: wanted.role,
            secret_sha256: generated.secret_sha256,
            expires_at: wanted.expires_at,
        };
        let changed = service.control().create_api_key(tenant, &key, &actor).await?;
        let secret = generated.plaintext.expose_secret().to_owned();
        let body = Mutated::new(changed, |key| NewApiKeyBody {
            key: key.into(),
            secret,
        });
        Ok(Answer::new(StatusCode::CREATED, &body).at(format!("{path}/{}", generated.id)))
    };
    once(state, &scope, idempotency, &request, work).await
}

/// A page of the tenant's keys.
pub(crate) async fn list(
    state: &AppState,
    tenant: TenantUuid,
    page: &Page,
) -> Result<Json<Listing<ApiKeyBody>>, Problem> {
    let list = format!("api-keys of {tenant}");
    let after: Option<KeyId> = page.after(&list)?;
    let keys = state
        .control()
        .api_keys(tenant, after.as_ref().map(KeyId::as_str), page.limit)
        .await?;
    let last = keys.items.last().filter(|_| keys.more).map(|key| key.id.clone());
    let items = keys.items.into_iter().map(ApiKeyBody::from).collect();
    Ok(Json(Listing::new(&list, items, last)))
}

/// Revokes a key of the tenant.
pub(crate) async fn revoke(
    state: &AppState,
    tenant: TenantUuid,
    key: &str,
    actor: &Actor,
) -> Result<Json<Mutated<ApiKeyBody>>, Problem> {
    let unknown = || Problem::new(ProblemKind::NotFound, "the tenant has no API key with this id");
    let key = KeyId::parse(key).map_err(|_| unknown())?;
    let revoked = state
        .control()
        .revoke_api_key(tenant, key.as_str(), actor)
        .await?
        .ok_or_else(unknown)?;
    Ok(Json(Mutated::new(revoked, ApiKeyBody::from)))
}
