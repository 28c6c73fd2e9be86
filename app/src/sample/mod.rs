//! The sample feature: what a service with tenancy built in has to do for its tenants. Invoices, payments, a profile,
//! reports and an audit log, each tenant's in the tenant's own database.
//!
//! [`domain`] has the rules, [`store`] the statements, [`http`] the operations below `/v1`. Refuses to know where a tenant
//! lives, which server answers a read, and how a caller proves who they are.

pub mod domain;
pub mod http;
pub mod store;

pub use http::router;
