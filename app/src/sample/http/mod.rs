//! The tenant's own API below `/v1`: one file per operation or small family.
//!
//! A handler extracts, makes one call and answers. Who may call it stands in its signature ([`TenantAccess`]); what the call
//! reads and how fresh that is stands in the store. Refuses to know SQL.
//!
//! [`TenantAccess`]: auth::TenantAccess

mod audit_log;
mod invoices;
mod payments;
mod problem;
mod profile;
mod reports;
mod routed;
mod whoami;

use std::fmt;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::http::{
    AppState,
    query::{Listing, Page},
};

/// The operations, with paths relative to `/v1`. The state is needed by the layer that puts a request's tenant in scope.
pub fn router(state: &AppState) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(whoami::whoami))
        .routes(routes!(invoices::create, invoices::list))
        .routes(routes!(invoices::show, invoices::change))
        .routes(routes!(profile::show, profile::put))
        .routes(routes!(reports::monthly))
        .routes(routes!(reports::configure))
        .routes(routes!(audit_log::list))
        .routes(routes!(payments::receive))
        .merge(routed::router(state))
}

/// A page of a list, of which one item more than the page has was read: its presence says that there is a next page.
fn listing<T, K: fmt::Display>(
    list: &str,
    page: &Page,
    mut items: Vec<T>,
    key: impl Fn(&T) -> K,
) -> Listing<T> {
    let size = usize::try_from(page.limit).expect("a page has at most 200 items");
    let more = items.len() > size;
    items.truncate(size);
    let last = items.last().filter(|_| more).map(key);
    Listing::new(list, items, last)
}
