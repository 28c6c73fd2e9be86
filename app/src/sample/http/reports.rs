//! `/v1/reports`

use auth::{Member, TenantAccess, Viewer};
use chrono::Utc;
use serde::Deserialize;

use crate::{
    http::{json::Json, problem::Problem, query::Query},
    sample::{
        domain::{Month, MonthlyReport, ReportSettings},
        store::Reports,
    },
};

/// What is reported.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MonthlyQuery {
    /// The month, in UTC; the current one when absent.
    #[param(value_type = Option<String>, example = "2026-11")]
    month: Option<Month>,
}

/// Report a month
///
/// What the invoices that were made in a month add up to, per currency and status. The numbers may be a little old; the
/// caller's own change of the settings counts at once.
#[utoipa::path(get, path = "/reports/monthly", tag = "reports", operation_id = "report_month", params(MonthlyQuery),
    responses((status = OK, description = "The report", body = MonthlyReport))
)]
pub(super) async fn monthly(
    access: TenantAccess<Viewer>,
    Query(query): Query<MonthlyQuery>,
) -> Result<Json<MonthlyReport>, Problem> {
    let today = Utc::now().date_naive();
    let month = query.month.unwrap_or_else(|| Month::of(today));
    Ok(Json(Reports::new(&access.db).monthly(month, today).await?))
}

/// Choose what reports count
#[utoipa::path(put, path = "/reports/settings", tag = "reports", operation_id = "put_report_settings",
    request_body = ReportSettings,
    responses((status = OK, description = "The settings as they are now", body = ReportSettings))
)]
pub(super) async fn configure(
    access: TenantAccess<Member>,
    Json(settings): Json<ReportSettings>,
) -> Result<Json<ReportSettings>, Problem> {
    Ok(Json(
        Reports::new(&access.db)
            .configure(settings, &access.principal)
            .await?,
    ))
}
