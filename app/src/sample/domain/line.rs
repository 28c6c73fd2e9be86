//! Text that a person typed on one line.

use serde::{Deserialize, Serialize};

/// One line of text: 1 to 200 characters, at least one of them visible, none of them a control character.
///
/// Control characters are refused because they do not survive: PostgreSQL cannot store NUL, and line breaks forge lines
/// in whatever prints the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(try_from = "String")]
#[sqlx(transparent)]
pub struct Line(String);

/// The text is no [`Line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLine {
    /// Nothing visible in it.
    #[error("must not be empty")]
    Empty,
    /// More than [`Line::MAX`] characters.
    #[error("must have at most {} characters", Line::MAX)]
    TooLong,
    /// Such as a line break, a tab or NUL.
    #[error("must not contain control characters such as line breaks")]
    ControlCharacter,
}

impl Line {
    /// Most characters of a line. The tables check the same number.
    pub const MAX: usize = 200;

    /// Checks the text and keeps it as it is.
    pub fn parse(text: impl Into<String>) -> Result<Self, InvalidLine> {
        let text = text.into();
        if text.chars().any(char::is_control) {
            Err(InvalidLine::ControlCharacter)
        } else if text.trim().is_empty() {
            Err(InvalidLine::Empty)
        } else if text.chars().count() > Self::MAX {
            Err(InvalidLine::TooLong)
        } else {
            Ok(Self(text))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Line {
    type Error = InvalidLine;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_own_refusal() {
        let cases = [
            ("", InvalidLine::Empty),
            ("  \u{a0}", InvalidLine::Empty),
            ("a\0b", InvalidLine::ControlCharacter),
            ("a\nb", InvalidLine::ControlCharacter),
            ("\t", InvalidLine::ControlCharacter),
        ];
        for (text, refusal) in cases {
            assert_eq!(Line::parse(text), Err(refusal), "{text:?}");
        }
    }

    #[test]
    fn length_is_counted_in_characters_as_postgresql_counts_it() {
        assert!(Line::parse("ß".repeat(Line::MAX)).is_ok());
        assert_eq!(Line::parse("ß".repeat(Line::MAX + 1)), Err(InvalidLine::TooLong));
    }

    #[test]
    fn the_text_is_kept_as_it_is() {
        assert_eq!(
            Line::parse(" Müller & Söhne ' ").unwrap().as_str(),
            " Müller & Söhne ' "
        );
    }
}
