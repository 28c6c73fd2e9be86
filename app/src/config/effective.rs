//! The effective configuration as text: a configuration file again, with secrets hidden.
//!
//! Refuses to know how settings are read.

use toml::Value;
use url::Url;

/// What stands in place of a secret.
pub(super) const HIDDEN: &str = "<hidden>";

/// One setting.
pub(super) struct Line {
    pub(super) path: String,
    /// In TOML; absent for a setting without a value.
    pub(super) value: Option<String>,
    /// Where the value comes from; empty for the file.
    pub(super) origin: String,
}

/// Text as TOML writes it.
pub(super) fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// A connection string whose passwords are hidden; nothing of it when it is none.
pub(super) fn without_password(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return HIDDEN.to_owned();
    };
    let has_host = url.set_password(url.password().map(|_| "hidden")).is_ok();
    if !has_host && url.password().is_some() {
        return HIDDEN.to_owned();
    }
    if url
        .query_pairs()
        .any(|(key, _)| key.to_ascii_lowercase().contains("pass"))
    {
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .map(|(key, value)| {
                let secret = key.to_ascii_lowercase().contains("pass");
                (
                    key.into_owned(),
                    if secret {
                        "hidden".to_owned()
                    } else {
                        value.into_owned()
                    },
                )
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(kept);
    }
    url.into()
}

pub(super) fn render(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut section = "";
    for Line { path, value, origin } in lines {
        let (of, key) = path.rsplit_once('.').unwrap_or(("", path));
        if of != section {
            section = of;
            text += &match of.split_once('[') {
                Some((table, _)) => format!("\n[[{table}]]\n"),
                None => format!("\n[{of}]\n"),
            };
        }
        text += &match (value, origin.as_str()) {
            (Some(value), "") => format!("{key} = {value}\n"),
            (Some(value), origin) => format!("{key} = {value}  # {origin}\n"),
            (None, _) => format!("# {key} is not set\n"),
        };
    }
    text.trim_start().to_owned()
}
