//! Invoices.

use auth::Principal;
use read_your_writes::Consistency;
use tenant_management::data::{DataError, ReadConnection, TenantDb, WriteTransaction};

use super::{
    audit,
    error::{ChangeInvoiceError, CreateInvoiceError},
    idempotency,
};
use crate::{
    http::idempotency::IdempotencyKey,
    sample::domain::{
        AuditEvent, Cents, Currency, Invoice, InvoiceChange, InvoiceId, InvoiceStatus, Line, NewInvoice,
    },
};

/// One tenant's invoices.
#[derive(Clone, Copy, Debug)]
pub struct Invoices<'t> {
    db: &'t TenantDb,
}

/// Which invoices a list is to show, newest first.
#[derive(Clone, Copy, Debug)]
pub struct InvoicesQuery {
    /// Only invoices with this status.
    pub status: Option<InvoiceStatus>,
    /// Only invoices that come after this one in the list: the last one of the page before.
    pub after: Option<InvoiceId>,
    /// Most invoices of the answer.
    pub limit: i64,
}

/// The answer to a request for a new invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedInvoice {
    /// The invoice as it was when it was made.
    pub invoice: Invoice,
    /// Whether an earlier request with the same idempotency key has made it.
    pub replayed: bool,
}

impl<'t> Invoices<'t> {
    /// The invoices of the tenant whose database this is.
    pub fn new(db: &'t TenantDb) -> Self {
        Self { db }
    }

    /// Makes an invoice. With an idempotency key, the same request again is answered with the invoice that the first one
    /// made.
    pub async fn create(
        &self,
        new: &NewInvoice,
        key: Option<&IdempotencyKey>,
        by: &Principal,
    ) -> Result<CreatedInvoice, CreateInvoiceError> {
        let id = InvoiceId::generate();
        self.db
            .write(async |mut tx| {
                if let Some(key) = key
                    && let Some(earlier) = idempotency::claim(&mut tx, key, new).await?
                {
                    return Ok(CreatedInvoice {
                        invoice: earlier,
                        replayed: true,
                    });
                }
                let invoice = insert(&mut tx, id, new).await?;
                audit::note(&mut tx, by, AuditEvent::InvoiceCreated, Some(&id.to_string())).await?;
                if let Some(key) = key {
                    idempotency::keep(&mut tx, key, &invoice).await?;
                }
                Ok(CreatedInvoice {
                    invoice,
                    replayed: false,
                })
            })
            .await
    }

    /// One page of the list. What a person looks at first shows their last change; pages after it may be a little older.
    pub async fn list(&self, query: &InvoicesQuery) -> Result<Vec<Invoice>, DataError> {
        let level = if query.after.is_none() {
            Consistency::Recent
        } else {
            Consistency::Eventual
        };
        self.db
            .read(level, async |mut conn| Ok(select_page(&mut conn, query).await?))
            .await
    }

    /// The invoice, if there is one.
    pub async fn find(&self, id: InvoiceId) -> Result<Option<Invoice>, DataError> {
        self.db
            .read(Consistency::Recent, async |mut conn| {
                Ok(select(&mut conn, id).await?)
            })
            .await
    }

    /// Changes an invoice and answers what it is then, or `None` when there is none.
    pub async fn change(
        &self,
        id: InvoiceId,
        change: &InvoiceChange,
        by: &Principal,
    ) -> Result<Option<Invoice>, ChangeInvoiceError> {
        self.db
            .write(async |mut tx| {
                let Some(before) = lock(&mut tx, id).await? else {
                    return Ok(None);
                };
                let after = before.after(change)?;
                if after == before {
                    return Ok(Some(before));
                }
                let after = update(&mut tx, &after).await?;
                audit::note(&mut tx, by, AuditEvent::InvoiceChanged, Some(&id.to_string())).await?;
                Ok(Some(after))
            })
            .await
    }
}

/// A query for invoices. The columns are written once, so that every query answers whole invoices.
macro_rules! select_invoices {
    ($clauses:tt $(, $argument:expr)* $(,)?) => {
        sqlx::query_as!(
            Invoice,
            r#"
            select
                id as "id: InvoiceId", customer as "customer: Line", amount_cents as "amount_cents: Cents",
                paid_cents as "paid_cents: Cents", currency as "currency: Currency", status as "status: InvoiceStatus",
                due_on, created_at, updated_at
            from invoices
            "# + $clauses
            $(, $argument)*
        )
    };
}

/// A statement that writes an invoice and answers it as it is then.
macro_rules! write_invoice {
    ($statement:tt $(, $argument:expr)* $(,)?) => {
        sqlx::query_as!(
            Invoice,
            $statement + r#"
            returning
                id as "id: InvoiceId", customer as "customer: Line", amount_cents as "amount_cents: Cents",
                paid_cents as "paid_cents: Cents", currency as "currency: Currency", status as "status: InvoiceStatus",
                due_on, created_at, updated_at
            "#
            $(, $argument)*
        )
    };
}

async fn insert(tx: &mut WriteTransaction, id: InvoiceId, new: &NewInvoice) -> sqlx::Result<Invoice> {
    write_invoice!(
        "insert into invoices (id, customer, amount_cents, currency, due_on) values ($1, $2, $3, $4, $5)",
        id as InvoiceId,
        new.customer.as_str(),
        new.amount_cents.get(),
        new.currency.as_str(),
        new.due_on,
    )
    .fetch_one(tx)
    .await
}

async fn select(conn: &mut ReadConnection, id: InvoiceId) -> sqlx::Result<Option<Invoice>> {
    select_invoices!("where id = $1", id as InvoiceId)
        .fetch_optional(conn)
        .await
}

/// One page, newest first. Two queries, so that each walks the index that fits it.
async fn select_page(conn: &mut ReadConnection, query: &InvoicesQuery) -> sqlx::Result<Vec<Invoice>> {
    let after = query.after.unwrap_or(InvoiceId::AFTER_ALL);
    match query.status {
        None => {
            select_invoices!(
                "where id < $1 order by id desc limit $2",
                after as InvoiceId,
                query.limit
            )
            .fetch_all(conn)
            .await
        }
        Some(status) => {
            select_invoices!(
                "where status = $1 and id < $2 order by id desc limit $3",
                status as InvoiceStatus,
                after as InvoiceId,
                query.limit,
            )
            .fetch_all(conn)
            .await
        }
    }
}

/// Reads an invoice that is about to change, so that changes of it happen one after the other.
pub(super) async fn lock(tx: &mut WriteTransaction, id: InvoiceId) -> sqlx::Result<Option<Invoice>> {
    select_invoices!("where id = $1 for update", id as InvoiceId)
        .fetch_optional(tx)
        .await
}

/// Writes an invoice that was [locked](lock) and changed.
pub(super) async fn update(tx: &mut WriteTransaction, after: &Invoice) -> sqlx::Result<Invoice> {
    write_invoice!(
        r#"
        update invoices
        set customer = $2, amount_cents = $3, paid_cents = $4, status = $5, due_on = $6, updated_at = now()
        where id = $1
        "#,
        after.id as InvoiceId,
        after.customer.as_str(),
        after.amount_cents.get(),
        after.paid_cents.get(),
        after.status as InvoiceStatus,
        after.due_on,
    )
    .fetch_one(tx)
    .await
}
