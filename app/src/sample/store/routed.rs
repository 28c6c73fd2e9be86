//! Invoices of whichever tenant the request is for.

use auth::Principal;
use tenant_management::data::{DataError, context};

use super::{
    error::{ChangeInvoiceError, CreateInvoiceError, RoutedError},
    invoices::{CreatedInvoice, Invoices, InvoicesQuery},
};
use crate::{
    http::idempotency::IdempotencyKey,
    sample::domain::{Invoice, InvoiceChange, InvoiceId, NewInvoice},
};

/// A repository of invoices that knows no tenant: it finds the tenant in the request's context and then does what
/// [`Invoices`] does. Outside a request it answers an error; a spawned task has to bring its tenant along.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoutedInvoices;

impl RoutedInvoices {
    /// See [`Invoices::create`].
    pub async fn create(
        &self,
        new: &NewInvoice,
        key: Option<&IdempotencyKey>,
        by: &Principal,
    ) -> Result<CreatedInvoice, RoutedError<CreateInvoiceError>> {
        let db = context::current()?;
        Invoices::new(&db)
            .create(new, key, by)
            .await
            .map_err(RoutedError::Failed)
    }

    /// See [`Invoices::list`].
    pub async fn list(&self, query: &InvoicesQuery) -> Result<Vec<Invoice>, RoutedError<DataError>> {
        let db = context::current()?;
        Invoices::new(&db).list(query).await.map_err(RoutedError::Failed)
    }

    /// See [`Invoices::find`].
    pub async fn find(&self, id: InvoiceId) -> Result<Option<Invoice>, RoutedError<DataError>> {
        let db = context::current()?;
        Invoices::new(&db).find(id).await.map_err(RoutedError::Failed)
    }

    /// See [`Invoices::change`].
    pub async fn change(
        &self,
        id: InvoiceId,
        change: &InvoiceChange,
        by: &Principal,
    ) -> Result<Option<Invoice>, RoutedError<ChangeInvoiceError>> {
        let db = context::current()?;
        Invoices::new(&db)
            .change(id, change, by)
            .await
            .map_err(RoutedError::Failed)
    }
}
