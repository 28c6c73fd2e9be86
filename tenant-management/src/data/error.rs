//! What can go wrong with a read or write, and how the server's codes map to it.

use std::{sync::Arc, time::Duration};

use read_your_writes::{FallbackRefused, Fault};

use crate::{
    pool::{AcquireError, StatementRefused},
    secret::OpenError,
};

/// When trying again can help, in the least hurry that still is one.
const SOON: Duration = Duration::from_secs(1);

/// What can go wrong with a read or write. None of the texts holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The tenant's or the server's connections are all in use.
    #[error("no database connection became free within {waited:?}")]
    Busy {
        /// How long the caller has waited.
        waited: Duration,
    },
    /// No replica can serve the read, and too many reads have fallen back to the primary already.
    #[error(transparent)]
    FallbackRefused(#[from] FallbackRefused),
    /// The server cannot be reached, went away during a statement, or has no room.
    #[error("the database server is not available")]
    Unavailable(#[source] Option<Arc<sqlx::Error>>),
    /// The tenant's database is gone (`3D000`, `57P04`).
    #[error("the tenant's database is gone")]
    TenantGone,
    /// The server refuses the tenant's role.
    #[error("the database server refuses the tenant's role")]
    Refused(#[source] Arc<sqlx::Error>),
    /// The connection led to a database that is not the tenant's, and was not used.
    #[error("the connection led to a database that is not this tenant's")]
    WrongDatabase,
    /// The tenant's password cannot be opened.
    #[error("the tenant's database password cannot be opened")]
    Password(#[source] Arc<OpenError>),
    /// A statement took longer than is allowed (`57014`).
    #[error("a statement took longer than is allowed")]
    StatementTimeout,
    /// A read tried to write (`25006`): a mistake in the program.
    #[error("a read tried to write")]
    ReadOnlyViolation,
    /// A statement that does not fit where it stands: a mistake in the program. It was not sent.
    #[error(transparent)]
    Misplaced(StatementRefused),
    /// Another transaction got in the way (`40001`, `40P01`, `55P03`). All was rolled back; running it again can help.
    #[error("another transaction got in the way")]
    Conflict(#[source] sqlx::Error),
    /// A statement of the transaction had failed although the closure answered `Ok`. All was rolled back.
    #[error("a statement of the transaction had failed; it was rolled back")]
    TransactionFailed,
    /// The connection broke during the commit: the write may have happened or not.
    #[error("the connection broke during the commit; the write may have happened or not")]
    CommitUnknown(#[source] sqlx::Error),
    /// Any other error of a statement.
    #[error(transparent)]
    Sql(sqlx::Error),
}

impl DataError {
    /// How long to wait before trying again, when that can help.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { .. } | Self::FallbackRefused(_) | Self::Unavailable(_) | Self::Conflict(_) => {
                Some(SOON)
            }
            Self::TenantGone
            | Self::Refused(_)
            | Self::WrongDatabase
            | Self::Password(_)
            | Self::StatementTimeout
            | Self::ReadOnlyViolation
            | Self::Misplaced(_)
            | Self::TransactionFailed
            | Self::CommitUnknown(_)
            | Self::Sql(_) => None,
        }
    }

    /// An error that came in answer to a commit.
    pub(super) fn from_commit(error: sqlx::Error) -> Self {
        match Self::from(error) {
            Self::Unavailable(Some(error)) => match Arc::try_unwrap(error) {
                Ok(error) => Self::CommitUnknown(error),
                Err(error) => Self::Unavailable(Some(error)),
            },
            error => error,
        }
    }
}

impl From<sqlx::Error> for DataError {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::Configuration(source) = &error
            && let Some(refused) = source.downcast_ref::<StatementRefused>()
        {
            return Self::Misplaced(*refused);
        }
        let fault = Fault::of_error(&error);
        match fault {
            Fault::Node => Self::Unavailable(Some(error.into())),
            Fault::DatabaseGone => Self::TenantGone,
            Fault::Role => Self::Refused(error.into()),
            Fault::Conflict => Self::Conflict(error),
            Fault::Cancelled => Self::StatementTimeout,
            Fault::ReadOnly => Self::ReadOnlyViolation,
            Fault::FailedTransaction => Self::TransactionFailed,
            Fault::Schema | Fault::Statement => Self::Sql(error),
        }
    }
}

impl From<AcquireError> for DataError {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Timeout { waited } => Self::Busy { waited },
            AcquireError::Unreachable(error) => Self::Unavailable(Some(error)),
            AcquireError::ConnectTimeout { .. } | AcquireError::Closed => Self::Unavailable(None),
            AcquireError::Refused(error) => Self::Refused(error),
            AcquireError::NoSuchDatabase => Self::TenantGone,
            AcquireError::WrongDatabase => Self::WrongDatabase,
            AcquireError::Password(error) => Self::Password(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_network_is_the_nodes_and_during_a_commit_says_nothing() {
        let cut = || sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert!(matches!(DataError::from(cut()), DataError::Unavailable(Some(_))));
        assert!(matches!(
            DataError::from_commit(cut()),
            DataError::CommitUnknown(_)
        ));
        assert!(matches!(
            DataError::from_commit(sqlx::Error::RowNotFound),
            DataError::Sql(_)
        ));
        assert!(matches!(
            DataError::from(sqlx::Error::from(StatementRefused::InRead)),
            DataError::Misplaced(StatementRefused::InRead)
        ));
    }
}
