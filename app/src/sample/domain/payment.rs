//! Money that came in for an invoice.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;

use super::{Cents, InvoiceId, InvoiceStatus, Line};

/// A payment, as the payment service reports it. The reference is the payment service's name for it: the same reference
/// is the same payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Payment {
    /// The invoice that it is for.
    #[schema(value_type = Uuid)]
    pub invoice_id: InvoiceId,
    /// What came in, in the minor unit of the invoice's currency.
    #[serde(deserialize_with = "more_than_nothing")]
    #[schema(value_type = i64, minimum = 1, maximum = 1_000_000_000_000_i64, examples(129_900))]
    pub amount_cents: Cents,
    /// The payment service's name for it: one line of at most 200 characters.
    #[schema(value_type = String, min_length = 1, max_length = 200, examples("pay_01J9Z3"))]
    pub reference: Line,
}

fn more_than_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cents, D::Error> {
    match Cents::deserialize(deserializer)? {
        Cents::ZERO => Err(de::Error::custom("a payment is more than nothing")),
        amount => Ok(amount),
    }
}

/// A payment that was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RecordedPayment {
    /// The invoice that it is for.
    #[schema(value_type = Uuid)]
    pub invoice_id: InvoiceId,
    /// What came in, in the minor unit of the invoice's currency.
    #[schema(value_type = i64, examples(129_900))]
    pub amount_cents: Cents,
    /// The payment service's name for it.
    #[schema(value_type = String, examples("pay_01J9Z3"))]
    pub reference: Line,
    /// When it was recorded.
    pub received_at: DateTime<Utc>,
}

/// The payment does not fit the invoice, or another payment has its reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaymentRefused {
    /// Paid or void invoices take no money.
    #[error("the invoice is {0} and takes no payments")]
    Closed(InvoiceStatus),
    /// More than is left to pay.
    #[error("the payment is more than the {} minor units that are left to pay", .outstanding.get())]
    Overpaid {
        /// What is left to pay.
        outstanding: Cents,
    },
    /// A payment with this reference was recorded for another invoice or amount.
    #[error("a payment with this reference was recorded for another invoice or another amount")]
    ReferenceTaken,
}

impl RecordedPayment {
    /// This payment, if it is the one that is reported now; otherwise another one has the reference.
    pub fn if_same_as(self, reported: &Payment) -> Result<Self, PaymentRefused> {
        let Self {
            invoice_id,
            amount_cents,
            reference,
            ..
        } = &self;
        let same = (invoice_id, amount_cents, reference)
            == (&reported.invoice_id, &reported.amount_cents, &reported.reference);
        if same {
            Ok(self)
        } else {
            Err(PaymentRefused::ReferenceTaken)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};
    use uuid::Uuid;

    use super::*;

    fn payment(amount: i64) -> Value {
        json!({ "invoice_id": Uuid::nil(), "amount_cents": amount, "reference": "pay_1" })
    }

    #[test]
    fn a_payment_is_more_than_nothing() {
        assert!(from_value::<Payment>(payment(1)).is_ok());
        for amount in [0, -1, Cents::MAX.get() + 1] {
            assert!(from_value::<Payment>(payment(amount)).is_err(), "{amount}");
        }
    }

    #[test]
    fn the_same_reference_is_the_same_payment_or_a_mistake() {
        let reported: Payment = from_value(payment(1)).unwrap();
        let recorded = RecordedPayment {
            invoice_id: reported.invoice_id,
            amount_cents: reported.amount_cents,
            reference: reported.reference.clone(),
            received_at: DateTime::UNIX_EPOCH,
        };
        assert_eq!(recorded.clone().if_same_as(&reported), Ok(recorded.clone()));
        let other: Payment = from_value(payment(2)).unwrap();
        assert_eq!(recorded.if_same_as(&other), Err(PaymentRefused::ReferenceTaken));
    }
}
