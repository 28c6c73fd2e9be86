//! The sample feature's rows in a tenant's own database: every statement, and the transactions that hold them together.
//!
//! There are two ways to say which tenant is meant. A per-tenant data-access object ([`Invoices`]) is made from a
//! [`TenantDb`], so the tenant is visible in every signature that leads to it: the way to prefer. A routed repository
//! ([`RoutedInvoices`]) knows no tenant and finds it in the request's context. Both run the same statements.
//!
//! Refuses to know HTTP, and who may do what.
//!
//! [`TenantDb`]: tenant_management::data::TenantDb

mod audit;
mod error;
mod idempotency;
mod invoices;
mod payments;
mod profiles;
mod reports;
mod routed;
mod whereabouts;

pub use audit::AuditLog;
pub use error::{ChangeInvoiceError, CreateInvoiceError, PaymentError, RoutedError};
pub use invoices::{CreatedInvoice, Invoices, InvoicesQuery};
pub use payments::Payments;
pub use profiles::Profiles;
pub use reports::Reports;
pub use routed::RoutedInvoices;
pub use whereabouts::{Whereabouts, whereabouts};
