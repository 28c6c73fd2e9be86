//! A place in PostgreSQL's write-ahead log: text form, order and distance.

use std::{fmt, str::FromStr};

/// A log sequence number: a byte position in the write-ahead log.
///
/// Written by PostgreSQL as two hexadecimal numbers of 32 bits, `XXXXXXXX/XXXXXXXX` (type `pg_lsn`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(u64);

/// Bytes of a page's header.
const SHORT_HEADER: u64 = 24;
/// Bytes of the header of a segment's first page.
const LONG_HEADER: u64 = 40;

/// How a cluster's write-ahead log is divided. Fixed when the cluster was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGeometry {
    /// Bytes of a page (`wal_block_size`).
    pub page_bytes: u64,
    /// Bytes of a segment file (`wal_segment_size`).
    pub segment_bytes: u64,
}

impl Default for LogGeometry {
    /// What PostgreSQL is built and clusters are made with unless somebody says otherwise.
    fn default() -> Self {
        Self {
            page_bytes: 8 << 10,
            segment_bytes: 16 << 20,
        }
    }
}

/// The text is not an LSN: two hexadecimal numbers of at most 8 digits with a `/` between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an LSN is two hexadecimal numbers of at most 8 digits with a `/` between, such as 16/B374D848")]
pub struct ParseLsnError;

impl Lsn {
    /// The LSN at this many bytes from the start of the log.
    pub const fn from_bytes(position: u64) -> Self {
        Self(position)
    }

    /// Bytes from the start of the log.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }

    /// The place that a standby can report for this one.
    ///
    /// On a primary that is idle just after a page or segment was filled, the insert position stands behind the header of
    /// the next page (offset 24, or 40 in a segment's first page: `SizeOfXLogShortPHD` and `SizeOfXLogLongPHD` in
    /// PostgreSQL's `xlog_internal.h`). A standby reports the end of the last record that it has replayed, which is the
    /// start of that page. Nothing but the header lies between the two.
    pub const fn without_page_header(self, log: LogGeometry) -> Self {
        let in_segment = self.0 % log.segment_bytes;
        let in_page = self.0 % log.page_bytes;
        let first_page = in_segment < log.page_bytes;
        if (first_page && in_page == LONG_HEADER) || (!first_page && in_page == SHORT_HEADER) {
            Self(self.0 - in_page)
        } else {
            self
        }
    }

    /// Bytes of log between `earlier` and this place; zero when `earlier` is not earlier.
    pub const fn bytes_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl FromStr for Lsn {
    type Err = ParseLsnError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (high, low) = text.split_once('/').ok_or(ParseLsnError)?;
        Ok(Self((half(high)? << 32) | half(low)?))
    }
}

/// One half of the text form. `from_str_radix` alone would take a sign.
fn half(digits: &str) -> Result<u64, ParseLsnError> {
    let well_formed = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !well_formed {
        return Err(ParseLsnError);
    }
    u64::from_str_radix(digits, 16).map_err(|_| ParseLsnError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_both_ways() {
        for text in ["0/0", "16/B374D848", "FFFFFFFF/FFFFFFFF"] {
            assert_eq!(text.parse::<Lsn>().unwrap().to_string(), text);
        }
        assert_eq!("1/00000000".parse::<Lsn>().unwrap().as_bytes(), 1 << 32);
    }

    #[test]
    fn order_is_the_order_of_the_log() {
        let earlier: Lsn = "0/FFFFFFFF".parse().unwrap();
        let later: Lsn = "1/0".parse().unwrap();
        assert!(earlier < later);
        assert_eq!(later.bytes_since(earlier), 1);
        assert_eq!(earlier.bytes_since(later), 0);
    }

    #[test]
    fn a_place_behind_a_page_header_is_the_start_of_the_page() {
        let log = LogGeometry::default();
        for (place, reported) in [
            ("0/3000028", "0/3000000"),
            ("0/3002018", "0/3002000"),
            // Not behind a header of that kind of page.
            ("0/3000018", "0/3000018"),
            ("0/3002028", "0/3002028"),
            ("0/3002030", "0/3002030"),
            ("0/3000000", "0/3000000"),
        ] {
            let place: Lsn = place.parse().unwrap();
            assert_eq!(place.without_page_header(log).to_string(), reported);
        }
        let small = LogGeometry {
            segment_bytes: 1 << 20,
            ..log
        };
        let place: Lsn = "0/3100028".parse().unwrap();
        assert_eq!(place.without_page_header(small).to_string(), "0/3100000");
        assert_eq!(place.without_page_header(log), place);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "/",
            "0/",
            "/0",
            "0",
            "+1/0",
            "-1/0",
            "0/123456789",
            "0/G",
            " 0/0",
            "0/0/0",
            "０/0",
        ] {
            assert_eq!(text.parse::<Lsn>(), Err(ParseLsnError), "{text:?}");
        }
    }
}
