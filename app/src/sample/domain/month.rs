//! A month of the calendar, in UTC.

use std::{fmt, ops::Range, str::FromStr};

use chrono::{DateTime, Datelike, Months, NaiveDate, NaiveTime, Utc};
use serde::{Deserialize, Serialize};

/// A month such as `2026-11`. Its days begin and end in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Month {
    /// First day of the month.
    first: NaiveDate,
}

/// The text is no [`Month`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a month such as 2026-11, from 1970-01 to 9999-12")]
pub struct InvalidMonth;

impl Month {
    /// The month in which a day lies.
    pub fn of(day: NaiveDate) -> Self {
        Self {
            first: day.with_day(1).expect("every month has a first day"),
        }
    }

    /// The moments that belong to the month. Without the day of `leave_out`, it ends before that day begins.
    pub fn moments(self, leave_out: Option<NaiveDate>) -> Range<DateTime<Utc>> {
        let next = self
            .first
            .checked_add_months(Months::new(1))
            .expect("years end long before the calendar's limit");
        let end = leave_out.filter(|day| Self::of(*day) == self).unwrap_or(next);
        midnight(self.first)..midnight(end)
    }
}

/// The moment at which a day begins.
fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

impl FromStr for Month {
    type Err = InvalidMonth;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (year, month) = text.split_once('-').ok_or(InvalidMonth)?;
        let digits =
            |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(year, 4) || !digits(month, 2) {
            return Err(InvalidMonth);
        }
        let year = year
            .parse()
            .ok()
            .filter(|year| *year >= 1970)
            .ok_or(InvalidMonth)?;
        let month = month.parse().map_err(|_| InvalidMonth)?;
        NaiveDate::from_ymd_opt(year, month, 1)
            .map(|first| Self { first })
            .ok_or(InvalidMonth)
    }
}

impl TryFrom<String> for Month {
    type Error = InvalidMonth;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Month> for String {
    fn from(month: Month) -> Self {
        month.to_string()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first.format("%Y-%m"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn days(range: &Range<DateTime<Utc>>) -> (String, String) {
        (range.start.to_rfc3339(), range.end.to_rfc3339())
    }

    #[test]
    fn texts_go_both_ways() {
        for text in ["1970-01", "2026-11", "9999-12"] {
            assert_eq!(text.parse::<Month>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "2026",
            "2026-1",
            "2026-00",
            "2026-13",
            "26-11",
            "2026-11-01",
            "+026-11",
            "1969-12",
            "2026/11",
            "٢٠٢٦-11",
        ] {
            assert_eq!(text.parse::<Month>(), Err(InvalidMonth), "{text:?}");
        }
    }

    #[test]
    fn a_month_ends_when_the_next_begins() {
        let (from, until) = days(&"2026-12".parse::<Month>().unwrap().moments(None));
        assert_eq!(
            (from.as_str(), until.as_str()),
            ("2026-12-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00")
        );
        "9999-12".parse::<Month>().unwrap().moments(None);
    }

    #[test]
    fn a_day_is_left_out_of_its_own_month_only() {
        let november: Month = "2026-11".parse().unwrap();
        let (from, until) = days(&november.moments(Some(day("2026-11-15"))));
        assert_eq!(
            (from.as_str(), until.as_str()),
            ("2026-11-01T00:00:00+00:00", "2026-11-15T00:00:00+00:00")
        );
        assert_eq!(november.moments(Some(day("2026-12-01"))), november.moments(None));
        assert_eq!(november.moments(Some(day("2025-11-15"))), november.moments(None));
        assert!(november.moments(Some(day("2026-11-01"))).is_empty());
    }
}
