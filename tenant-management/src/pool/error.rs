//! Why a tenant's connection could not be had.

use std::{sync::Arc, time::Duration};

use sqlx::error::DatabaseError;

use crate::secret::OpenError;

/// Why a tenant's connection could not be had. None of the texts holds a secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AcquireError {
    /// All connections stayed in use, or none could be opened in time. Trying again later can help.
    #[error("no database connection became free within {waited:?}")]
    Timeout {
        /// How long the caller has waited.
        waited: Duration,
    },
    /// The server cannot be reached, is starting or stopping, or has no room. Trying again later can help.
    #[error("the database server cannot be reached")]
    Unreachable(#[source] Arc<sqlx::Error>),
    /// The server did not answer while a connection was being opened. Trying again later can help.
    #[error("the database server did not answer within {limit:?}")]
    ConnectTimeout {
        /// The limit that passed, see [`super::PoolLimits::connect_timeout`].
        limit: Duration,
    },
    /// The server refuses the tenant's role: a wrong password (`28P01`, `28000`), or no right to connect (`42501`).
    #[error("the database server refuses the tenant's role")]
    Refused(#[source] Arc<sqlx::Error>),
    /// The tenant's database is not on this server (`3D000`).
    #[error("the tenant's database does not exist on this server")]
    NoSuchDatabase,
    /// A connection was opened and is not to the tenant's own database. It was closed without having been used.
    #[error("the connection led to a database that is not this tenant's")]
    WrongDatabase,
    /// The tenant's password cannot be opened.
    #[error("the tenant's database password cannot be opened")]
    Password(#[source] Arc<OpenError>),
    /// The pool has been shut down.
    #[error("the connection pool is shut down")]
    Closed,
}

impl AcquireError {
    /// Whether every further attempt with the same route would fail alike, so that attempts are to be spaced out.
    pub(super) fn is_about_the_route(&self) -> bool {
        match self {
            Self::Refused(_) | Self::NoSuchDatabase | Self::WrongDatabase | Self::Password(_) => true,
            Self::Timeout { .. } | Self::Unreachable(_) | Self::ConnectTimeout { .. } | Self::Closed => false,
        }
    }

    /// What the server's or the network's refusal to open a connection means.
    pub(super) fn from_connecting(error: sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(DatabaseError::code);
        match code.as_deref() {
            Some("28P01" | "28000" | "42501") => Self::Refused(error.into()),
            Some("3D000") => Self::NoSuchDatabase,
            _ => Self::Unreachable(error.into()),
        }
    }
}
