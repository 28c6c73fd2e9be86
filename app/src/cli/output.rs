//! How an answer of the API looks in a terminal.
//!
//! Works on the answer's JSON as it came, so `--output json` is exactly what the API says. Refuses to know what the
//! columns mean.

use std::io::{self, Write};

use clap::ValueEnum;
use comfy_table::{Table, presets};
use serde_json::Value;

use super::failure::Failure;

/// How answers are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people.
    #[default]
    Table,
    /// The API's answer, for programs.
    Json,
}

/// A column's heading, and the JSON pointer of what stands below it.
pub(super) type Column = (&'static str, &'static str);

impl Output {
    /// Prints one object: a line per field.
    pub(super) fn one(self, answer: &Value, fields: &[Column]) -> Result<(), Failure> {
        match self {
            Self::Json => print_json(answer),
            Self::Table => {
                let mut table = new_table();
                table.add_rows(
                    fields
                        .iter()
                        .map(|(name, pointer)| [(*name).to_owned(), text_at(answer, pointer)]),
                );
                print(&lines(table))
            }
        }
    }

    /// Prints a list within an object that [`Self::one`] has printed: in JSON it is there already.
    pub(super) fn part(self, answer: &Value, pointer: &str, columns: &[Column]) -> Result<(), Failure> {
        match (self, answer.pointer(pointer).and_then(Value::as_array)) {
            (Self::Table, Some(items)) if !items.is_empty() => {
                print("")?;
                print(&rows(items, columns))
            }
            _ => Ok(()),
        }
    }

    /// Prints the `items` of a list: a row per item, or a sentence when there are none.
    pub(super) fn list(self, answer: &Value, columns: &[Column], none: &str) -> Result<(), Failure> {
        if self == Self::Json {
            return print_json(answer);
        }
        let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        if items.is_empty() {
            return print(none);
        }
        print(&rows(items, columns))
    }
}

/// A row per item, below a header.
fn rows(items: &[Value], columns: &[Column]) -> String {
    let mut table = new_table();
    table.set_header(columns.iter().map(|(heading, _)| heading.to_uppercase()));
    table.add_rows(
        items
            .iter()
            .map(|item| columns.iter().map(|(_, pointer)| text_at(item, pointer))),
    );
    lines(table)
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// The table's lines, from the left edge on, without trailing blanks.
fn lines(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// A value as a person reads it.
fn text_at(answer: &Value, pointer: &str) -> String {
    let text = match answer.pointer(pointer) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Array(items)) if items.is_empty() => "-".to_owned(),
        Some(Value::Array(items)) => join(items.iter().map(|item| text_at(item, ""))),
        Some(Value::Object(fields)) if fields.is_empty() => "-".to_owned(),
        Some(Value::Object(fields)) => join(
            fields
                .iter()
                .map(|(key, value)| format!("{key}={}", text_at(value, ""))),
        ),
    };
    harmless(&text)
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(", ")
}

/// Text of others, without the characters by which it could take over a terminal.
pub(super) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

fn print_json(answer: &Value) -> Result<(), Failure> {
    print(&serde_json::to_string_pretty(answer).expect("a JSON value can be written"))
}

/// Prints lines to standard output. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn print(lines: &str) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{lines}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::operation(format_args!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_people_read_them() {
        let answer = json!({
            "id": "acme", "none": null, "yes": true, "list": ["a", "b"], "empty": [], "labels": {"tier": "gold"},
            "nested": {"revision": 7},
        });
        for (pointer, text) in [
            ("/id", "acme"),
            ("/none", "-"),
            ("/absent", "-"),
            ("/yes", "yes"),
            ("/list", "a, b"),
            ("/empty", "-"),
            ("/labels", "tier=gold"),
            ("/nested/revision", "7"),
        ] {
            assert_eq!(text_at(&answer, pointer), text, "{pointer}");
        }
    }

    #[test]
    fn a_name_cannot_take_over_the_terminal() {
        assert_eq!(text_at(&json!("a\u{1b}[2Jb\nc"), ""), "a\u{fffd}[2Jb\u{fffd}c");
    }
}
