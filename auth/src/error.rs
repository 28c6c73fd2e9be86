//! Why a request is refused before its handler runs.

use std::time::Duration;

use tenant_management::{OperatorRole, Role};

/// Why a request is refused. The texts may be shown to the caller: none says more than the caller may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// No valid credential. The fault is for logs: every fault must get the same answer.
    #[error("a valid credential is required: `Authorization: Bearer <credential>`")]
    Unauthenticated(CredentialFault),
    /// The request names another tenant than the credential's, or two different ones.
    #[error("the credential is not for the tenant that the request names")]
    WrongTenant,
    /// The request names its tenant in a header that is there twice.
    #[error(
        "the request must name its tenant once: `X-Tenant-ID`, `Host` or `X-Forwarded-Host` was sent more than once"
    )]
    AmbiguousTenant,
    /// The credential is good for any tenant and the request names none.
    #[error("the request must name a tenant: in the header `X-Tenant-ID`, or by its host")]
    TenantRequired,
    /// An operator named a tenant that does not exist.
    #[error("there is no such tenant")]
    UnknownTenant,
    /// The tenant is suspended.
    #[error("the tenant is suspended until an operator resumes it")]
    TenantSuspended,
    /// The credential's role is not enough.
    #[error("this needs the role {}, and the credential has the role {}", needed.as_str(), held.as_str())]
    Forbidden {
        /// The least role that would do.
        needed: Role,
        /// The credential's role.
        held: Role,
    },
    /// The operator's role is not enough.
    #[error("this needs an operator's token with the role {}, and this one has the role {}", needed.as_str(), held.as_str())]
    OperatorForbidden {
        /// The least role that would do.
        needed: OperatorRole,
        /// The token's role.
        held: OperatorRole,
    },
    /// A browser sends the request by its cookie on behalf of another site, or does not say on whose.
    #[error("a request that changes something by cookie must have the `Origin` of the service itself")]
    ForeignOrigin,
    /// The tenant asks for more than it may.
    #[error("the tenant has sent more requests than it may; try again later")]
    TooManyRequests {
        /// When.
        retry_after: Duration,
    },
    /// The credential or the tenant is not known here and the catalog cannot be asked.
    #[error("the credential cannot be checked at the moment; try again later")]
    Unavailable,
    /// The service has no layer that carries positions, without which a caller could not see what they have written; or none that
    /// counts requests, although they are limited.
    #[error("the service is not put together as it should be")]
    NoSession,
}

/// What is wrong with a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialFault {
    /// There is none.
    #[error("no credential")]
    Missing,
    /// It is not in the form of a credential.
    #[error("malformed credential")]
    Malformed,
    /// Nobody has it, or the tenant it was for is gone.
    #[error("unknown credential")]
    Unknown,
    /// It was revoked.
    #[error("revoked credential")]
    Revoked,
    /// Its time is over.
    #[error("expired credential")]
    Expired,
    /// It is a token that is not of an issuer who is trusted, not for this service, or changed.
    #[error("untrusted token")]
    Untrusted,
    /// E-mail address and password do not fit, or the person does not belong to the tenant.
    #[error("wrong e-mail address or password")]
    WrongPassword,
}

impl CredentialFault {
    /// The fault as the audit trail calls it.
    pub(crate) const fn action(self) -> &'static str {
        match self {
            Self::Missing => "authentication.missing",
            Self::Malformed => "authentication.malformed",
            Self::Unknown => "authentication.unknown",
            Self::Revoked => "authentication.revoked",
            Self::Expired => "authentication.expired",
            Self::Untrusted => "authentication.untrusted",
            Self::WrongPassword => "login.failed",
        }
    }
}
