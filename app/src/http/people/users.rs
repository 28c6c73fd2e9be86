//! `/v1/users`

use auth::{Admin, TenantAccess};
use axum::extract::{Path, State};
use tenant_management::UserId;

use super::model::{ChangeMember, MemberBody};
use crate::http::{
    AppState,
    control::model::Mutated,
    json::Json,
    problem::{Problem, ProblemKind},
    query::{Listing, PageParams, Paged},
};

/// List the tenant's users
#[utoipa::path(get, path = "/users", tag = "people", operation_id = "list_users", params(PageParams),
    responses((status = OK, description = "One page of users, in the order of their ids", body = Listing<MemberBody>))
)]
pub(super) async fn list(
    access: TenantAccess<Admin>,
    State(state): State<AppState>,
    Paged { page, .. }: Paged,
) -> Result<Json<Listing<MemberBody>>, Problem> {
    let list = format!("users of {}", access.route.uuid);
    let after: Option<uuid::Uuid> = page.after(&list)?;
    let members = state
        .people()
        .members(access.route.uuid, after.map(UserId), page.limit)
        .await?;
    let last = members
        .items
        .last()
        .filter(|_| members.more)
        .map(|member| member.user);
    let items = members.items.into_iter().map(MemberBody::from).collect();
    Ok(Json(Listing::new(&list, items, last)))
}

/// Give a user another role
///
/// It counts for their next request, on every instance that `propagation` counts.
#[utoipa::path(patch, path = "/users/{id}", tag = "people", operation_id = "change_user", request_body = ChangeMember,
    params(("id" = String, Path, description = "The user's id")),
    responses((status = OK, description = "The user as they are now", body = Mutated<MemberBody>))
)]
pub(super) async fn change(
    access: TenantAccess<Admin>,
    State(state): State<AppState>,
    Path(id): Path<String>,
    Json(request): Json<ChangeMember>,
) -> Result<Json<Mutated<MemberBody>>, Problem> {
    let changed = state
        .people()
        .change_member(access.route.uuid, user_id(&id)?, request.role, &access.actor())
        .await?
        .ok_or_else(no_such_user)?;
    Ok(Json(Mutated::new(changed, MemberBody::from)))
}

/// Remove a user from the tenant
///
/// Their account and their other tenants stay. From then on they are refused here, on every instance that `propagation`
/// counts.
#[utoipa::path(delete, path = "/users/{id}", tag = "people", operation_id = "remove_user",
    params(("id" = String, Path, description = "The user's id")),
    responses((status = OK, description = "The user as they were", body = Mutated<MemberBody>))
)]
pub(super) async fn remove(
    access: TenantAccess<Admin>,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Mutated<MemberBody>>, Problem> {
    let removed = state
        .people()
        .remove_member(access.route.uuid, user_id(&id)?, &access.actor())
        .await?
        .ok_or_else(no_such_user)?;
    Ok(Json(Mutated::new(removed, MemberBody::from)))
}

/// The user that a path names. What is no id names nobody.
fn user_id(text: &str) -> Result<UserId, Problem> {
    text.parse().map(UserId).map_err(|_| no_such_user())
}

fn no_such_user() -> Problem {
    Problem::new(ProblemKind::NotFound, "the tenant has no user with this id")
}
