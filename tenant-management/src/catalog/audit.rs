//! What was done to the control plane, and who tried to get in, by whom and from where.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{Catalog, CatalogError};
use crate::{
    audit::CountedAttempts,
    control::{Actor, AuditEvent, AuditFilter, Page},
    ids::TenantUuid,
};

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
        insert into audit_events (actor, action, tenant, subject, request_id, address)
        values ($1, $2, $3, $4, $5, $6)
        "#,
        actor.name,
        action,
        tenant.map(|tenant| tenant.0),
        subject,
        actor.request_id,
        actor.address.map(|address| address.to_string()),
    )
    .execute(transaction)
    .await?;
    Ok(())
}

impl Catalog {
    /// Adds events about attempts that failed, in one statement.
    pub(crate) async fn record_attempts(&self, attempts: &[CountedAttempts]) -> Result<(), CatalogError> {
        let column = |of: fn(&CountedAttempts) -> Option<String>| -> Vec<Option<String>> {
            attempts.iter().map(of).collect()
        };
        let tenants: Vec<Option<uuid::Uuid>> = attempts
            .iter()
            .map(|attempt| attempt.tenant.map(|tenant| tenant.0))
            .collect();
        let times: Vec<i32> = attempts
            .iter()
            .map(|attempt| i32::try_from(attempt.times).unwrap_or(i32::MAX))
            .collect();
        let at: Vec<DateTime<Utc>> = attempts.iter().map(|attempt| attempt.first_at).collect();
        let mut connection = self.connection().await?;
        sqlx::query!(
            r#"
            insert into audit_events (at, actor, action, tenant, subject, request_id, address, times)
            select *
            from unnest($1::timestamptz[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::int[])
            "#,
            &at,
            &column(|attempt| Some(attempt.actor.clone())) as _,
            &column(|attempt| Some(attempt.action.to_owned())) as _,
            &tenants as _,
            &column(|attempt| attempt.subject.clone()) as _,
            &column(|attempt| attempt.request_id.clone()) as _,
            &column(|attempt| attempt.address.map(|address| address.to_string())) as _,
            &times,
        )
        .execute(&mut *connection)
        .await?;
        Ok(())
    }

    /// A page of events, the newest first.
    pub(crate) async fn audit_events(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Page<AuditEvent>, CatalogError> {
        let mut connection = self.connection().await?;
        let rows = sqlx::query!(
            r#"
            select e.id, e.at, e.actor, e.action, t.slug as "tenant?", e.tenant as "uuid: TenantUuid", e.subject,
                e.request_id, e.address, e.times
            from audit_events e
            left join tenants t on t.uuid = e.tenant
            where ($1::bigint is null or e.id < $1)
                and ($2::uuid is null or e.tenant = $2)
                and ($3::text is null or e.actor = $3)
                and ($4::text is null or e.action = $4)
            order by e.id desc
            limit $5
            "#,
            before,
            filter.tenant.map(|tenant| tenant.0),
            filter.actor,
            filter.action,
            i64::from(limit) + 1,
        )
        .fetch_all(&mut *connection)
        .await?;
        let events = rows
            .into_iter()
            .map(|row| AuditEvent {
                id: row.id,
                at: row.at,
                actor: row.actor,
                action: row.action,
                tenant: row.tenant,
                tenant_uuid: row.uuid,
                subject: row.subject,
                request_id: row.request_id,
                address: row.address,
                times: row.times.unsigned_abs(),
            })
            .collect();
        Ok(Page::from_one_more(events, limit))
    }
}
