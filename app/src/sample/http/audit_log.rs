//! `GET /v1/audit-log`

use auth::{TenantAccess, Viewer};

use crate::{
    http::{
        json::Json,
        problem::Problem,
        query::{Listing, PageParams, Paged},
    },
    sample::{domain::AuditEntry, store::AuditLog},
};

/// The list's name in its cursors.
const LIST: &str = "audit-log";

/// List who did what
///
/// Newest first. May be a little old.
#[utoipa::path(get, path = "/audit-log", tag = "audit", operation_id = "list_audit_log", params(PageParams),
    responses((status = OK, description = "One page of the log", body = Listing<AuditEntry>))
)]
pub(super) async fn list(
    access: TenantAccess<Viewer>,
    Paged { page, .. }: Paged,
) -> Result<Json<Listing<AuditEntry>>, Problem> {
    let entries = AuditLog::new(&access.db)
        .list(page.after(LIST)?, i64::from(page.limit) + 1)
        .await?;
    Ok(Json(super::listing(LIST, &page, entries, |entry| entry.id)))
}
