//! Reports, and what they count.

use std::ops::Range;

use auth::Principal;
use chrono::{DateTime, NaiveDate, Utc};
use read_your_writes::Consistency;
use tenant_management::data::{DataError, ReadConnection, TenantDb};

use super::audit;
use crate::sample::domain::{
    AuditEvent, Currency, InvoiceStatus, Month, MonthlyReport, MonthlyTotal, ReportSettings,
};

/// One tenant's reports.
#[derive(Clone, Copy, Debug)]
pub struct Reports<'t> {
    db: &'t TenantDb,
}

impl<'t> Reports<'t> {
    /// The reports of the tenant whose database this is.
    pub fn new(db: &'t TenantDb) -> Self {
        Self { db }
    }

    /// What the invoices of a month add up to. The numbers may be a little old; but the report must not contradict what the
    /// caller has just chosen, so their own writes count. Settings and numbers are of one moment.
    pub async fn monthly(&self, month: Month, today: NaiveDate) -> Result<MonthlyReport, DataError> {
        self.db
            .snapshot(Consistency::Eventual.and_own_writes(), async |mut conn| {
                let settings = select_settings(&mut conn).await?;
                let ReportSettings { include_today } = settings.unwrap_or_default();
                let moments = month.moments((!include_today).then_some(today));
                let totals = select_totals(&mut conn, &moments).await?;
                Ok(MonthlyReport {
                    month,
                    include_today,
                    totals,
                })
            })
            .await
    }

    /// Changes what reports count.
    pub async fn configure(
        &self,
        settings: ReportSettings,
        by: &Principal,
    ) -> Result<ReportSettings, DataError> {
        self.db
            .write(async |mut tx| {
                let settings = sqlx::query_as!(
                    ReportSettings,
                    r#"
                    insert into report_settings (include_today)
                    values ($1)
                    on conflict (only_row) do update
                    set include_today = excluded.include_today, updated_at = now()
                    returning include_today
                    "#,
                    settings.include_today,
                )
                .fetch_one(&mut tx)
                .await?;
                audit::note(&mut tx, by, AuditEvent::ReportSettingsChanged, None).await?;
                Ok(settings)
            })
            .await
    }
}

async fn select_settings(conn: &mut ReadConnection) -> sqlx::Result<Option<ReportSettings>> {
    sqlx::query_as!(ReportSettings, "select include_today from report_settings")
        .fetch_optional(conn)
        .await
}

async fn select_totals(
    conn: &mut ReadConnection,
    moments: &Range<DateTime<Utc>>,
) -> sqlx::Result<Vec<MonthlyTotal>> {
    sqlx::query_as!(
        MonthlyTotal,
        r#"
        select
            currency as "currency: Currency", status as "status: InvoiceStatus", count(*) as "invoices!",
            sum(amount_cents)::bigint as "amount_cents!", sum(paid_cents)::bigint as "paid_cents!"
        from invoices
        where created_at >= $1 and created_at < $2
        group by currency, status
        order by currency, status
        "#,
        moments.start,
        moments.end,
    )
    .fetch_all(conn)
    .await
}
