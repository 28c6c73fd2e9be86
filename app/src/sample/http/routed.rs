//! `/v1/routed/invoices`: the operations of `/v1/invoices` by a routed repository, which finds its tenant in the request's
//! context. For comparing the two ways; the other one is the way to prefer.

use auth::{Member, TenantAccess, Viewer};
use axum::{
    extract::{Path, Request},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use tenant_management::data::context;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    invoices::{InvoiceFilter, created_below, invoice_id, some_change},
    problem::no_such_invoice,
};
use crate::{
    http::{
        AppState,
        idempotency::IdempotencyKey,
        json::Json,
        problem::Problem,
        query::{Listing, PageParams, Paged},
    },
    sample::{
        domain::{Invoice, InvoiceChange, NewInvoice},
        store::RoutedInvoices,
    },
};

/// The operations, each with its request's tenant in scope.
pub(super) fn router(state: &AppState) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(show, change))
        .route_layer(from_fn_with_state(state.clone(), in_scope))
}

/// Puts the request's tenant in scope. What the caller may do beyond reading is for the handler to ask.
async fn in_scope(access: TenantAccess<Viewer>, request: Request, next: Next) -> Response {
    context::scope(access.db, next.run(request)).await
}

/// Make an invoice (routed)
#[utoipa::path(post, path = "/routed/invoices", tag = "routed", operation_id = "create_invoice_routed",
    params(IdempotencyKey), request_body = NewInvoice,
    responses(
        (status = CREATED, description = "The new invoice, or the one that the same request made before", body = Invoice,
            headers(("Location" = String, description = "Where the invoice is"))),
    )
)]
async fn create(
    access: TenantAccess<Member>,
    key: Option<IdempotencyKey>,
    Json(new): Json<NewInvoice>,
) -> Result<impl IntoResponse, Problem> {
    let created = RoutedInvoices
        .create(&new, key.as_ref(), &access.principal)
        .await?;
    Ok(created_below("/v1/routed/invoices", created))
}

/// List invoices (routed)
#[utoipa::path(get, path = "/routed/invoices", tag = "routed", operation_id = "list_invoices_routed",
    params(PageParams, InvoiceFilter),
    responses((status = OK, description = "One page of invoices", body = Listing<Invoice>))
)]
async fn list(
    _: TenantAccess<Viewer>,
    Paged { page, filter }: Paged<InvoiceFilter>,
) -> Result<Json<Listing<Invoice>>, Problem> {
    let invoices = RoutedInvoices.list(&filter.query(&page)?).await?;
    Ok(Json(filter.page(&page, invoices)))
}

/// Show an invoice (routed)
#[utoipa::path(get, path = "/routed/invoices/{id}", tag = "routed", operation_id = "show_invoice_routed",
    params(("id" = Uuid, Path, description = "The invoice's id")),
    responses((status = OK, description = "The invoice", body = Invoice))
)]
async fn show(_: TenantAccess<Viewer>, Path(id): Path<String>) -> Result<Json<Invoice>, Problem> {
    let invoice = RoutedInvoices.find(invoice_id(&id)?).await?;
    invoice.map(Json).ok_or_else(no_such_invoice)
}

/// Change an invoice (routed)
#[utoipa::path(patch, path = "/routed/invoices/{id}", tag = "routed", operation_id = "change_invoice_routed",
    params(("id" = Uuid, Path, description = "The invoice's id")), request_body = InvoiceChange,
    responses((status = OK, description = "The invoice after the change", body = Invoice))
)]
async fn change(
    access: TenantAccess<Member>,
    Path(id): Path<String>,
    Json(change): Json<InvoiceChange>,
) -> Result<Json<Invoice>, Problem> {
    let invoice = RoutedInvoices
        .change(invoice_id(&id)?, &some_change(change)?, &access.principal)
        .await?;
    invoice.map(Json).ok_or_else(no_such_invoice)
}
