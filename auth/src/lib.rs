#![doc = include_str!("../README.md")]

mod anyone;
mod bearer;
mod caller;
mod choice;
mod credential;
mod error;
pub mod jwt;
pub mod key;
pub mod limits;
pub mod metrics;
mod naming;
pub mod operator;
mod operator_access;
pub mod passwords;
pub mod proxies;
mod refusal;
mod role;
pub mod sessions;
mod source;
mod state;
mod tenant_access;

pub use anyone::Anyone;
pub use caller::{Caller, CallerSlot, Principal};
pub use error::{AuthError, CredentialFault};
pub use jwt::{IssuerSettings, Issuers};
pub use key::{GeneratedKey, KeyId, KeyKind, MalformedKey, PresentedKey};
pub use limits::{LimitSlot, TenantLimits};
pub use naming::TENANT_HEADER;
pub use operator::{NoOperatorToken, OperatorName, OperatorTokens};
pub use operator_access::OperatorAccess;
pub use passwords::{NewPassword, Passwords};
pub use proxies::{ClientAddress, TrustedProxies};
pub use role::{Admin, Member, OperatorRole, Read, RequiredOperatorRole, RequiredRole, Role, Viewer, Write};
pub use sessions::{SessionAccess, SessionSettings};
pub use source::RequestSource;
pub use state::{AuthSettings, AuthState};
pub use tenant_access::TenantAccess;

/// The challenge of a `401` answer (`WWW-Authenticate`, RFC 9110 section 11.6.1).
pub const CHALLENGE: &str = "Bearer realm=\"tenantry\"";
