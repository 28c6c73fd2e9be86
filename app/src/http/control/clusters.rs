//! `GET /control/v1/clusters`, `GET /control/v1/clusters/{name}`

use auth::{OperatorAccess, Read};
use axum::extract::{Path, State};
use tenant_management::ClusterName;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::model::ClusterBody;
use crate::http::{
    AppState,
    json::Json,
    problem::{Problem, ProblemKind},
    query::{Listing, PageParams, Paged},
};

/// The list's name in its cursors.
const LIST: &str = "clusters";

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

/// List clusters
#[utoipa::path(get, path = "/clusters", tag = "clusters", operation_id = "list_clusters", params(PageParams),
    responses((status = OK, description = "One page of clusters, in the order of their names", body = Listing<ClusterBody>))
)]
pub(super) async fn list(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Paged { page, .. }: Paged,
) -> Result<Json<Listing<ClusterBody>>, Problem> {
    let after: Option<String> = page.after(LIST)?;
    // There are few clusters, and an instance has them all in memory.
    let mut clusters = state.control().clusters().await?;
    clusters.retain(|cluster| after.as_deref().is_none_or(|after| cluster.name.as_str() > after));
    let limit = usize::try_from(page.limit).expect("a page has at most 200 items");
    let more = clusters.len() > limit;
    clusters.truncate(limit);
    let last = clusters
        .last()
        .filter(|_| more)
        .map(|cluster| cluster.name.clone());
    Ok(Json(Listing::new(
        LIST,
        clusters.into_iter().map(ClusterBody::from).collect(),
        last,
    )))
}

/// Show a cluster
#[utoipa::path(get, path = "/clusters/{name}", tag = "clusters", operation_id = "show_cluster",
    params(("name" = String, Path, description = "The cluster's name")),
    responses((status = OK, description = "The cluster with its nodes", body = ClusterBody))
)]
pub(super) async fn show(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Json<ClusterBody>, Problem> {
    let unknown = || Problem::new(ProblemKind::NotFound, "there is no cluster with this name");
    let name = ClusterName::parse(&name).map_err(|_| unknown())?;
    let cluster = state.control().cluster(&name).await?.ok_or_else(unknown)?;
    Ok(Json(cluster.into()))
}
