//! `/v1/session`

use auth::{Anyone, AuthState, SessionAccess};
use axum::{extract::State, response::IntoResponse};
use http::{StatusCode, header::LOCATION};
use serde::Deserialize;
use tenant_management::{PersonSession, control::Changed};

use super::model::{ChangePassword, Ended, Login, PasswordChanged, SessionBody, TenantRole};
use crate::http::{
    AppState,
    control::model::Mutated,
    json::Json,
    problem::{Problem, ProblemKind},
    query::Query,
};

/// Log in
///
/// Sets the cookie `tenantry_session`. When the request names a tenant, by `X-Tenant-ID` or its host, the session is good for that
/// tenant only; otherwise for all tenants of the person, of whom each request then names one. A session that the request came with
/// ends. An address that nobody has, a wrong password and a tenant to which the person does not belong get the same answer.
#[utoipa::path(post, path = "/session", tag = "people", operation_id = "log_in", request_body = Login,
    params(("X-Tenant-ID" = Option<String>, Header, description = "The only tenant that the session will be good for")),
    responses((status = CREATED, description = "The session has begun", body = SessionBody,
        headers(("Location" = String, description = "Where the session can be looked at and ended"))))
)]
pub(super) async fn log_in(
    caller: Anyone,
    State(auth): State<AuthState>,
    State(state): State<AppState>,
    Json(login): Json<Login>,
) -> Result<impl IntoResponse, Problem> {
    let session = auth.log_in(&caller, &login.email, login.password).await?;
    let location = [(LOCATION, "/v1/session")];
    Ok((StatusCode::CREATED, location, Json(shown(&state, &session))))
}

/// Show the own session
#[utoipa::path(get, path = "/session", tag = "people", operation_id = "show_session",
    responses((status = OK, description = "The session that the request's cookie is for", body = SessionBody))
)]
pub(super) async fn show(access: SessionAccess, State(state): State<AppState>) -> Json<SessionBody> {
    Json(shown(&state, &access.session))
}

/// Which sessions end.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WhichSessions {
    /// `true`: all sessions of the person, on whatever devices.
    #[serde(default)]
    everywhere: bool,
}

/// Log out
///
/// The session is refused from then on, on every instance that `propagation` counts.
#[utoipa::path(delete, path = "/session", tag = "people", operation_id = "log_out", params(WhichSessions),
    responses((status = OK, description = "How many sessions have ended", body = Mutated<Ended>))
)]
pub(super) async fn log_out(
    access: SessionAccess,
    State(auth): State<AuthState>,
    Query(which): Query<WhichSessions>,
) -> Result<Json<Mutated<Ended>>, Problem> {
    let ended = if which.everywhere {
        access.end_all(&auth).await?
    } else {
        let ended = access.end(&auth).await?;
        Changed {
            value: u64::from(ended.newly),
            newly: ended.newly,
            propagation: ended.propagation,
        }
    };
    Ok(Json(Mutated::new(ended, |sessions| Ended { sessions })))
}

/// Change the own password
///
/// All other sessions of the person end.
#[utoipa::path(put, path = "/session/password", tag = "people", operation_id = "change_password",
    request_body = ChangePassword,
    responses((status = OK, description = "The password is changed", body = Mutated<PasswordChanged>))
)]
pub(super) async fn change_password(
    access: SessionAccess,
    State(auth): State<AuthState>,
    Json(request): Json<ChangePassword>,
) -> Result<Json<Mutated<PasswordChanged>>, Problem> {
    let user = access.session.user;
    let changed = auth
        .change_password(&access, request.current_password, request.new_password)
        .await?;
    let changed = changed.ok_or_else(|| Problem::new(ProblemKind::NotFound, "the account is gone"))?;
    Ok(Json(Mutated::new(changed, |()| PasswordChanged { user })))
}

fn shown(state: &AppState, session: &PersonSession) -> SessionBody {
    let name = |tenant| {
        let route = state.tenancy().table().get_by_uuid(tenant);
        route.map(|route| route.tenant)
    };
    SessionBody {
        user: session.user,
        email: session.email.clone(),
        tenant: session.tenant.and_then(name),
        tenants: session
            .tenants()
            .filter_map(|(tenant, role)| {
                Some(TenantRole {
                    id: name(tenant)?,
                    role,
                })
            })
            .collect(),
        idle_until: session.idle_until,
        ends_at: session.ends_at,
    }
}
