//! The control plane below `/control/v1`, for operators: one file per operation or small family.
//!
//! A handler extracts, makes one call of the control plane and answers. What an operator has to be allowed to do stands in its
//! signature ([`OperatorAccess`](auth::OperatorAccess)).

mod api_keys;
mod audit_events;
mod clusters;
mod instances;
pub(crate) mod model;
mod operations;
mod operator_tokens;
mod orphans;
mod tenants;

use tenant_management::TenantId;
use utoipa_axum::router::OpenApiRouter;

use super::{
    AppState,
    problem::{Problem, ProblemKind},
};

/// Where the control plane's paths begin.
pub(crate) const PREFIX: &str = "/control/v1";

/// The operations, with paths relative to [`PREFIX`].
pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(tenants::router())
        .merge(api_keys::router())
        .merge(operations::router())
        .merge(clusters::router())
        .merge(orphans::router())
        .merge(instances::router())
        .merge(operator_tokens::router())
        .merge(audit_events::router())
}

/// The tenant that a path names. What can be no tenant's id names no tenant.
fn tenant_id(text: &str) -> Result<TenantId, Problem> {
    TenantId::parse_reference(text).map_err(|_| unknown_tenant())
}

fn unknown_tenant() -> Problem {
    Problem::new(ProblemKind::UnknownTenant, "there is no tenant with this id")
}
