//! An address to which mail can be sent.

use serde::{Deserialize, Serialize};

/// An e-mail address in the form `local@domain`.
///
/// Only what surely is no address is refused; whether mail arrives is known when it has arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(try_from = "String")]
#[sqlx(transparent)]
pub struct EmailAddress(String);

/// The text is no [`EmailAddress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be an e-mail address such as billing@example.com, with at most {} bytes",
    EmailAddress::MAX
)]
pub struct InvalidEmailAddress;

impl EmailAddress {
    /// Longest address in bytes (RFC 5321, a path of 256 without its angle brackets).
    pub const MAX: usize = 254;

    /// Checks the text and keeps it as it is.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidEmailAddress> {
        let text = text.into();
        let well_formed = text.len() <= Self::MAX
            && text.rsplit_once('@').is_some_and(|(local, domain)| {
                !local.is_empty() && !local.contains('@') && is_host_name(domain)
            })
            && !text.contains(|c: char| c.is_whitespace() || c.is_control());
        if well_formed {
            Ok(Self(text))
        } else {
            Err(InvalidEmailAddress)
        }
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address in lower case: what names a person, however they typed it.
    #[must_use]
    pub fn folded(&self) -> Self {
        Self(self.0.to_lowercase())
    }
}

/// Labels of letters, digits and hyphens, separated by single dots. Letters of any script: domains may be international.
fn is_host_name(text: &str) -> bool {
    text.split('.').all(|label| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    })
}

impl TryFrom<String> for EmailAddress {
    type Error = InvalidEmailAddress;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_accepted() {
        for text in [
            "a@b",
            "billing@example.com",
            "first.last+tag@sub.example.co.uk",
            "käse@bücher.example",
        ] {
            assert_eq!(EmailAddress::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn one_person_is_named_in_any_case() {
        let typed = EmailAddress::parse("Ann@Example.COM").unwrap();
        assert_eq!(typed.folded().as_str(), "ann@example.com");
        assert_eq!(typed.as_str(), "Ann@Example.COM");
    }

    #[test]
    fn what_surely_is_no_address_is_refused() {
        let long = format!("{}@example.com", "a".repeat(EmailAddress::MAX));
        for text in [
            "", "@", "a@", "@b", "a", "a b@c", "a@b c", "a@@b", "a@b@c", "a@b..c", "a@-b", "a\n@b", "a@b\0",
            &long,
        ] {
            assert_eq!(EmailAddress::parse(text), Err(InvalidEmailAddress), "{text:?}");
        }
    }
}
