//! What the sample feature is about: invoices, payments, a profile, reports, and the rules that hold for them.
//!
//! Values are checked when they are made, so a value that exists is valid. How a value looks in JSON and in a column is
//! said next to it. Refuses to know tenants, connections and HTTP.

mod audit;
mod invoice;
mod line;
mod money;
mod month;
mod payment;
mod profile;
mod report;

pub use audit::{AuditEntry, AuditEntryId, AuditEvent};
pub use invoice::{Invoice, InvoiceChange, InvoiceChangeRefused, InvoiceId, InvoiceStatus, NewInvoice};
pub use line::{InvalidLine, Line};
pub use money::{Cents, Currency, InvalidCents, InvalidCurrency};
pub use month::{InvalidMonth, Month};
pub use payment::{Payment, PaymentRefused, RecordedPayment};
pub use profile::{Profile, ProfileDraft};
pub use report::{MonthlyReport, MonthlyTotal, ReportSettings};
pub use tenant_management::{EmailAddress, InvalidEmailAddress};
