//! Who called, for audit trails and logs.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use http::Extensions;
use tenant_management::{TenantId, UserId};

use crate::{jwt::Subject, key::KeyId, operator::OperatorName};

/// Who acts. Its text form goes into audit trails: `api-key:<id>`, `user:<id>`,
/// `jwt:<issuer>#<subject>`, `operator:<name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// Somebody with a tenant's API key.
    ApiKey(KeyId),
    /// A person who has logged in.
    User(UserId),
    /// Somebody with a token of an issuer that is trusted.
    Token {
        /// Who made the token.
        issuer: Arc<str>,
        /// Whom it is about.
        subject: Subject,
    },
    /// An operator, in whichever tenant they named.
    Operator(OperatorName),
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey(id) => write!(f, "api-key:{id}"),
            Self::User(id) => write!(f, "user:{id}"),
            Self::Token { issuer, subject } => write!(f, "jwt:{issuer}#{subject}"),
            Self::Operator(name) => write!(f, "operator:{name}"),
        }
    }
}

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who.
    pub principal: Principal,
    /// The tenant they act in, if any.
    pub tenant: Option<TenantId>,
}

/// A place that a layer puts into a request's extensions when it wants to know afterwards who called. Extractors fill it in as
/// soon as the credential is known, also for requests that are refused later.
#[derive(Clone, Debug, Default)]
pub struct CallerSlot(Arc<OnceLock<Caller>>);

impl CallerSlot {
    /// The caller, if the request had a valid credential.
    pub fn caller(&self) -> Option<&Caller> {
        self.0.get()
    }

    /// Notes the caller in the request's slot, if it has one.
    pub(crate) fn note(extensions: &Extensions, principal: &Principal, tenant: Option<&TenantId>) {
        Self::note_in(extensions.get(), principal, tenant);
    }

    /// Notes the caller in a slot that was taken out of its request.
    pub(crate) fn note_in(slot: Option<&Self>, principal: &Principal, tenant: Option<&TenantId>) {
        if let Some(Self(slot)) = slot {
            // The first extractor to know the caller has said who it is; a second one could only say the same.
            let _ = slot.set(Caller {
                principal: principal.clone(),
                tenant: tenant.copied(),
            });
        }
    }
}
