//! An invoice and what may become of it.

use std::{fmt, str::FromStr};

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Cents, Currency, InvalidCents, Line, PaymentRefused};

/// An invoice's identity (UUIDv7, so that invoices sort by their time of birth).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct InvoiceId(Uuid);

impl InvoiceId {
    /// After every invoice in the order of identities: where a list that starts with the newest begins.
    pub const AFTER_ALL: Self = Self(Uuid::max());

    /// A new identity.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for InvoiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for InvoiceId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Where an invoice is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, ToSchema)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum InvoiceStatus {
    /// Waits for money.
    Open,
    /// Settled.
    Paid,
    /// Taken back.
    Void,
}

impl fmt::Display for InvoiceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Paid => "paid",
            Self::Void => "void",
        })
    }
}

/// What an invoice is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvoice {
    /// Who is to pay: one line of at most 200 characters.
    #[schema(value_type = String, min_length = 1, max_length = 200, examples("Initech GmbH"))]
    pub customer: Line,
    /// What is to be paid, in the currency's minor unit.
    #[schema(value_type = i64, minimum = 0, maximum = 1_000_000_000_000_i64, examples(129_900))]
    pub amount_cents: Cents,
    /// ISO 4217 currency code.
    #[schema(value_type = String, pattern = "^[A-Z]{3}$", examples("EUR"))]
    pub currency: Currency,
    /// Until when it is to be paid.
    #[serde(default)]
    #[schema(examples("2026-12-31"))]
    pub due_on: Option<NaiveDate>,
}

/// An invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Invoice {
    /// Its identity.
    #[schema(value_type = Uuid)]
    pub id: InvoiceId,
    /// Who is to pay.
    #[schema(value_type = String, examples("Initech GmbH"))]
    pub customer: Line,
    /// What is to be paid, in the currency's minor unit.
    #[schema(value_type = i64, examples(129_900))]
    pub amount_cents: Cents,
    /// What has been paid of it.
    #[schema(value_type = i64, examples(0))]
    pub paid_cents: Cents,
    /// ISO 4217 currency code.
    #[schema(value_type = String, examples("EUR"))]
    pub currency: Currency,
    /// Where it is in its life.
    pub status: InvoiceStatus,
    /// Until when it is to be paid.
    pub due_on: Option<NaiveDate>,
    /// Birth.
    pub created_at: DateTime<Utc>,
    /// Last change.
    pub updated_at: DateTime<Utc>,
}

/// What is to change in an invoice; an absent field stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InvoiceChange {
    /// Who is to pay.
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200)]
    pub customer: Option<Line>,
    /// What is to be paid; more than has been paid already.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 1_000_000_000_000_i64)]
    pub amount_cents: Option<Cents>,
    /// Until when it is to be paid; `null` takes the date away.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<NaiveDate>)]
    pub due_on: Option<Option<NaiveDate>>,
    /// `paid` when it was settled by other means than a payment that was reported here, `void` to take it back.
    #[serde(default)]
    pub status: Option<InvoiceStatus>,
}

/// Tells `null` (which takes a value away) from a field that is absent (which leaves it).
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// The change does not fit the invoice as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvoiceChangeRefused {
    /// A paid or void invoice stays as it is.
    #[error("the invoice is {0}, and only open invoices can be changed")]
    Closed(InvoiceStatus),
    /// Money has come in, so the invoice cannot be taken back.
    #[error("{} minor units have been paid, so the invoice cannot be taken back; pay them back first", .paid.get())]
    HasPayments {
        /// What has been paid.
        paid: Cents,
    },
    /// The new amount is no more than what has come in.
    #[error("{} minor units have been paid, and the amount has to be more than that", .paid.get())]
    AmountTooLow {
        /// What has been paid.
        paid: Cents,
    },
}

impl InvoiceChange {
    /// Whether it names nothing to change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Invoice {
    /// What is left to pay.
    pub fn outstanding(&self) -> Cents {
        match self.status {
            InvoiceStatus::Open => self.amount_cents.less(self.paid_cents),
            InvoiceStatus::Paid | InvoiceStatus::Void => Cents::ZERO,
        }
    }

    /// The invoice after the change. A change that has already been made changes nothing and is no error.
    pub fn after(&self, change: &InvoiceChange) -> Result<Self, InvoiceChangeRefused> {
        let mut next = self.clone();
        if let Some(customer) = &change.customer {
            next.customer = customer.clone();
        }
        if let Some(amount) = change.amount_cents {
            next.amount_cents = amount;
        }
        if let Some(due_on) = change.due_on {
            next.due_on = due_on;
        }
        if let Some(status) = change.status {
            next.status = status;
        }
        if next == *self {
            return Ok(next);
        }
        let paid = self.paid_cents;
        if self.status != InvoiceStatus::Open {
            return Err(InvoiceChangeRefused::Closed(self.status));
        }
        if paid > Cents::ZERO && next.amount_cents <= paid {
            return Err(InvoiceChangeRefused::AmountTooLow { paid });
        }
        match next.status {
            InvoiceStatus::Open => {}
            InvoiceStatus::Paid => next.paid_cents = next.amount_cents,
            InvoiceStatus::Void if paid > Cents::ZERO => {
                return Err(InvoiceChangeRefused::HasPayments { paid });
            }
            InvoiceStatus::Void => {}
        }
        Ok(next)
    }

    /// The invoice after money has come in. The last payment settles it.
    pub fn after_payment(&self, amount: Cents) -> Result<Self, PaymentRefused> {
        if self.status != InvoiceStatus::Open {
            return Err(PaymentRefused::Closed(self.status));
        }
        let overpaid = PaymentRefused::Overpaid {
            outstanding: self.outstanding(),
        };
        let paid_cents = self
            .paid_cents
            .plus(amount)
            .map_err(|InvalidCents| overpaid.clone())?;
        if paid_cents > self.amount_cents {
            return Err(overpaid);
        }
        let status = if paid_cents == self.amount_cents {
            InvoiceStatus::Paid
        } else {
            InvoiceStatus::Open
        };
        Ok(Self {
            paid_cents,
            status,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn cents(number: i64) -> Cents {
        Cents::new(number).unwrap()
    }

    fn invoice(status: InvoiceStatus, amount: i64, paid: i64) -> Invoice {
        Invoice {
            id: InvoiceId::generate(),
            customer: Line::parse("Initech").unwrap(),
            amount_cents: cents(amount),
            paid_cents: cents(paid),
            currency: Currency::parse("EUR").unwrap(),
            status,
            due_on: NaiveDate::from_ymd_opt(2026, 12, 31),
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        }
    }

    fn change(json: Value) -> InvoiceChange {
        from_value(json).unwrap()
    }

    #[test]
    fn an_open_invoice_can_be_changed() {
        let before = invoice(InvoiceStatus::Open, 100, 0);
        let after = before
            .after(&change(
                json!({"customer": "Initrode", "amount_cents": 50, "due_on": null}),
            ))
            .unwrap();
        assert_eq!(after.customer.as_str(), "Initrode");
        assert_eq!((after.amount_cents, after.due_on), (cents(50), None));
        assert_eq!(
            (after.status, after.paid_cents),
            (InvoiceStatus::Open, Cents::ZERO)
        );
    }

    #[test]
    fn an_absent_date_stays_and_null_takes_it_away() {
        assert_eq!(change(json!({})).due_on, None);
        assert_eq!(change(json!({"due_on": null})).due_on, Some(None));
        assert!(change(json!({})).is_empty());
        assert!(!change(json!({"due_on": null})).is_empty());
    }

    #[test]
    fn an_open_invoice_becomes_paid_or_void_and_stays_that() {
        let open = invoice(InvoiceStatus::Open, 100, 0);
        let paid = open.after(&change(json!({"status": "paid"}))).unwrap();
        assert_eq!((paid.status, paid.paid_cents), (InvoiceStatus::Paid, cents(100)));
        let void = open.after(&change(json!({"status": "void"}))).unwrap();
        assert_eq!((void.status, void.paid_cents), (InvoiceStatus::Void, Cents::ZERO));
        for closed in [paid, void] {
            for other in [
                json!({"status": "open"}),
                json!({"customer": "x"}),
                json!({"amount_cents": 1}),
            ] {
                assert_eq!(
                    closed.after(&change(other)),
                    Err(InvoiceChangeRefused::Closed(closed.status))
                );
            }
        }
    }

    #[test]
    fn repeating_a_change_is_no_error() {
        for json in [
            json!({"status": "paid"}),
            json!({"status": "void"}),
            json!({"customer": "Initrode"}),
        ] {
            let change = change(json);
            let after = invoice(InvoiceStatus::Open, 100, 0).after(&change).unwrap();
            assert_eq!(after.after(&change), Ok(after));
        }
    }

    #[test]
    fn money_that_came_in_is_not_forgotten() {
        let half = invoice(InvoiceStatus::Open, 100, 50);
        let paid = cents(50);
        assert_eq!(
            half.after(&change(json!({"status": "void"}))),
            Err(InvoiceChangeRefused::HasPayments { paid })
        );
        assert_eq!(
            half.after(&change(json!({"amount_cents": 50}))),
            Err(InvoiceChangeRefused::AmountTooLow { paid })
        );
        assert_eq!(
            half.after(&change(json!({"amount_cents": 51})))
                .unwrap()
                .outstanding(),
            cents(1)
        );
    }

    #[test]
    fn the_last_payment_settles_an_invoice() {
        let half = invoice(InvoiceStatus::Open, 100, 0)
            .after_payment(cents(60))
            .unwrap();
        assert_eq!(
            (half.status, half.outstanding()),
            (InvoiceStatus::Open, cents(40))
        );
        let paid = half.after_payment(cents(40)).unwrap();
        assert_eq!(
            (paid.status, paid.outstanding()),
            (InvoiceStatus::Paid, Cents::ZERO)
        );
    }

    #[test]
    fn more_than_is_outstanding_is_refused() {
        let half = invoice(InvoiceStatus::Open, 100, 60);
        let refusal = PaymentRefused::Overpaid {
            outstanding: cents(40),
        };
        assert_eq!(half.after_payment(cents(41)), Err(refusal.clone()));
        assert_eq!(half.after_payment(Cents::MAX), Err(refusal));
        for status in [InvoiceStatus::Paid, InvoiceStatus::Void] {
            let closed = invoice(status, 100, 100);
            assert_eq!(
                closed.after_payment(cents(1)),
                Err(PaymentRefused::Closed(status))
            );
        }
    }

    #[test]
    fn a_status_looks_the_same_everywhere() {
        for status in [InvoiceStatus::Open, InvoiceStatus::Paid, InvoiceStatus::Void] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.to_string());
        }
    }

    #[test]
    fn unknown_fields_are_refused() {
        for json in [
            json!({"paid_cents": 1}),
            json!({"id": "x"}),
            json!({"currency": "EUR"}),
        ] {
            assert!(from_value::<InvoiceChange>(json.clone()).is_err(), "{json}");
        }
    }
}
