//! Reads settings one by one: each read says the key, its type and its default in one place, and that place is where the key
//! becomes known, where a wrong value is noted, and where the effective configuration gets its line.

use std::{collections::BTreeSet, fmt::Display, time::Duration};

use secrecy::SecretString;
use toml::Value;
use url::Url;

use super::{
    effective::{HIDDEN, Line, quoted, render, without_password},
    tree::Tree,
};

pub(super) struct Reader {
    tree: Tree,
    known: BTreeSet<String>,
    problems: Vec<String>,
    effective: Vec<Line>,
}

impl Reader {
    pub(super) fn new(tree: Tree) -> Self {
        Self {
            tree,
            known: BTreeSet::new(),
            problems: Vec::new(),
            effective: Vec::new(),
        }
    }

    /// Notes that a setting is wrong. The reason must not repeat a value that may be secret.
    pub(super) fn refuse(&mut self, path: &str, reason: impl Display) {
        let problem = match self.tree.variable(path) {
            Some(variable) => format!("{path} (from {variable}): {reason}"),
            None => format!("{path}: {reason}"),
        };
        self.problems.push(problem);
    }

    /// How much has been wrong so far.
    pub(super) fn complaints(&self) -> usize {
        self.problems.len()
    }

    /// A value, or a note of why it is none.
    pub(super) fn check<T, E: Display>(&mut self, path: &str, value: Result<T, E>) -> Option<T> {
        value.map_err(|reason| self.refuse(path, reason)).ok()
    }

    /// How many tables an array of tables has.
    pub(super) fn tables(&mut self, path: &str) -> usize {
        self.known.insert(path.to_owned());
        match self.tree.get(path).map(|value| value.as_array().map(Vec::len)) {
            Some(Some(tables)) => tables,
            Some(None) => {
                self.refuse(path, format!("must be tables that begin with [[{path}]]"));
                0
            }
            None => 0,
        }
    }

    /// Text.
    fn text(&mut self, path: &str) -> Option<String> {
        self.known.insert(path.to_owned());
        let value = self.tree.get(path)?;
        let Some(text) = value.as_str() else {
            let found = value.type_str();
            self.refuse(
                path,
                format!("must be text in quotes, and is a value of type {found}"),
            );
            return None;
        };
        Some(text.to_owned())
    }

    /// Text that means a value.
    pub(super) fn parsed<T, E: Display>(
        &mut self,
        path: &str,
        default: Option<&str>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let known = self.problems.len();
        let given = self.text(path);
        if self.problems.len() > known {
            return None;
        }
        self.line(
            path,
            given.as_deref().or(default).map(quoted),
            given.is_some(),
            None,
        );
        let parsed = parse(given.as_deref().or(default)?);
        self.check(path, parsed)
    }

    /// A period, such as `"30s"`.
    pub(super) fn duration(&mut self, path: &str, default: &str, least: Duration) -> Option<Duration> {
        self.parsed(path, Some(default), |text| {
            let duration = humantime::parse_duration(text)
                .map_err(|_| "must be a period such as \"250ms\", \"30s\" or \"2m\"".to_owned())?;
            if duration < least {
                Err(format!("must be at least {least:?}"))
            } else {
                Ok(duration)
            }
        })
    }

    /// A whole number. The environment has text only, so text is a number there.
    pub(super) fn number(
        &mut self,
        path: &str,
        default: u32,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<u32> {
        self.known.insert(path.to_owned());
        let number = match self.tree.get(path) {
            None => Some(i64::from(default)),
            Some(Value::Integer(number)) => Some(*number),
            Some(Value::String(text)) if self.tree.variable(path).is_some() => text.trim().parse().ok(),
            Some(_) => None,
        };
        let number = number
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| range.contains(number));
        match number {
            Some(number) => self.line(
                path,
                Some(number.to_string()),
                self.tree.get(path).is_some(),
                None,
            ),
            None => self.refuse(
                path,
                format!("must be a whole number from {} to {}", range.start(), range.end()),
            ),
        }
        number
    }

    /// Yes or no. The environment has text only, so text is yes or no there.
    pub(super) fn flag(&mut self, path: &str, default: bool) -> Option<bool> {
        self.known.insert(path.to_owned());
        let flag = match self.tree.get(path) {
            None => Some(default),
            Some(Value::Boolean(flag)) => Some(*flag),
            Some(Value::String(text)) if self.tree.variable(path).is_some() => text.trim().parse().ok(),
            Some(_) => None,
        };
        match flag {
            Some(flag) => self.line(path, Some(flag.to_string()), self.tree.get(path).is_some(), None),
            None => self.refuse(path, "must be true or false, without quotes"),
        }
        flag
    }

    /// A secret: in the configuration itself, or in the file that `<key>_file` names. A file's last line end is not part of it.
    pub(super) fn secret(&mut self, path: &str) -> Option<SecretString> {
        self.hidden(path, |_| quoted(HIDDEN)).map(Into::into)
    }

    /// A connection string, which may hold a password.
    pub(super) fn url(&mut self, path: &str, schemes: &[&str]) -> Option<SecretString> {
        let text = self.hidden(path, |text| quoted(&without_password(text)))?;
        let well_formed = Url::parse(&text).is_ok_and(|url| schemes.contains(&url.scheme()));
        if !well_formed {
            self.refuse(path, format!("must be a URL that begins with {}://", schemes[0]));
            return None;
        }
        Some(text.into())
    }

    /// Several secrets; from a file, one per line.
    pub(super) fn secrets(&mut self, path: &str) -> Vec<SecretString> {
        self.hidden_list(path, |_| HIDDEN.to_owned())
            .into_iter()
            .map(Into::into)
            .collect()
    }

    /// Several connection strings; from a file, one per line.
    pub(super) fn urls(&mut self, path: &str, schemes: &[&str]) -> Vec<SecretString> {
        let urls = self.hidden_list(path, without_password);
        if !urls
            .iter()
            .all(|text| Url::parse(text).is_ok_and(|url| schemes.contains(&url.scheme())))
        {
            self.refuse(
                path,
                format!("must be a list of URLs that begin with {}://", schemes[0]),
            );
        }
        urls.into_iter().map(Into::into).collect()
    }

    /// Several texts, each of which means a value.
    pub(super) fn list<T, E: Display>(
        &mut self,
        path: &str,
        default: &[&str],
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let given = self.lines(path);
        let items: Vec<String> = match &given {
            Some(text) => text.lines().map(str::to_owned).collect(),
            None => default.iter().map(|item| (*item).to_owned()).collect(),
        };
        let shown: Vec<String> = items.iter().map(|item| quoted(item)).collect();
        self.line(
            path,
            Some(format!("[{}]", shown.join(", "))),
            given.is_some(),
            None,
        );
        let mut values = Vec::new();
        for item in &items {
            let parsed = parse(item.trim());
            values.extend(self.check(path, parsed));
        }
        values
    }

    /// The end of reading: what was wrong, or the effective configuration.
    pub(super) fn finish(mut self) -> Result<String, Vec<String>> {
        for path in self.tree.leaves() {
            if !self.known.contains(&path) {
                let section = path.rsplit_once('.').map_or("", |(section, _)| section);
                let siblings: Vec<&str> = self
                    .known
                    .iter()
                    .filter_map(|known| known.strip_prefix(section)?.strip_prefix('.'))
                    .collect();
                let hint = if siblings.is_empty() {
                    "there is no such section".to_owned()
                } else {
                    format!("[{section}] has {}", siblings.join(", "))
                };
                self.refuse(&path, format!("unknown key; {hint}"));
            }
        }
        if self.problems.is_empty() {
            Ok(render(&self.effective))
        } else {
            Err(self.problems)
        }
    }

    fn line(&mut self, path: &str, value: Option<String>, given: bool, file: Option<&str>) {
        let origin = match (self.tree.variable(path), file) {
            (Some(variable), _) => format!("from {variable}"),
            (None, Some(file)) => format!("from {file}"),
            (None, None) if given => String::new(),
            (None, None) => "default".to_owned(),
        };
        self.effective.push(Line {
            path: path.to_owned(),
            value,
            origin,
        });
    }

    /// Text that must not be shown, from the key itself or from the file that `<key>_file` names.
    fn hidden(&mut self, path: &str, shown: impl Fn(&str) -> String) -> Option<String> {
        let (text, file) = self.key_or_file(path, Self::text)?;
        self.line(path, Some(shown(&text)), true, file.as_deref());
        Some(text)
    }

    fn hidden_list(&mut self, path: &str, shown: impl Fn(&str) -> String) -> Vec<String> {
        let Some((text, file)) = self.key_or_file(path, Self::lines) else {
            return Vec::new();
        };
        let items: Vec<String> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        let rendered = items
            .iter()
            .map(|item| quoted(&shown(item)))
            .collect::<Vec<_>>()
            .join(", ");
        self.line(
            path,
            Some(format!("[{rendered}]")),
            !items.is_empty(),
            file.as_deref(),
        );
        items
    }

    /// A list of texts, one per line. In the environment: in the syntax of TOML, or a single one as it is.
    fn lines(&mut self, path: &str) -> Option<String> {
        self.known.insert(path.to_owned());
        let value = self.tree.get(path)?.clone();
        let value = match (&value, self.tree.variable(path)) {
            (Value::String(text), Some(_)) if text.trim_start().starts_with('[') => format!("v = {text}")
                .parse::<toml::Table>()
                .ok()
                .and_then(|mut table| table.remove("v")),
            (Value::String(text), Some(_)) => Some(Value::Array(vec![Value::String(text.clone())])),
            _ => Some(value),
        };
        let items = value.as_ref().and_then(Value::as_array).and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().filter(|text| !text.contains('\n')))
                .collect::<Option<Vec<_>>>()
        });
        if items.is_none() {
            self.refuse(path, "must be a list of texts, such as [\"one\", \"two\"]");
        }
        items.map(|items| items.join("\n"))
    }

    /// What the key holds, or what the file that `<key>_file` names holds, and that file. Of two, the environment's counts.
    fn key_or_file(
        &mut self,
        path: &str,
        read: impl FnOnce(&mut Self, &str) -> Option<String>,
    ) -> Option<(String, Option<String>)> {
        let file_key = format!("{path}_file");
        let file = self.text(&file_key);
        let direct = self.tree.get(path).is_some();
        let (from_key, from_file) = (
            self.tree.variable(path).is_some(),
            self.tree.variable(&file_key).is_some(),
        );
        if direct && file.is_some() && from_key == from_file {
            self.known.insert(path.to_owned());
            self.refuse(
                path,
                format!("is set, and {file_key} is set too; keep one of them"),
            );
            return None;
        }
        match file {
            Some(file) if !direct || from_file => {
                self.known.insert(path.to_owned());
                let text =
                    std::fs::read_to_string(&file).map_err(|error| format!("cannot read {file}: {error}"));
                let text = self.check(&file_key, text)?;
                Some((text.trim_end_matches(['\r', '\n']).to_owned(), Some(file)))
            }
            _ => read(self, path).map(|text| (text, None)),
        }
    }
}
