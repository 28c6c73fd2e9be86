//! What was done to the control plane, by whom.

use sqlx::PgConnection;

use super::CatalogError;
use crate::{control::Actor, ids::TenantUuid};

/// Adds an event within the transaction of what it tells.
pub(super) async fn record(
    transaction: &mut PgConnection,
    actor: &Actor,
    action: &str,
    tenant: Option<TenantUuid>,
    subject: Option<&str>,
) -> Result<(), CatalogError> {
    sqlx::query!(
        r#"
        insert into audit_events (actor, action, tenant, subject, request_id)
        values ($1, $2, $3, $4, $5)
        "#,
        actor.name,
        action,
        tenant.map(|tenant| tenant.0),
        subject,
        actor.request_id,
    )
    .execute(transaction)
    .await?;
    Ok(())
}
