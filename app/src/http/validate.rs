//! Checks of a request's fields that its type cannot express. All that is wrong is said at once.

use super::problem::{FieldError, Problem};

/// Collects what is wrong with a request.
#[derive(Debug, Default)]
pub struct Checks(Vec<FieldError>);

impl Checks {
    /// Nothing is wrong yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a field is wrong.
    pub fn refuse(&mut self, field: impl Into<String>, detail: impl Into<String>) {
        self.0.push(FieldError {
            field: field.into(),
            detail: detail.into(),
        });
    }

    /// A field's value, or a note of why it is none.
    pub fn take<T, E: std::fmt::Display>(&mut self, field: &str, value: Result<T, E>) -> Option<T> {
        value.map_err(|error| self.refuse(field, error.to_string())).ok()
    }

    /// Text for people: between `min` and `max` characters and no control characters (PostgreSQL's text cannot hold NUL, and the
    /// others would disturb terminals and logs).
    pub fn text(&mut self, field: &str, text: &str, min: usize, max: usize) {
        let length = text.chars().take(max + 1).count();
        if length < min || length > max {
            self.refuse(field, format!("must have {min} to {max} characters"));
        } else if text.chars().any(char::is_control) {
            self.refuse(field, "must not have control characters");
        } else if min > 0 && text.trim().is_empty() {
            self.refuse(field, "must not be blank");
        }
    }

    /// A name for programs: 1 to 40 characters of `a-z`, `0-9` and hyphens.
    pub fn name(&mut self, field: &str, text: &str) {
        let well_formed = (1..=40).contains(&text.len())
            && text
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !well_formed {
            self.refuse(field, "must have 1 to 40 characters of a-z, 0-9 and hyphens");
        }
    }

    /// The end of all checks.
    pub fn finish(self) -> Result<(), Problem> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Problem::invalid_body(self.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> Option<String> {
        let mut checks = Checks::new();
        checks.text("name", text, 1, 5);
        checks.finish().err().map(|problem| problem.detail().to_owned())
    }

    #[test]
    fn text_is_counted_in_characters_and_has_no_control_characters() {
        assert_eq!(verdict("äöüß€"), None);
        for text in ["", "äöüß€x", "a\0", "a\nb", "\u{9b}1m", "  "] {
            assert!(verdict(text).unwrap().starts_with("name: must"), "{text:?}");
        }
    }
}
