//! The audit log. Rows are added in the transaction of what they tell, and never changed.

use auth::Principal;
use read_your_writes::Consistency;
use tenant_management::data::{DataError, TenantDb, WriteTransaction};

use crate::sample::domain::{AuditEntry, AuditEntryId, AuditEvent};

/// One tenant's audit log.
#[derive(Clone, Copy, Debug)]
pub struct AuditLog<'t> {
    db: &'t TenantDb,
}

impl<'t> AuditLog<'t> {
    /// The log of the tenant whose database this is.
    pub fn new(db: &'t TenantDb) -> Self {
        Self { db }
    }

    /// One page, newest first, of what comes after `after` in the list.
    pub async fn list(&self, after: Option<AuditEntryId>, limit: i64) -> Result<Vec<AuditEntry>, DataError> {
        let after = after.unwrap_or(AuditEntryId::AFTER_ALL);
        self.db
            .read(Consistency::Eventual, async |mut conn| {
                let entries = sqlx::query_as!(
                    AuditEntry,
                    r#"
                    select id as "id: AuditEntryId", at, principal, action, subject
                    from audit_log
                    where id < $1
                    order by id desc
                    limit $2
                    "#,
                    after as AuditEntryId,
                    limit,
                )
                .fetch_all(&mut conn)
                .await?;
                Ok(entries)
            })
            .await
    }
}

/// Adds what is being done in this transaction.
pub(super) async fn note(
    tx: &mut WriteTransaction,
    by: &Principal,
    event: AuditEvent,
    subject: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into audit_log (principal, action, subject) values ($1, $2, $3)",
        by.to_string(),
        event.to_string(),
        subject,
    )
    .execute(tx)
    .await
    .map(drop)
}
