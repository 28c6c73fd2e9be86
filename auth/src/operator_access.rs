//! The extractor for handlers that only operators may call.

use std::{fmt, marker::PhantomData};

use axum::{
    extract::{FromRef, FromRequestParts},
    response::Response,
};
use chrono::Utc;
use http::request::Parts;
use tenant_management::{Actor, OperatorRole};

use crate::{
    bearer,
    caller::{CallerSlot, Principal},
    credential,
    error::{AuthError, CredentialFault},
    operator::OperatorName,
    refusal::Refusal,
    role::RequiredOperatorRole,
    source::RequestSource,
    state::AuthState,
};

/// The caller is an operator with at least the role `R`. A tenant's credential is none here: it gets the answer that an unknown
/// one gets.
#[derive(Clone)]
pub struct OperatorAccess<R> {
    /// Which operator.
    pub operator: OperatorName,
    /// What they may do.
    pub role: OperatorRole,
    source: RequestSource,
    required: PhantomData<R>,
}

impl<R> OperatorAccess<R> {
    /// The operator as the control plane's audit trail wants it.
    pub fn actor(&self) -> Actor {
        self.source.actor(&Principal::Operator(self.operator.clone()))
    }
}

impl<R> fmt::Debug for OperatorAccess<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorAccess")
            .field("operator", &self.operator)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl<R, S> FromRequestParts<S> for OperatorAccess<R>
where
    R: RequiredOperatorRole,
    AuthState: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let auth = AuthState::from_ref(state);
        authorise(&auth, parts, R::ROLE)
            .await
            .map_err(|refusal| auth.refuse(refusal, parts))
    }
}

async fn authorise<R>(
    auth: &AuthState,
    parts: &Parts,
    needed: OperatorRole,
) -> Result<OperatorAccess<R>, Refusal> {
    let token = bearer::token(&parts.headers)?;
    let found = credential::operator(auth, token, Utc::now()).await?;
    let (operator, held) = found.ok_or(CredentialFault::Unknown)?;
    CallerSlot::note(&parts.extensions, &Principal::Operator(operator.clone()), None);
    if held < needed {
        return Err(AuthError::OperatorForbidden { needed, held }.into());
    }
    Ok(OperatorAccess {
        operator,
        role: held,
        source: RequestSource::of(parts),
        required: PhantomData,
    })
}
