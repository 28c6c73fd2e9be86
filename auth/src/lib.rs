#![doc = include_str!("../README.md")]

pub mod api_key;
mod bearer;
mod caller;
mod error;
mod naming;
pub mod operator;
mod operator_access;
mod role;
mod state;
mod tenant_access;

pub use api_key::{GeneratedKey, KeyId, MalformedKey, PresentedKey};
pub use caller::{Caller, CallerSlot, Principal};
pub use error::{AuthError, CredentialFault};
pub use naming::TENANT_HEADER;
pub use operator::{NoOperatorToken, OperatorName, OperatorTokens};
pub use operator_access::OperatorAccess;
pub use role::{Admin, Member, RequiredRole, Role, Viewer};
pub use state::AuthState;
pub use tenant_access::TenantAccess;

/// The challenge of a `401` answer (`WWW-Authenticate`, RFC 9110 section 11.6.1).
pub const CHALLENGE: &str = "Bearer realm=\"tenantry\"";
