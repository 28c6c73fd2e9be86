//! `GET /control/v1/operations/{id}`

use auth::{OperatorAccess, Read};
use axum::extract::{Path, State};
use tenant_management::OperationId;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::model::OperationBody;
use crate::http::{
    AppState,
    json::Json,
    problem::{Problem, ProblemKind},
};

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(show))
}

/// Show an operation
#[utoipa::path(get, path = "/operations/{id}", tag = "operations", operation_id = "show_operation",
    params(("id" = Uuid, Path, description = "The operation's id")),
    responses((status = OK, description = "How far it has got", body = OperationBody))
)]
pub(super) async fn show(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<OperationBody>, Problem> {
    let unknown = || Problem::new(ProblemKind::NotFound, "there is no operation with this id");
    let id = Uuid::try_parse(&id).map(OperationId).map_err(|_| unknown())?;
    let operation = state.control().operation(id).await?.ok_or_else(unknown)?;
    Ok(Json(operation.into()))
}
