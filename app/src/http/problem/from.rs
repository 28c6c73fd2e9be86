//! Domain errors as problems: one exhaustive match each, so that a new error cannot be forgotten.

use std::time::Duration;

use auth::AuthError;
use tenant_management::{CatalogError, ControlError, data::DataError};

use super::{Problem, ProblemKind};

/// When trying again can help and nothing better is known.
const SOON: Duration = Duration::from_secs(1);

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        let kind = match error {
            AuthError::Unauthenticated(_) => ProblemKind::Unauthenticated,
            AuthError::WrongTenant => ProblemKind::WrongTenant,
            AuthError::AmbiguousTenant => ProblemKind::AmbiguousTenant,
            AuthError::TenantRequired => ProblemKind::TenantRequired,
            AuthError::UnknownTenant => ProblemKind::UnknownTenant,
            AuthError::TenantSuspended => ProblemKind::TenantSuspended,
            AuthError::Forbidden { .. } | AuthError::OperatorForbidden { .. } => ProblemKind::Forbidden,
            AuthError::ForeignOrigin => ProblemKind::ForeignOrigin,
            AuthError::TooManyRequests { retry_after } => {
                let kind = ProblemKind::TooManyRequests;
                return Self::new(kind, error.to_string()).with_retry_after(retry_after);
            }
            AuthError::Unavailable => ProblemKind::Unavailable,
            AuthError::NoSession => return Self::internal(error),
        };
        Self::new(kind, error.to_string())
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Self {
        let detail = error.to_string();
        match error {
            ControlError::OtherRequest => Self::new(ProblemKind::TenantExists, detail),
            ControlError::UnknownTenant => Self::new(ProblemKind::UnknownTenant, detail),
            ControlError::NoRoom(_) => Self::new(ProblemKind::NoCluster, detail),
            ControlError::DomainTaken(_) => Self::new(ProblemKind::DomainTaken, detail),
            ControlError::OperatorNameTaken(_) => Self::new(ProblemKind::Conflict, detail),
            ControlError::WrongState(_) => Self::new(ProblemKind::WrongState, detail),
            ControlError::NotPossibleNow {
                operation,
                retry_after,
                ..
            } => Self::new(ProblemKind::NotPossibleNow, detail)
                .with_retry_after(retry_after)
                .with_operation(operation),
            ControlError::Catalog(error) => error.into(),
        }
    }
}

impl From<CatalogError> for Problem {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Unreachable(cause) => {
                tracing::warn!(error = %cause, "The catalog cannot be reached.");
                Self::new(
                    ProblemKind::Unavailable,
                    "the catalog cannot be reached at the moment; try again later",
                )
            }
            CatalogError::Statement(ref cause) => Self::internal(format!("{error}: {cause}")),
            CatalogError::Sealed(_) | CatalogError::NotUnderstood(_) => Self::internal(error),
        }
    }
}

impl From<DataError> for Problem {
    fn from(error: DataError) -> Self {
        let retry_after = error.retry_after().unwrap_or(SOON);
        let detail = error.to_string();
        match error {
            DataError::Busy { .. } | DataError::FallbackRefused(_) => {
                Self::new(ProblemKind::Overloaded, detail).with_retry_after(retry_after)
            }
            DataError::Unavailable(cause) => {
                let cause = cause.map(|cause| cause.to_string());
                tracing::warn!(error = cause, "A tenant's database server is not available.");
                Self::new(ProblemKind::Unavailable, detail).with_retry_after(retry_after)
            }
            DataError::Conflict(_) => {
                Self::new(ProblemKind::Unavailable, detail).with_retry_after(retry_after)
            }
            DataError::StatementTimeout => Self::new(ProblemKind::Timeout, detail),
            DataError::CommitUnknown(cause) => {
                tracing::error!(error = %cause, "Whether a commit has happened is not known.");
                Self::new(ProblemKind::OutcomeUnknown, detail)
            }
            DataError::Refused(ref cause) => Self::internal(format!("{detail}: {cause}")),
            DataError::Password(ref cause) => Self::internal(format!("{detail}: {cause}")),
            DataError::TenantGone
            | DataError::WrongDatabase
            | DataError::ReadOnlyViolation
            | DataError::Misplaced(_)
            | DataError::TransactionFailed
            | DataError::Sql(_) => Self::internal(detail),
        }
    }
}
