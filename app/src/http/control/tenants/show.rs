//! `GET /control/v1/tenants/{id}`

use auth::{OperatorAccess, Read};
use axum::{
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use tenant_management::Revision;

use crate::http::{
    AppState,
    control::{model::TenantBody, tenant_id, unknown_tenant},
    json::Json,
    problem::Problem,
};

/// Show a tenant
#[utoipa::path(get, path = "/tenants/{id}", tag = "tenants", operation_id = "show_tenant",
    params(
        ("id" = String, Path, description = "The tenant's id"),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of an earlier answer"),
    ),
    responses(
        (status = OK, description = "The tenant", body = TenantBody,
            headers(("ETag" = String, description = "Changes with every change of the tenant"))),
        (status = NOT_MODIFIED, description = "Nothing has changed since the answer with this `ETag`",
            headers(("ETag" = String, description = "The same as in the request"))),
    )
)]
pub(crate) async fn show(
    _: OperatorAccess<Read>,
    State(state): State<AppState>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let tenant = state
        .control()
        .tenant(&tenant_id(&id)?)
        .await?
        .ok_or_else(unknown_tenant)?;
    let etag = [(header::ETAG, etag(tenant.revision))];
    if matches(&headers, &etag[0].1) {
        return Ok((StatusCode::NOT_MODIFIED, etag).into_response());
    }
    Ok((etag, Json(TenantBody::from(tenant))).into_response())
}

/// A tenant's validator: the revision that last changed it.
fn etag(revision: Revision) -> String {
    format!("\"{revision}\"")
}

/// Whether `If-None-Match` names this validator, by weak comparison (RFC 9110, section 13.1.2).
fn matches(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == etag)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_validator_is_one_of_a_list() {
        let given = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_static(value))]);
            matches(&headers, &etag(Revision(17)))
        };
        assert!(given("\"17\"") && given("W/\"17\"") && given("\"1\", \"17\"") && given("*"));
        assert!(!given("\"1\"") && !given("17") && !given(""));
        assert!(!matches(&HeaderMap::new(), "\"17\""));
    }
}
