//! Why the control plane did not do what it was asked for. No message carries a secret.

use std::time::Duration;

use crate::{catalog::CatalogError, ids::OperationId, state::IllegalTransition};

/// Why a control-plane command or question had no success.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The name belongs to a tenant that was created with another request.
    #[error("a tenant with this id exists and was created with a different request")]
    OtherRequest,
    /// There is no such tenant.
    #[error("there is no such tenant")]
    UnknownTenant,
    /// No cluster satisfies the wishes.
    #[error("no place for this tenant: {0}")]
    NoRoom(String),
    /// Another tenant has this domain.
    #[error("the domain {0} belongs to another tenant")]
    DomainTaken(String),
    /// A token in force has this operator's name.
    #[error("an operator's token with the name {0} is in force; revoke it first, or choose another name")]
    OperatorNameTaken(String),
    /// The tenant's state does not allow it.
    #[error(transparent)]
    WrongState(#[from] IllegalTransition),
    /// It did not work out for now. It will be tried again, and the caller may as well.
    #[error("not possible at the moment: {detail}")]
    NotPossibleNow {
        /// Where to watch.
        operation: Option<OperationId>,
        /// What went wrong.
        detail: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// The catalog did not answer as it should.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}
