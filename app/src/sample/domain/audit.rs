//! Who did what.

use std::{fmt, num::ParseIntError, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// An audit entry's identity. Later entries have greater ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct AuditEntryId(i64);

impl AuditEntryId {
    /// After every entry: where a list that starts with the newest begins.
    pub const AFTER_ALL: Self = Self(i64::MAX);
}

impl Serialize for AuditEntryId {
    /// As a string, like every identifier of the API: greater numbers lose digits in clients that hold them as floats.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for AuditEntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for AuditEntryId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// What can happen, as the log names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditEvent {
    /// Somebody made an invoice.
    InvoiceCreated,
    /// Somebody changed an invoice.
    InvoiceChanged,
    /// Money came in.
    PaymentReceived,
    /// Somebody wrote the profile.
    ProfileChanged,
    /// Somebody changed what reports count.
    ReportSettingsChanged,
}

impl fmt::Display for AuditEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvoiceCreated => "invoice.created",
            Self::InvoiceChanged => "invoice.changed",
            Self::PaymentReceived => "payment.received",
            Self::ProfileChanged => "profile.changed",
            Self::ReportSettingsChanged => "report-settings.changed",
        })
    }
}

/// One thing that somebody did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditEntry {
    /// Its identity.
    #[schema(value_type = String, examples("42"))]
    pub id: AuditEntryId,
    /// When.
    pub at: DateTime<Utc>,
    /// Who, such as `api-key:…`.
    #[schema(examples("api-key:k7f3q2"))]
    pub principal: String,
    /// What, such as `invoice.created`.
    #[schema(examples("invoice.created"))]
    pub action: String,
    /// To what: an invoice's id, a payment's reference.
    pub subject: Option<String>,
}
