//! Amounts and currencies. No conversions, no fractions.

use serde::{Deserialize, Serialize};

/// An amount in the currency's minor unit, 0 to 10¹².
///
/// The limit keeps sums of millions of amounts within 64 bits, and every amount exact in clients that hold numbers as
/// 64-bit floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, sqlx::Type)]
#[serde(try_from = "i64")]
#[sqlx(transparent)]
pub struct Cents(i64);

/// The number is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an amount in the currency's minor unit from 0 to {}", Cents::MAX.0)]
pub struct InvalidCents;

impl Cents {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The greatest amount. The tables check the same number.
    pub const MAX: Self = Self(1_000_000_000_000);

    /// Checks the range.
    pub fn new(number: i64) -> Result<Self, InvalidCents> {
        if (0..=Self::MAX.0).contains(&number) {
            Ok(Self(number))
        } else {
            Err(InvalidCents)
        }
    }

    /// The number of minor units.
    pub fn get(self) -> i64 {
        self.0
    }

    /// The sum, if it is an amount.
    pub fn plus(self, other: Self) -> Result<Self, InvalidCents> {
        Self::new(self.0 + other.0)
    }

    /// What is left after taking `other` away; nothing when `other` is more.
    pub fn less(self, other: Self) -> Self {
        Self((self.0 - other.0).max(0))
    }
}

impl TryFrom<i64> for Cents {
    type Error = InvalidCents;

    fn try_from(number: i64) -> Result<Self, Self::Error> {
        Self::new(number)
    }
}

/// A currency code in the form of ISO 4217: three upper-case letters.
///
/// Whether the code is in use is not checked: the list changes more often than the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(try_from = "String")]
#[sqlx(transparent)]
pub struct Currency(String);

/// The text is no currency code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an ISO 4217 currency code: three upper-case letters such as EUR")]
pub struct InvalidCurrency;

impl Currency {
    /// Parses a currency code.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidCurrency> {
        let text = text.into();
        let well_formed = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        if well_formed {
            Ok(Self(text))
        } else {
            Err(InvalidCurrency)
        }
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Currency {
    type Error = InvalidCurrency;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_within_its_limits() {
        for number in [0, 1, 1_000_000_000_000] {
            assert_eq!(Cents::new(number).unwrap().get(), number);
        }
        for number in [-1, 1_000_000_000_001, i64::MIN, i64::MAX] {
            assert_eq!(Cents::new(number), Err(InvalidCents), "{number}");
        }
    }

    #[test]
    fn arithmetic_stays_within_the_limits() {
        let one = Cents::new(1).unwrap();
        assert_eq!(Cents::MAX.plus(one), Err(InvalidCents));
        assert_eq!(one.plus(one), Cents::new(2));
        assert_eq!(one.less(Cents::MAX), Cents::ZERO);
        assert_eq!(Cents::MAX.less(one).get(), Cents::MAX.get() - 1);
    }

    #[test]
    fn fractions_and_texts_are_no_amounts() {
        for json in ["1.5", "1e3", "\"1\"", "true", "null", "9223372036854775808"] {
            assert!(serde_json::from_str::<Cents>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_currency_has_three_upper_case_letters() {
        assert_eq!(Currency::parse("EUR").unwrap().as_str(), "EUR");
        for text in ["", "EU", "EURO", "eur", "EuR", "E1R", "ÄÖ", "€", "EU\0"] {
            assert_eq!(Currency::parse(text), Err(InvalidCurrency), "{text:?}");
        }
    }
}
