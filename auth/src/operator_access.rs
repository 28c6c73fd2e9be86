//! The extractor for handlers that only operators may call.

use axum::{
    extract::{FromRef, FromRequestParts},
    response::Response,
};
use http::request::Parts;
use tenant_management::Actor;

use crate::{
    bearer,
    caller::{CallerSlot, Principal},
    error::{AuthError, CredentialFault},
    operator::OperatorName,
    state::AuthState,
};

/// The caller is an operator. A tenant's credential is none here: it gets the answer that an unknown one gets.
#[derive(Clone, Debug)]
pub struct OperatorAccess {
    /// Which operator.
    pub operator: OperatorName,
}

impl OperatorAccess {
    /// The operator as the control plane's audit trail wants it.
    pub fn actor(&self, request_id: &str) -> Actor {
        Actor {
            name: Principal::Operator(self.operator.clone()).to_string(),
            request_id: Some(request_id.to_owned()),
        }
    }
}

impl<S> FromRequestParts<S> for OperatorAccess
where
    AuthState: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let auth = AuthState::from_ref(state);
        let operator = bearer::token(&parts.headers)
            .and_then(|token| auth.operators.identify(token).ok_or(CredentialFault::Unknown))
            .map_err(|fault| auth.refuse(AuthError::Unauthenticated(fault)))?
            .clone();
        CallerSlot::note(&parts.extensions, &Principal::Operator(operator.clone()), None);
        Ok(Self { operator })
    }
}
