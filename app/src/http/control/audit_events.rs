//! `GET /control/v1/audit-events`

use auth::{OperatorAccess, Read};
use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use tenant_management::{
    TenantUuid,
    control::{AuditEvent, AuditFilter},
};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::http::{
    AppState,
    json::Json,
    problem::Problem,
    query::{Listing, PageParams, Paged},
};

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which events a list shows.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventFilter {
    /// Only what concerns the tenant with this `uuid`, also when the tenant is gone: a name can have had several tenants.
    tenant: Option<uuid::Uuid>,
    /// Only what this one did, such as `operator:configured`.
    actor: Option<String>,
    /// Only this, such as `api-key.revoke`.
    action: Option<String>,
}

/// Something that was done, or tried.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ControlAuditEvent)]
pub(super) struct EventBody {
    /// Events are numbered in the order in which they were written.
    #[schema(examples("1042"))]
    id: String,
    /// When. Attempts that look the same are counted together, under the time of the first.
    at: DateTime<Utc>,
    /// Who: `operator:<name>`, `api-key:<id>`, `user:<id>`, `jwt:<issuer>#<subject>`; `unknown` when that could not be found
    /// out.
    #[schema(examples("operator:configured"))]
    actor: String,
    /// What.
    #[schema(examples("tenant.suspend", "authentication.revoked"))]
    action: String,
    /// In which tenant, by its public name.
    #[schema(examples("acme"))]
    tenant: Option<String>,
    /// In which tenant, by its immutable identity.
    #[schema(value_type = Option<uuid::Uuid>)]
    tenant_uuid: Option<TenantUuid>,
    /// What it was done to, by its id.
    subject: Option<String>,
    /// The request.
    request_id: Option<String>,
    /// Where the request came from.
    #[schema(examples("192.0.2.7"))]
    address: Option<String>,
    /// How often.
    times: u32,
}

impl From<AuditEvent> for EventBody {
    fn from(event: AuditEvent) -> Self {
        Self {
            id: event.id.to_string(),
            at: event.at,
            actor: event.actor,
            action: event.action,
            tenant: event.tenant,
            tenant_uuid: event.tenant_uuid,
            subject: event.subject,
            request_id: event.request_id,
            address: event.address,
            times: event.times,
        }
    }
}

/// List what was done in the control plane
///
/// Every change, and every attempt to get in with a credential that was not good; the newest first. Attempts are in the list
/// about a second later.
#[utoipa::path(get, path = "/audit-events", tag = "operators", operation_id = "list_audit_events",
    params(PageParams, EventFilter),
    responses((status = OK, description = "One page of events, the newest first", body = Listing<EventBody>))
)]
pub(super) async fn list(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Paged { page, filter }: Paged<EventFilter>,
) -> Result<Json<Listing<EventBody>>, Problem> {
    let list = format!("audit-events {filter:?}");
    let before: Option<i64> = page.after(&list)?;
    let filter = AuditFilter {
        tenant: filter.tenant.map(TenantUuid),
        actor: filter.actor,
        action: filter.action,
    };
    let events = state.control().audit_events(&filter, before, page.limit).await?;
    let last = events.items.last().filter(|_| events.more).map(|event| event.id);
    let items = events.items.into_iter().map(EventBody::from).collect();
    Ok(Json(Listing::new(&list, items, last)))
}
