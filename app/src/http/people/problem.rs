//! What can go wrong with a person's way in, as problems: one exhaustive match each.

use std::time::Duration;

use auth::{
    passwords::UnfitPassword,
    sessions::{InvitationError, LoginError, PasswordError},
};

use crate::http::problem::{FieldError, Problem, ProblemKind};

/// When trying again can help and nothing better is known.
const SOON: Duration = Duration::from_secs(1);

impl From<LoginError> for Problem {
    fn from(error: LoginError) -> Self {
        let detail = error.to_string();
        match error {
            LoginError::Refused => Self::new(ProblemKind::Unauthenticated, detail),
            LoginError::TooMany { retry_after } => {
                Self::new(ProblemKind::TooManyAttempts, detail).with_retry_after(retry_after)
            }
            LoginError::ForeignOrigin => Self::new(ProblemKind::ForeignOrigin, detail),
            LoginError::Busy(_) => Self::new(ProblemKind::Overloaded, detail).with_retry_after(SOON),
            LoginError::Catalog(error) => error.into(),
            LoginError::Store(error) => {
                tracing::warn!(%error, "A session could not be kept.");
                Self::new(
                    ProblemKind::Unavailable,
                    "the session cannot be kept at the moment; try again later",
                )
            }
            LoginError::NoLayer => Self::internal(error),
        }
    }
}

impl From<InvitationError> for Problem {
    fn from(error: InvitationError) -> Self {
        match error {
            InvitationError::Unknown => no_such_invitation(),
            InvitationError::Unfit(unfit) => unfit_password("password", unfit),
            InvitationError::Control(error) => error.into(),
            InvitationError::Login(error) => error.into(),
        }
    }
}

impl From<PasswordError> for Problem {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::Unfit(unfit) => unfit_password("new_password", unfit),
            PasswordError::Control(error) => error.into(),
            PasswordError::Login(error) => error.into(),
        }
    }
}

/// There is no such invitation, or not any more: the answer is the same.
pub(super) fn no_such_invitation() -> Problem {
    Problem::new(
        ProblemKind::NotFound,
        "there is no such invitation: it was taken up, replaced or withdrawn, or it has expired; ask for a new one",
    )
}

fn unfit_password(field: &str, unfit: UnfitPassword) -> Problem {
    Problem::invalid_body(vec![FieldError {
        field: field.to_owned(),
        detail: unfit.to_string(),
    }])
}
