//! `GET /control/v1/instances`

use auth::{OperatorAccess, Read};
use axum::extract::State;
use tenant_management::InstanceId;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::model::InstanceBody;
use crate::http::{
    AppState,
    json::Json,
    problem::Problem,
    query::{Listing, PageParams, Paged},
};

/// The list's name in its cursors.
const LIST: &str = "instances";

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list))
}

/// List instances
///
/// Those that live, and for an hour those that went without a farewell.
#[utoipa::path(get, path = "/instances", tag = "instances", operation_id = "list_instances", params(PageParams),
    responses((status = OK, description = "One page of instances, in the order of their start", body = Listing<InstanceBody>))
)]
pub(super) async fn list(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Paged { page, .. }: Paged,
) -> Result<Json<Listing<InstanceBody>>, Problem> {
    let after: Option<uuid::Uuid> = page.after(LIST)?;
    let instances = state
        .control()
        .instances(after.map(InstanceId), page.limit)
        .await?;
    let last = instances
        .items
        .last()
        .filter(|_| instances.more)
        .map(|instance| instance.id.0);
    let items = instances.items.into_iter().map(InstanceBody::from).collect();
    Ok(Json(Listing::new(LIST, items, last)))
}
