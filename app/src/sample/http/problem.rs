//! The sample feature's errors as problems: one exhaustive match each.

use crate::{
    http::problem::{Problem, ProblemKind},
    sample::store::{ChangeInvoiceError, CreateInvoiceError, PaymentError, RoutedError},
};

impl From<CreateInvoiceError> for Problem {
    fn from(error: CreateInvoiceError) -> Self {
        match error {
            CreateInvoiceError::KeyTaken => Self::new(ProblemKind::IdempotencyKeyReused, error.to_string()),
            CreateInvoiceError::Data(error) => error.into(),
        }
    }
}

impl From<ChangeInvoiceError> for Problem {
    fn from(error: ChangeInvoiceError) -> Self {
        match error {
            ChangeInvoiceError::Refused(refusal) => Self::new(ProblemKind::Conflict, refusal.to_string()),
            ChangeInvoiceError::Data(error) => error.into(),
        }
    }
}

impl From<PaymentError> for Problem {
    fn from(error: PaymentError) -> Self {
        match error {
            PaymentError::UnknownInvoice => Self::new(ProblemKind::NotFound, error.to_string()),
            PaymentError::Refused(refusal) => Self::new(ProblemKind::Conflict, refusal.to_string()),
            PaymentError::Data(error) => error.into(),
        }
    }
}

impl<E> From<RoutedError<E>> for Problem
where
    Self: From<E>,
{
    fn from(error: RoutedError<E>) -> Self {
        match error {
            RoutedError::NoTenant(error) => Self::internal(error),
            RoutedError::Failed(error) => error.into(),
        }
    }
}

/// There is no such invoice, or it is another tenant's: the answer is the same.
pub(super) fn no_such_invoice() -> Problem {
    Problem::new(ProblemKind::NotFound, "there is no such invoice")
}
