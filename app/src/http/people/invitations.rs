//! `/v1/invitations`

use auth::{Admin, Anyone, AuthState, GeneratedKey, KeyId, KeyKind, TenantAccess};
use axum::{
    extract::{Path, State},
    response::Response,
};
use chrono::{TimeDelta, Utc};
use http::StatusCode;
use secrecy::ExposeSecret;
use tenant_management::NewInvitation;

use super::model::{AcceptInvitation, Accepted, CreateInvitation, InvitationBody, NewInvitationBody};
use crate::http::{
    AppState,
    control::model::Mutated,
    idempotency::{Answer, IdempotencyKey, once},
    json::Json,
    problem::{Problem, ProblemKind},
    query::{Listing, PageParams, Paged},
};

/// Where invitations are.
const PATH: &str = "/v1/invitations";
/// How long an invitation is good for.
const GOOD_FOR: TimeDelta = TimeDelta::days(7);

/// Invite a person into the tenant
///
/// Whether or not they have an account, the answer is the same. Its `secret` appears nowhere else and is good for seven days:
/// bring it to the person. An earlier invitation of the same person is good for nothing any more.
#[utoipa::path(post, path = "/invitations", tag = "people", operation_id = "invite",
    params(IdempotencyKey), request_body = CreateInvitation,
    responses((status = CREATED, description = "The invitation, with its secret", body = Mutated<NewInvitationBody>,
        headers(("Location" = String, description = "Where the invitation can be withdrawn"))))
)]
pub(super) async fn invite(
    access: TenantAccess<Admin>,
    State(state): State<AppState>,
    idempotency: Option<IdempotencyKey>,
    Json(request): Json<CreateInvitation>,
) -> Result<Response, Problem> {
    let (tenant, actor) = (access.route.uuid, access.actor());
    let scope = format!("{} POST {PATH} of {tenant}", actor.name);
    let (service, wanted) = (state.clone(), request.clone());
    let work = async move {
        let generated = GeneratedKey::generate(KeyKind::Invitation, &mut rand::rng());
        let invitation = NewInvitation {
            id: generated.id.to_string(),
            email: wanted.email.folded(),
            role: wanted.role,
            secret_sha256: generated.secret_sha256,
            expires_at: Utc::now() + GOOD_FOR,
        };
        let changed = service.people().invite(tenant, &invitation, &actor).await?;
        let secret = generated.plaintext.expose_secret().to_owned();
        let body = Mutated::new(changed, |invitation| NewInvitationBody {
            invitation: invitation.into(),
            secret,
        });
        Ok(Answer::new(StatusCode::CREATED, &body).at(format!("{PATH}/{}", generated.id)))
    };
    once(&state, &scope, idempotency, &request, work).await
}

/// List invitations that were not taken up
#[utoipa::path(get, path = "/invitations", tag = "people", operation_id = "list_invitations", params(PageParams),
    responses((status = OK, description = "One page of invitations, without their secrets, in the order of their ids",
        body = Listing<InvitationBody>))
)]
pub(super) async fn list(
    access: TenantAccess<Admin>,
    State(state): State<AppState>,
    Paged { page, .. }: Paged,
) -> Result<Json<Listing<InvitationBody>>, Problem> {
    let tenant = access.route.uuid;
    let list = format!("invitations of {tenant}");
    let after: Option<KeyId> = page.after(&list)?;
    let invitations = state
        .people()
        .invitations(tenant, after.as_ref().map(KeyId::as_str), page.limit)
        .await?;
    let last = invitations
        .items
        .last()
        .filter(|_| invitations.more)
        .map(|invitation| invitation.id.clone());
    let items = invitations.items.into_iter().map(InvitationBody::from).collect();
    Ok(Json(Listing::new(&list, items, last)))
}

/// Withdraw an invitation
#[utoipa::path(delete, path = "/invitations/{id}", tag = "people", operation_id = "withdraw_invitation",
    params(("id" = String, Path, description = "The invitation's id")),
    responses((status = OK, description = "The invitation as it was", body = Mutated<InvitationBody>))
)]
pub(super) async fn withdraw(
    access: TenantAccess<Admin>,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Mutated<InvitationBody>>, Problem> {
    let unknown = || Problem::new(ProblemKind::NotFound, "the tenant has no invitation with this id");
    let id = KeyId::parse(&id).map_err(|_| unknown())?;
    let withdrawn = state
        .people()
        .withdraw_invitation(access.route.uuid, id.as_str(), &access.actor())
        .await?
        .ok_or_else(unknown)?;
    Ok(Json(Mutated::new(withdrawn, InvitationBody::from)))
}

/// Accept an invitation
///
/// Makes the invited person a user of the tenant, once. A person without an account gets one, with the password that they send;
/// a person who has one proves it by theirs.
#[utoipa::path(post, path = "/invitations/accept", tag = "people", operation_id = "accept_invitation",
    request_body = AcceptInvitation,
    responses((status = OK, description = "The person is a user of the tenant", body = Mutated<Accepted>))
)]
pub(super) async fn accept(
    caller: Anyone,
    State(auth): State<AuthState>,
    State(state): State<AppState>,
    Json(request): Json<AcceptInvitation>,
) -> Result<Json<Mutated<Accepted>>, Problem> {
    let accepted = auth
        .accept_invitation(&caller, &request.secret, request.password)
        .await?;
    let route = state.tenancy().resolve_uuid(accepted.tenant).await;
    let tenant = route.map_err(|_| super::problem::no_such_invitation())?.tenant;
    Ok(Json(Mutated::new(accepted.member, |member| Accepted {
        tenant,
        user: member.into(),
    })))
}
