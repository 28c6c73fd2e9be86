//! Why a command of the sample feature was not carried out.

use tenant_management::data::{DataError, context::NoTenantInContext};

use crate::sample::domain::{InvoiceChangeRefused, PaymentRefused};

/// Why no invoice was made.
#[derive(Debug, thiserror::Error)]
pub enum CreateInvoiceError {
    /// The idempotency key was used for another request.
    #[error("this idempotency key was used for another request")]
    KeyTaken,
    /// The database.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// Why an invoice was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeInvoiceError {
    /// The change does not fit the invoice.
    #[error(transparent)]
    Refused(#[from] InvoiceChangeRefused),
    /// The database.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// Why a payment was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum PaymentError {
    /// There is no such invoice.
    #[error("there is no such invoice")]
    UnknownInvoice,
    /// The payment does not fit.
    #[error(transparent)]
    Refused(#[from] PaymentRefused),
    /// The database.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// Why a routed repository did not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
pub enum RoutedError<E> {
    /// It was asked outside of a request: a mistake in the program.
    #[error(transparent)]
    NoTenant(#[from] NoTenantInContext),
    /// What it was asked for has failed.
    #[error(transparent)]
    Failed(E),
}

macro_rules! from_sqlx {
    ($($error:ty),+) => {$(
        impl From<sqlx::Error> for $error {
            fn from(error: sqlx::Error) -> Self {
                Self::Data(error.into())
            }
        }
    )+};
}

from_sqlx!(CreateInvoiceError, ChangeInvoiceError, PaymentError);
