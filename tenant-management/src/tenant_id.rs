//! The public name of a tenant: one grammar, one canonical form, parsed once at the edge.
//!
//! Refuses to know where a tenant lives. Physical names never come from here; see [`crate::ids::TenantUuid`].

use std::fmt;

use arrayvec::ArrayString;
use serde::{Serialize, Serializer};

/// Shortest tenant id in bytes.
pub const MIN_LENGTH: usize = 2;
/// Longest tenant id in bytes: it fits a DNS label (63) with room for what an operator may put before it.
pub const MAX_LENGTH: usize = 40;

/// Names that would be mistaken for a part of the service when used as a sub-domain or in a path.
pub const RESERVED: &[&str] = &[
    "admin",
    "api",
    "app",
    "assets",
    "auth",
    "billing",
    "blog",
    "catalog",
    "cdn",
    "console",
    "control",
    "dashboard",
    "default",
    "docs",
    "ftp",
    "health",
    "help",
    "imap",
    "internal",
    "livez",
    "localhost",
    "login",
    "mail",
    "metrics",
    "null",
    "operator",
    "pop",
    "postgres",
    "private",
    "public",
    "readyz",
    "root",
    "sandbox",
    "smtp",
    "static",
    "status",
    "support",
    "system",
    "template",
    "template0",
    "template1",
    "tenant",
    "tenantry",
    "undefined",
    "www",
];

/// The public name of a tenant, such as `acme`, in its canonical form.
///
/// 2 to 40 bytes of `a-z`, `0-9` and `-`, starting with a letter, ending with a letter or digit, no `--`, not one of
/// [`RESERVED`]. Kept in place, so that a look-up by name reads no memory besides the table's own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(ArrayString<MAX_LENGTH>);

/// Why a text is no tenant id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTenantId {
    /// Shorter than [`MIN_LENGTH`] or longer than [`MAX_LENGTH`] bytes.
    #[error("a tenant id has {MIN_LENGTH} to {MAX_LENGTH} characters")]
    Length,
    /// A byte outside `a-z`, `0-9`, `-`.
    #[error("a tenant id consists of lower-case letters a-z, digits and hyphens")]
    Character,
    /// Does not start with a letter.
    #[error("a tenant id starts with a letter")]
    Start,
    /// Ends with a hyphen.
    #[error("a tenant id ends with a letter or a digit")]
    End,
    /// Two hyphens in a row, which internationalised domain names use for themselves.
    #[error("a tenant id has no two hyphens in a row")]
    DoubleHyphen,
    /// One of [`RESERVED`].
    #[error("this name is reserved for the service itself; choose another")]
    Reserved,
}

impl TenantId {
    /// Parses the name of a tenant that is to be created: the canonical form only.
    pub fn parse_new(text: &str) -> Result<Self, InvalidTenantId> {
        check(text)?;
        Ok(Self(
            ArrayString::from(text).expect("the length has been checked"),
        ))
    }

    /// Parses a name by which a request means an existing tenant: upper case is folded, since hosts and people do not
    /// agree on it.
    pub fn parse_reference(text: &str) -> Result<Self, InvalidTenantId> {
        if text.len() > MAX_LENGTH {
            return Err(InvalidTenantId::Length);
        }
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Self::parse_new(&text.to_ascii_lowercase());
        }
        Self::parse_new(text)
    }

    /// The canonical form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(text: &str) -> Result<(), InvalidTenantId> {
    let bytes = text.as_bytes();
    if !(MIN_LENGTH..=MAX_LENGTH).contains(&bytes.len()) {
        return Err(InvalidTenantId::Length);
    }
    if !bytes
        .iter()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    {
        return Err(InvalidTenantId::Character);
    }
    if !bytes[0].is_ascii_lowercase() {
        return Err(InvalidTenantId::Start);
    }
    if bytes.ends_with(b"-") {
        return Err(InvalidTenantId::End);
    }
    if bytes.windows(2).any(|pair| pair == b"--") {
        return Err(InvalidTenantId::DoubleHyphen);
    }
    if RESERVED.contains(&text) {
        return Err(InvalidTenantId::Reserved);
    }
    Ok(())
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TenantId({})", self.0)
    }
}

impl Serialize for TenantId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_reserved_names_would_otherwise_be_ids() {
        let mut sorted = RESERVED.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted, RESERVED, "sorted, each once");
        for name in RESERVED {
            assert_eq!(check(name), Err(InvalidTenantId::Reserved));
        }
    }

    #[test]
    fn each_rule_has_its_own_refusal() {
        let cases = [
            ("", InvalidTenantId::Length),
            ("a", InvalidTenantId::Length),
            ("1a", InvalidTenantId::Start),
            ("-a", InvalidTenantId::Start),
            ("a-", InvalidTenantId::End),
            ("a--b", InvalidTenantId::DoubleHyphen),
            ("Acme", InvalidTenantId::Character),
            ("a_b", InvalidTenantId::Character),
            ("a.b", InvalidTenantId::Character),
            ("a\0b", InvalidTenantId::Character),
            ("a'; drop database x; --", InvalidTenantId::Character),
            ("pg_catalog", InvalidTenantId::Character),
            ("www", InvalidTenantId::Reserved),
        ];
        for (text, refusal) in cases {
            assert_eq!(TenantId::parse_new(text), Err(refusal), "{text:?}");
        }
        assert_eq!(TenantId::parse_new(&"a".repeat(41)), Err(InvalidTenantId::Length));
        assert_eq!(
            TenantId::parse_new(&"ä".repeat(20)),
            Err(InvalidTenantId::Character)
        );
        assert!(TenantId::parse_new(&"a".repeat(40)).is_ok());
    }

    #[test]
    fn a_reference_folds_case_and_a_new_name_does_not() {
        assert_eq!(TenantId::parse_reference("ACME").unwrap().as_str(), "acme");
        assert_eq!(TenantId::parse_new("ACME"), Err(InvalidTenantId::Character));
        assert_eq!(TenantId::parse_reference("WWW"), Err(InvalidTenantId::Reserved));
        // U+212A, the Kelvin sign, becomes `k` when folded as Unicode.
        assert_eq!(
            TenantId::parse_reference("\u{212A}elvin"),
            Err(InvalidTenantId::Character)
        );
    }

    proptest! {
        /// The grammar as a regular expression, written down a second time and independently of the parser.
        #[test]
        fn what_the_grammar_makes_is_accepted(text in "[a-z]([a-z0-9]|-[a-z0-9]){0,18}[a-z0-9]") {
            prop_assume!(!RESERVED.contains(&text.as_str()));
            let id = TenantId::parse_new(&text).unwrap();
            prop_assert_eq!(id.as_str(), &text);
            prop_assert_eq!(TenantId::parse_reference(&text.to_uppercase()).unwrap(), id);
        }

        #[test]
        fn whatever_is_accepted_is_safe_to_use_as_a_label(text in ".{0,60}") {
            if let Ok(id) = TenantId::parse_reference(&text) {
                let text = id.as_str();
                prop_assert!((MIN_LENGTH..=MAX_LENGTH).contains(&text.len()));
                prop_assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
                prop_assert!(!text.contains("--") && !text.starts_with('-') && !text.ends_with('-'));
                prop_assert!(!text.as_bytes()[0].is_ascii_digit());
                prop_assert_eq!(&TenantId::parse_new(text).unwrap(), &id);
            }
        }
    }
}
