//! `/v1/invoices`, by per-tenant data-access objects.

use auth::{Member, TenantAccess, Viewer};
use axum::{extract::Path, response::IntoResponse};
use http::{StatusCode, header::LOCATION};
use serde::Deserialize;

use super::problem::no_such_invoice;
use crate::{
    http::{
        idempotency::{IdempotencyKey, REPLAYED},
        json::Json,
        problem::{Problem, ProblemKind},
        query::{Listing, Page, PageParams, Paged},
    },
    sample::{
        domain::{Invoice, InvoiceChange, InvoiceId, InvoiceStatus, NewInvoice},
        store::{CreatedInvoice, Invoices, InvoicesQuery},
    },
};

/// Which invoices a list shows.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct InvoiceFilter {
    /// Only invoices with this status.
    status: Option<InvoiceStatus>,
}

impl InvoiceFilter {
    /// The query, with one invoice more than the page has: its presence says that there is a next page.
    pub(super) fn query(self, page: &Page) -> Result<InvoicesQuery, Problem> {
        let after = page.after(&self.list())?;
        Ok(InvoicesQuery {
            status: self.status,
            after,
            limit: i64::from(page.limit) + 1,
        })
    }

    /// The page.
    pub(super) fn page(self, page: &Page, invoices: Vec<Invoice>) -> Listing<Invoice> {
        super::listing(&self.list(), page, invoices, |invoice| invoice.id)
    }

    /// The list's name. A cursor is for one filter: another one would skip invoices.
    fn list(self) -> String {
        self.status
            .map_or_else(|| "invoices".to_owned(), |status| format!("invoices {status}"))
    }
}

/// The id in a path. What is no id names no invoice.
pub(super) fn invoice_id(text: &str) -> Result<InvoiceId, Problem> {
    text.parse().map_err(|_| no_such_invoice())
}

/// The answer to a request for a new invoice.
pub(super) fn created_below(
    path: &str,
    CreatedInvoice { invoice, replayed }: CreatedInvoice,
) -> impl IntoResponse + use<> {
    let location = [(LOCATION, format!("{path}/{}", invoice.id))];
    let replayed = replayed.then_some([(REPLAYED, "true")]);
    (StatusCode::CREATED, location, replayed, Json(invoice))
}

/// A change that names something to change. Nothing to change is a mistake, and most likely a misspelt request.
pub(super) fn some_change(change: InvoiceChange) -> Result<InvoiceChange, Problem> {
    if change.is_empty() {
        let detail =
            "the change names no field; name at least one of customer, amount_cents, due_on and status";
        return Err(Problem::new(ProblemKind::InvalidBody, detail));
    }
    Ok(change)
}

/// Make an invoice
#[utoipa::path(post, path = "/invoices", tag = "invoices", operation_id = "create_invoice",
    params(IdempotencyKey), request_body = NewInvoice,
    responses(
        (status = CREATED, description = "The new invoice, or the one that the same request made before", body = Invoice,
            headers(("Location" = String, description = "Where the invoice is"))),
    )
)]
pub(super) async fn create(
    access: TenantAccess<Member>,
    key: Option<IdempotencyKey>,
    Json(new): Json<NewInvoice>,
) -> Result<impl IntoResponse, Problem> {
    let created = Invoices::new(&access.db)
        .create(&new, key.as_ref(), &access.principal)
        .await?;
    Ok(created_below("/v1/invoices", created))
}

/// List invoices
///
/// Newest first. The first page shows the caller's own last change; later ones may be a little older.
#[utoipa::path(get, path = "/invoices", tag = "invoices", operation_id = "list_invoices",
    params(PageParams, InvoiceFilter),
    responses((status = OK, description = "One page of invoices", body = Listing<Invoice>))
)]
pub(super) async fn list(
    access: TenantAccess<Viewer>,
    Paged { page, filter }: Paged<InvoiceFilter>,
) -> Result<Json<Listing<Invoice>>, Problem> {
    let invoices = Invoices::new(&access.db).list(&filter.query(&page)?).await?;
    Ok(Json(filter.page(&page, invoices)))
}

/// Show an invoice
#[utoipa::path(get, path = "/invoices/{id}", tag = "invoices", operation_id = "show_invoice",
    params(("id" = Uuid, Path, description = "The invoice's id")),
    responses((status = OK, description = "The invoice", body = Invoice))
)]
pub(super) async fn show(
    access: TenantAccess<Viewer>,
    Path(id): Path<String>,
) -> Result<Json<Invoice>, Problem> {
    let invoice = Invoices::new(&access.db).find(invoice_id(&id)?).await?;
    invoice.map(Json).ok_or_else(no_such_invoice)
}

/// Change an invoice
///
/// Open invoices can be changed, settled by hand and taken back. A change that has already been made is no error.
#[utoipa::path(patch, path = "/invoices/{id}", tag = "invoices", operation_id = "change_invoice",
    params(("id" = Uuid, Path, description = "The invoice's id")), request_body = InvoiceChange,
    responses((status = OK, description = "The invoice after the change", body = Invoice))
)]
pub(super) async fn change(
    access: TenantAccess<Member>,
    Path(id): Path<String>,
    Json(change): Json<InvoiceChange>,
) -> Result<Json<Invoice>, Problem> {
    let change = some_change(change)?;
    let invoice = Invoices::new(&access.db)
        .change(invoice_id(&id)?, &change, &access.principal)
        .await?;
    invoice.map(Json).ok_or_else(no_such_invoice)
}
