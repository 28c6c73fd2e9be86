//! `GET /control/v1/tenants`

use std::str::FromStr;

use auth::{OperatorAccess, Read};
use axum::extract::State;
use serde::Deserialize;
use tenant_management::{ClusterName, InvalidTenantId, TenantId, TenantState, control::TenantFilter};

use crate::http::{
    AppState,
    control::model::TenantBody,
    json::Json,
    problem::Problem,
    query::{Listing, PageParams, Paged},
};

/// The list's name in its cursors.
const LIST: &str = "tenants";

/// Which tenants a list shows.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only tenants in this state.
    #[param(value_type = Option<String>, example = "CREATED")]
    state: Option<TenantState>,
    /// Only tenants on this cluster.
    #[param(value_type = Option<String>, example = "main")]
    cluster: Option<ClusterName>,
    /// Only tenants with this label: `key`, or `key=value`.
    #[param(example = "tier=gold")]
    label: Option<String>,
}

impl From<Filter> for TenantFilter {
    fn from(filter: Filter) -> Self {
        let label = filter.label.map(|label| match label.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (label, None),
        });
        Self {
            state: filter.state,
            cluster: filter.cluster,
            label,
        }
    }
}

/// The key of the list: a tenant's id.
struct After(TenantId);

impl FromStr for After {
    type Err = InvalidTenantId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        TenantId::parse_new(text).map(Self)
    }
}

/// List tenants
#[utoipa::path(get, path = "/tenants", tag = "tenants", operation_id = "list_tenants", params(PageParams, Filter),
    responses((status = OK, description = "One page of tenants, in the order of their ids", body = Listing<TenantBody>))
)]
pub(crate) async fn list(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Paged { page, filter }: Paged<Filter>,
) -> Result<Json<Listing<TenantBody>>, Problem> {
    let after = page.after::<After>(LIST)?;
    let tenants = state
        .control()
        .tenants(
            &filter.into(),
            after.as_ref().map(|After(id)| id.as_str()),
            page.limit,
        )
        .await?;
    let last: Option<TenantId> = tenants
        .items
        .last()
        .filter(|_| tenants.more)
        .map(|tenant| tenant.id);
    Ok(Json(Listing::new(
        LIST,
        tenants.items.into_iter().map(TenantBody::from).collect(),
        last,
    )))
}
