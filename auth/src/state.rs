//! What the extractors need to know about the service they are part of.

use std::sync::Arc;

use axum::response::Response;
use tenant_management::Tenancy;

use crate::{error::AuthError, operator::OperatorTokens};

/// What the extractors need. A router's state gives it out by `FromRef`; clones are cheap.
#[derive(Clone)]
pub struct AuthState {
    pub(crate) tenancy: Tenancy,
    pub(crate) operators: OperatorTokens,
    pub(crate) base_domain: Arc<str>,
    rejection: fn(AuthError) -> Response,
}

impl AuthState {
    /// `base_domain` is the domain whose sub-domains name tenants, such as `example.com`; `rejection` words a refusal.
    pub fn new(
        tenancy: Tenancy,
        operators: OperatorTokens,
        base_domain: &str,
        rejection: fn(AuthError) -> Response,
    ) -> Self {
        Self {
            tenancy,
            operators,
            base_domain: base_domain.to_ascii_lowercase().into(),
            rejection,
        }
    }

    /// The answer to a refused request.
    pub(crate) fn refuse(&self, error: AuthError) -> Response {
        if let AuthError::Unauthenticated(fault) = error {
            tracing::debug!(auth.fault = %fault, "A request has no valid credential.");
        }
        (self.rejection)(error)
    }
}
