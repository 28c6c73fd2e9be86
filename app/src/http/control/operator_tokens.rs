//! `/control/v1/operator-tokens`

use auth::{GeneratedKey, KeyId, KeyKind, OperatorAccess, OperatorRole, Read, Write};
use axum::{
    extract::{Path, State},
    response::Response,
};
use chrono::{DateTime, Utc};
use http::StatusCode;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use tenant_management::{NewOperatorToken, OperatorToken};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{PREFIX, model::Mutated};
use crate::http::{
    AppState,
    idempotency::{Answer, IdempotencyKey, once},
    json::Json,
    problem::{Problem, ProblemKind},
    query::{Listing, PageParams, Paged},
    validate::Checks,
};

/// The list's name in its cursors.
const LIST: &str = "operator-tokens";
/// The name of the operator that the configuration knows: no token may have it, so that the audit trail stays clear.
const CONFIGURED: &str = "configured";

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(revoke))
}

/// What an operator may do.
#[derive(ToSchema)]
#[schema(as = OperatorRole, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes another crate's type")]
enum RoleSchema {
    Read,
    Write,
}

/// What a new operator's token should be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateOperatorToken {
    /// The operator's name in the audit trail: 1 to 40 characters of `a-z`, `0-9` and hyphens.
    #[schema(examples("deployment"))]
    name: String,
    /// `read` looks, in the control plane and in tenants; `write` changes, too.
    #[schema(value_type = RoleSchema)]
    role: OperatorRole,
    /// From then on it is refused; never when absent.
    expires_at: Option<DateTime<Utc>>,
}

/// An operator's token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OperatorToken)]
pub(super) struct OperatorTokenBody {
    /// Public part: names the token.
    #[schema(examples("k3q9x0v7m2w5z8a1"))]
    id: String,
    /// The operator's name in the audit trail.
    name: String,
    /// What it may do.
    #[schema(value_type = RoleSchema)]
    role: OperatorRole,
    /// Birth.
    created_at: DateTime<Utc>,
    /// From then on it is refused.
    expires_at: Option<DateTime<Utc>>,
    /// Since then it is refused.
    revoked_at: Option<DateTime<Utc>>,
    /// When it was used last, some seconds late.
    last_used_at: Option<DateTime<Utc>>,
}

impl From<OperatorToken> for OperatorTokenBody {
    fn from(token: OperatorToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            role: token.role,
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            last_used_at: token.last_used_at,
        }
    }
}

/// A new operator's token, with its secret. The secret is shown here and never again.
#[derive(Serialize, ToSchema)]
#[schema(as = NewOperatorToken)]
pub(super) struct NewOperatorTokenBody {
    #[serde(flatten)]
    token: OperatorTokenBody,
    /// The whole token, to be sent as `Authorization: Bearer <secret>`.
    #[schema(examples("tno_k3q9x0v7m2w5z8a1_…_1a2b3c4d"))]
    secret: String,
}

/// Create an operator's token
///
/// The answer is the only place where the token's secret ever appears.
#[utoipa::path(post, path = "/operator-tokens", tag = "operators", operation_id = "create_operator_token",
    params(IdempotencyKey), request_body = CreateOperatorToken,
    responses((status = CREATED, description = "The token, with its secret", body = Mutated<NewOperatorTokenBody>,
        headers(("Location" = String, description = "Where the token can be revoked"))))
)]
pub(super) async fn create(
    access: OperatorAccess<Write>,
    State(state): State<AppState>,
    idempotency: Option<IdempotencyKey>,
    Json(request): Json<CreateOperatorToken>,
) -> Result<Response, Problem> {
    check(&request, Utc::now())?;
    let path = format!("{PREFIX}/operator-tokens");
    let actor = access.actor();
    let scope = format!("{} POST {path}", actor.name);
    let (service, wanted) = (state.clone(), request.clone());
    let work = async move {
        let generated = GeneratedKey::generate(KeyKind::Operator, &mut rand::rng());
        let token = NewOperatorToken {
            id: generated.id.to_string(),
            name: wanted.name,
            role: wanted.role,
            secret_sha256: generated.secret_sha256,
            expires_at: wanted.expires_at,
        };
        let changed = service.control().create_operator_token(&token, &actor).await?;
        let secret = generated.plaintext.expose_secret().to_owned();
        let body = Mutated::new(changed, |token| NewOperatorTokenBody {
            token: token.into(),
            secret,
        });
        Ok(Answer::new(StatusCode::CREATED, &body).at(format!("{path}/{}", generated.id)))
    };
    once(&state, &scope, idempotency, &request, work).await
}

fn check(request: &CreateOperatorToken, now: DateTime<Utc>) -> Result<(), Problem> {
    let mut checks = Checks::new();
    checks.name("name", &request.name);
    if request.name == CONFIGURED {
        checks.refuse("name", "is the name of the operator in the configuration");
    }
    if request.expires_at.is_some_and(|end| end <= now) {
        checks.refuse("expires_at", "must be in the future");
    }
    checks.finish()
}

/// List operators' tokens
///
/// Without the one in the configuration, which no instance tells.
#[utoipa::path(get, path = "/operator-tokens", tag = "operators", operation_id = "list_operator_tokens", params(PageParams),
    responses((status = OK, description = "One page of tokens, without their secrets, in the order of their ids",
        body = Listing<OperatorTokenBody>))
)]
pub(super) async fn list(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Paged { page, .. }: Paged,
) -> Result<Json<Listing<OperatorTokenBody>>, Problem> {
    let after: Option<KeyId> = page.after(LIST)?;
    let tokens = state
        .control()
        .operator_tokens(after.as_ref().map(KeyId::as_str), page.limit)
        .await?;
    let last = tokens
        .items
        .last()
        .filter(|_| tokens.more)
        .map(|token| token.id.clone());
    let items = tokens.items.into_iter().map(OperatorTokenBody::from).collect();
    Ok(Json(Listing::new(LIST, items, last)))
}

/// Revoke an operator's token
///
/// From then on it is refused, on every instance that `propagation` counts. A token that was revoked before is no error. The
/// one in the configuration is replaced there.
#[utoipa::path(delete, path = "/operator-tokens/{token}", tag = "operators", operation_id = "revoke_operator_token",
    params(("token" = String, Path, description = "The token's id")),
    responses((status = OK, description = "The revoked token", body = Mutated<OperatorTokenBody>))
)]
pub(super) async fn revoke(
    access: OperatorAccess<Write>,
    State(state): State<AppState>,
    Path(token): Path<String>,
) -> Result<Json<Mutated<OperatorTokenBody>>, Problem> {
    let unknown = || Problem::new(ProblemKind::NotFound, "there is no operator's token with this id");
    let token = KeyId::parse(&token).map_err(|_| unknown())?;
    let revoked = state
        .control()
        .revoke_operator_token(token.as_str(), &access.actor())
        .await?
        .ok_or_else(unknown)?;
    Ok(Json(Mutated::new(revoked, OperatorTokenBody::from)))
}
