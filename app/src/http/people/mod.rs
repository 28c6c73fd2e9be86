//! People and ways in, below `/v1`: the caller's own session, and what a tenant's admins manage (users, invitations, API keys).
//! One file per operation or small family.
//!
//! Who may call an operation stands in its signature: [`SessionAccess`](auth::SessionAccess),
//! [`TenantAccess`](auth::TenantAccess) with a role, or [`Anyone`](auth::Anyone). Refuses to know passwords' hashes and cookies.

mod api_keys;
mod invitations;
mod model;
mod problem;
mod session;
mod users;

use auth::AuthState;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::AppState;

/// The operations, with paths relative to `/v1`. Only those about sessions begin and end one.
pub(crate) fn router(auth: &AuthState) -> OpenApiRouter<AppState> {
    let sessions = OpenApiRouter::new()
        .routes(routes!(session::log_in, session::show, session::log_out))
        .routes(routes!(session::change_password))
        .layer(auth.session_layer());
    OpenApiRouter::new()
        .merge(sessions)
        .routes(routes!(users::list))
        .routes(routes!(users::change, users::remove))
        .routes(routes!(invitations::invite, invitations::list))
        .routes(routes!(invitations::withdraw))
        .routes(routes!(invitations::accept))
        .routes(routes!(api_keys::create, api_keys::list))
        .routes(routes!(api_keys::revoke))
}
