//! A refusal with what is known about who was refused, for the audit trail. The caller hears the error only.

use chrono::Utc;
use http::request::Parts;
use tenant_management::{TenantUuid, audit::Attempt};

use crate::{
    caller::Principal,
    error::{AuthError, CredentialFault},
    source::RequestSource,
    state::AuthState,
};

/// Why a request is refused, and whose credential it seems to have.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) error: AuthError,
    principal: Option<Principal>,
    tenant: Option<TenantUuid>,
}

impl From<AuthError> for Refusal {
    fn from(error: AuthError) -> Self {
        Self {
            error,
            principal: None,
            tenant: None,
        }
    }
}

impl From<CredentialFault> for Refusal {
    fn from(fault: CredentialFault) -> Self {
        AuthError::Unauthenticated(fault).into()
    }
}

impl Refusal {
    /// Whose credential it is that is not good any more.
    pub(crate) fn of(mut self, principal: Principal, tenant: Option<TenantUuid>) -> Self {
        self.principal = Some(principal);
        self.tenant = tenant;
        self
    }

    /// Leaves an event in the audit trail when somebody has tried to get in with a credential that is not good. A request
    /// without any has not tried.
    pub(crate) fn note(self, auth: &AuthState, parts: &Parts) -> AuthError {
        if let AuthError::Unauthenticated(fault) = self.error {
            tracing::debug!(auth.fault = %fault, "A request has no valid credential.");
            if fault != CredentialFault::Missing {
                let source = RequestSource::of(parts);
                let attempt = Attempt {
                    actor: self
                        .principal
                        .map_or_else(|| "unknown".to_owned(), |principal| principal.to_string()),
                    action: fault.action(),
                    tenant: self.tenant,
                    subject: None,
                    address: source.address,
                };
                auth.tenancy
                    .trail()
                    .note(attempt, source.request_id.as_deref(), Utc::now());
            }
        }
        self.error
    }
}
