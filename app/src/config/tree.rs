//! The file and the environment as one tree of values, and where each value comes from.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// How the names of our environment variables begin.
const PREFIX: &str = "TENANTRY__";

/// The values of the file, overridden by the environment's.
pub(super) struct Tree {
    table: Table,
    /// The variable that gave a value, by the value's path.
    variables: BTreeMap<String, String>,
}

impl Tree {
    pub(super) fn new(
        text: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Vec<String>> {
        let table = text.parse::<Table>().map_err(|error| {
            // The error's own text repeats the line, which may hold a secret.
            let line = error.span().map_or(1, |span| {
                text[..span.start.min(text.len())].matches('\n').count() + 1
            });
            vec![format!("line {line} is not TOML: {}", error.message())]
        })?;
        let mut tree = Self {
            table,
            variables: BTreeMap::new(),
        };
        let mut problems = Vec::new();
        for (variable, value) in environment {
            let Some(rest) = variable.strip_prefix(PREFIX) else {
                continue;
            };
            let path = rest.to_ascii_lowercase();
            let keys: Vec<&str> = path.split("__").collect();
            match set(&mut tree.table, &keys, value) {
                Some(path) => {
                    tree.variables.insert(path, variable);
                }
                None => problems.push(format!("{variable} names no key; write TENANTRY__SECTION__KEY")),
            }
        }
        if problems.is_empty() {
            Ok(tree)
        } else {
            Err(problems)
        }
    }

    /// The value at a path such as `http.listen` or `clusters[0].name`.
    pub(super) fn get(&self, path: &str) -> Option<&Value> {
        let mut keys = path.split('.');
        let mut value = index(self.table.get(without_index(keys.clone().next()?))?, keys.next()?)?;
        for key in keys {
            value = index(value.as_table()?.get(without_index(key))?, key)?;
        }
        Some(value)
    }

    /// The variable that gave the value at a path.
    pub(super) fn variable(&self, path: &str) -> Option<&str> {
        self.variables.get(path).map(String::as_str)
    }

    /// The paths of all values that are no tables, and of empty tables.
    pub(super) fn leaves(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (key, value) in &self.table {
            leaves(key.clone(), value, &mut found);
        }
        found
    }
}

fn without_index(key: &str) -> &str {
    key.split('[').next().unwrap_or(key)
}

/// The element that the key's index means, or the value itself.
fn index<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match key.strip_suffix(']').and_then(|key| key.split_once('[')) {
        Some((_, index)) => value.as_array()?.get(index.parse::<usize>().ok()?),
        None => Some(value),
    }
}

/// Puts a variable's value into the tree, as text; answers its path.
fn set(table: &mut Table, keys: &[&str], value: String) -> Option<String> {
    let (last, sections) = keys.split_last()?;
    if keys.iter().any(|key| key.is_empty()) {
        return None;
    }
    let mut table = table;
    let mut path = String::new();
    let mut sections = sections.iter();
    while let Some(key) = sections.next() {
        path.push_str(key);
        let next = table.entry(*key).or_insert_with(|| Value::Table(Table::new()));
        table = match next {
            Value::Table(section) => section,
            Value::Array(elements) => {
                let number = sections.next()?.parse::<usize>().ok()?;
                path = format!("{path}[{number}]");
                elements.get_mut(number)?.as_table_mut()?
            }
            _ => return None,
        };
        path.push('.');
    }
    path.push_str(last);
    table.insert((*last).to_owned(), Value::String(value));
    Some(path)
}

fn leaves(path: String, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            for (key, value) in table {
                leaves(format!("{path}.{key}"), value, found);
            }
        }
        Value::Array(elements) if !elements.is_empty() && elements.iter().all(Value::is_table) => {
            for (number, element) in elements.iter().enumerate() {
                leaves(format!("{path}[{number}]"), element, found);
            }
        }
        _ => found.push(path),
    }
}
