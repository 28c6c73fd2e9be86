//! `GET /control/v1/clusters/{name}/orphans`

use auth::{OperatorAccess, Read};
use axum::extract::{Path, State};
use serde::Serialize;
use tenant_management::{ClusterName, OrphanReport};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::http::{
    AppState,
    json::Json,
    problem::{Problem, ProblemKind},
};

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(report))
}

/// What does not fit together between a cluster and the catalog. Nothing is ever dropped because of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrphanReport)]
struct OrphanReportBody {
    /// Databases in the form of a tenant's that the catalog does not know.
    databases: Vec<String>,
    /// Roles in the form of a tenant's that the catalog does not know.
    roles: Vec<String>,
    /// Databases of tenants and spares that should be there and are not.
    missing_databases: Vec<String>,
}

impl From<OrphanReport> for OrphanReportBody {
    fn from(report: OrphanReport) -> Self {
        let names = |uuids: Vec<tenant_management::TenantUuid>| {
            uuids
                .into_iter()
                .map(tenant_management::TenantUuid::physical_name)
                .collect()
        };
        Self {
            databases: names(report.databases),
            roles: names(report.roles),
            missing_databases: names(report.missing_databases),
        }
    }
}

/// Compare a cluster with the catalog
#[utoipa::path(get, path = "/clusters/{name}/orphans", tag = "clusters", operation_id = "report_orphans",
    params(("name" = String, Path, description = "The cluster's name")),
    responses((status = OK, description = "What belongs to nobody, and what is missing", body = OrphanReportBody))
)]
async fn report(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Json<OrphanReportBody>, Problem> {
    let unknown = || Problem::new(ProblemKind::NotFound, "there is no cluster with this name");
    let name = ClusterName::parse(&name).map_err(|_| unknown())?;
    let report = state.control().orphans(&name).await?.ok_or_else(unknown)?;
    Ok(Json(report.into()))
}
