//! What a month's invoices add up to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Currency, InvoiceStatus, Month};

/// What reports count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportSettings {
    /// Whether invoices of the current day (in UTC) count.
    pub include_today: bool,
}

impl Default for ReportSettings {
    /// Everything counts.
    fn default() -> Self {
        Self { include_today: true }
    }
}

/// The invoices of one month, by the day on which they were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MonthlyReport {
    /// The month.
    #[schema(value_type = String, examples("2026-11"))]
    pub month: Month,
    /// Whether invoices of the current day were counted.
    pub include_today: bool,
    /// One line per currency and status, in this order.
    pub totals: Vec<MonthlyTotal>,
}

/// The invoices of one currency and status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MonthlyTotal {
    /// ISO 4217 currency code.
    #[schema(value_type = String, examples("EUR"))]
    pub currency: Currency,
    /// Where the invoices are in their lives.
    pub status: InvoiceStatus,
    /// How many there are.
    pub invoices: i64,
    /// The sum of their amounts, in the currency's minor unit.
    pub amount_cents: i64,
    /// The sum of what has been paid of them.
    pub paid_cents: i64,
}
