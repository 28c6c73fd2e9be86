//! Payments.

use auth::Principal;
use read_your_writes::Consistency;
use sqlx::PgExecutor;
use tenant_management::data::{TenantDb, WriteTransaction};

use super::{audit, error::PaymentError, invoices};
use crate::sample::domain::{AuditEvent, Cents, InvoiceId, Line, Payment, RecordedPayment};

/// One tenant's payments.
#[derive(Clone, Copy, Debug)]
pub struct Payments<'t> {
    db: &'t TenantDb,
}

impl<'t> Payments<'t> {
    /// The payments of the tenant whose database this is.
    pub fn new(db: &'t TenantDb) -> Self {
        Self { db }
    }

    /// Records a payment and what it does to its invoice, once: the same payment again is answered like the first time.
    ///
    /// Payment services report a payment again and again until they get an answer, so the repetition is looked for first,
    /// on the primary: a replica might not know the payment yet.
    pub async fn record(&self, payment: &Payment, by: &Principal) -> Result<RecordedPayment, PaymentError> {
        let earlier = self
            .db
            .read(Consistency::Strict, async |mut conn| {
                Ok::<_, PaymentError>(select(&mut conn, &payment.reference).await?)
            })
            .await?;
        if let Some(earlier) = earlier {
            return Ok(earlier.if_same_as(payment)?);
        }
        self.db
            .write(async |mut tx| {
                let invoice = invoices::lock(&mut tx, payment.invoice_id)
                    .await?
                    .ok_or(PaymentError::UnknownInvoice)?;
                let Some(recorded) = insert(&mut tx, payment).await? else {
                    // Another request recorded it since the read above.
                    let earlier = select(&mut tx, &payment.reference).await?;
                    return Ok(earlier.ok_or(sqlx::Error::RowNotFound)?.if_same_as(payment)?);
                };
                invoices::update(&mut tx, &invoice.after_payment(payment.amount_cents)?).await?;
                let reference = payment.reference.as_str();
                audit::note(&mut tx, by, AuditEvent::PaymentReceived, Some(reference)).await?;
                Ok(recorded)
            })
            .await
    }
}

/// Adds the payment, unless its reference is taken. Waits for a transaction that is about to take it.
async fn insert(tx: &mut WriteTransaction, payment: &Payment) -> sqlx::Result<Option<RecordedPayment>> {
    sqlx::query_as!(
        RecordedPayment,
        r#"
        insert into payments (reference, invoice_id, amount_cents)
        values ($1, $2, $3)
        on conflict (reference) do nothing
        returning
            invoice_id as "invoice_id: InvoiceId", amount_cents as "amount_cents: Cents",
            reference as "reference: Line", received_at
        "#,
        payment.reference.as_str(),
        payment.invoice_id as InvoiceId,
        payment.amount_cents.get(),
    )
    .fetch_optional(tx)
    .await
}

async fn select(conn: impl PgExecutor<'_>, reference: &Line) -> sqlx::Result<Option<RecordedPayment>> {
    sqlx::query_as!(
        RecordedPayment,
        r#"
        select
            invoice_id as "invoice_id: InvoiceId", amount_cents as "amount_cents: Cents",
            reference as "reference: Line", received_at
        from payments
        where reference = $1
        "#,
        reference.as_str(),
    )
    .fetch_optional(conn)
    .await
}
