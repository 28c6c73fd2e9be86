//! What a statement may leave behind in its session, told from its text.
//!
//! Owns the reading of SQL as far as that takes: literals, comments, the first words of each statement. Refuses to know
//! grammar beyond that, and connections. Allocates nothing.

#[cfg(test)]
mod tests;

/// What the text of one call to the server does to its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Something may stay behind after the transaction has ended.
    pub(super) taints: bool,
    /// It may change settings.
    pub(super) configures: bool,
    /// The last statement that opens or ends a transaction, if any does.
    pub(super) transaction: Option<TransactionControl>,
    /// It goes back to a savepoint.
    pub(super) returns_to_savepoint: bool,
    /// Something is in it that neither reads nor writes rows.
    pub(super) beyond_rows: bool,
}

/// What a statement does to the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionControl {
    /// Afterwards a transaction is open.
    Opens,
    /// Afterwards none is.
    Ends,
}

/// Words that mean session state wherever they stand, in literals too: a literal can be SQL that a function runs.
const TELLTALES: [&str; 10] = [
    "set_config",
    "setseed",
    "listen",
    "prepare",
    "temp",
    "temporary",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
];

/// Reads the text of one call, which may hold several statements.
pub(super) fn inspect(sql: &str) -> Effects {
    let mut effects = Effects::default();
    let mut opening = Opening::default();
    let mut tokens = Tokens { text: sql, at: 0 };
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) => {
                opening.push(word);
                effects.look_for_telltales(word);
            }
            Token::Literal(text) => words(text).for_each(|word| effects.look_for_telltales(word)),
            Token::End => std::mem::take(&mut opening).settle(&mut effects),
        }
    }
    opening.settle(&mut effects);
    effects
}

impl Effects {
    fn look_for_telltales(&mut self, word: &str) {
        if TELLTALES
            .iter()
            .any(|telltale| telltale.eq_ignore_ascii_case(word))
        {
            self.taints = true;
            self.configures |= word.eq_ignore_ascii_case("set_config");
        }
    }
}

/// The first words of a statement, and whether it chains transactions.
#[derive(Default)]
struct Opening<'s> {
    words: [&'s str; 3],
    count: usize,
    chains: bool,
}

impl<'s> Opening<'s> {
    fn push(&mut self, word: &'s str) {
        if let Some(slot) = self.words.get_mut(self.count) {
            *slot = word;
        }
        self.count += 1;
        self.chains |= word.eq_ignore_ascii_case("chain");
    }

    fn is(&self, place: usize, any_of: &[&str]) -> bool {
        any_of
            .iter()
            .any(|word| word.eq_ignore_ascii_case(self.words[place]))
    }

    /// Adds what this statement does.
    fn settle(self, effects: &mut Effects) {
        if self.count == 0
            || self.is(
                0,
                &[
                    "select", "with", "values", "table", "insert", "update", "delete", "merge", "show",
                ],
            )
        {
            return;
        }
        effects.beyond_rows = true;
        if self.is(0, &["begin", "start"]) {
            effects.transaction = Some(TransactionControl::Opens);
        } else if self.is(0, &["rollback"]) && (self.is(1, &["to"]) || self.is(2, &["to"])) {
            effects.returns_to_savepoint = true;
        } else if self.is(0, &["commit", "end", "rollback", "abort"]) {
            let control = if self.chains {
                TransactionControl::Opens
            } else {
                TransactionControl::Ends
            };
            effects.transaction = Some(control);
        } else if self.is(0, &["savepoint", "release", "lock"]) {
            // Ends with the transaction.
        } else if self.is(0, &["set"]) && self.is(1, &["local", "transaction", "constraints"]) {
            effects.configures = true;
        } else {
            effects.taints = true;
            effects.configures |= self.is(0, &["set", "reset", "discard", "do", "call"]);
        }
    }
}

enum Token<'s> {
    /// An identifier or keyword.
    Word(&'s str),
    /// What stands between quotes, of any kind.
    Literal(&'s str),
    /// The end of a statement.
    End,
}

struct Tokens<'s> {
    text: &'s str,
    at: usize,
}

impl<'s> Tokens<'s> {
    fn next(&mut self) -> Option<Token<'s>> {
        let bytes = self.text.as_bytes();
        loop {
            let start = self.at;
            match *bytes.get(start)? {
                b';' => {
                    self.at += 1;
                    return Some(Token::End);
                }
                b'-' if bytes[start..].starts_with(b"--") => self.at = after(self.text, start + 2, "\n"),
                b'/' if bytes[start..].starts_with(b"/*") => self.skip_comment(),
                b'\'' => {
                    // In `E'…'` a backslash takes the next character with it; in other literals it is a character.
                    let escapes = start > 0
                        && bytes[start - 1].eq_ignore_ascii_case(&b'e')
                        && !(start > 1 && is_word(bytes[start - 2]));
                    return Some(self.quoted(b'\'', escapes));
                }
                b'"' => return Some(self.quoted(b'"', false)),
                b'$' => {
                    if let Some(literal) = self.dollar_quoted() {
                        return Some(literal);
                    }
                }
                byte if is_word(byte) => {
                    self.at += length_of_word(&bytes[start..]);
                    return Some(Token::Word(&self.text[start..self.at]));
                }
                _ => self.at += 1,
            }
        }
    }

    /// A doubled quote inside is the end of one literal and the start of the next, which comes to the same.
    fn quoted(&mut self, quote: u8, escapes: bool) -> Token<'s> {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let mut end = start;
        while end < bytes.len() && bytes[end] != quote {
            end += if escapes && bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(bytes.len());
        self.at = end + 1;
        Token::Literal(self.text.get(start..end).unwrap_or_default())
    }

    /// `$tag$ … $tag$`. A parameter such as `$1` is not one and is passed over.
    fn dollar_quoted(&mut self) -> Option<Token<'s>> {
        let rest = &self.text[self.at..];
        let tag = rest[1..].find('$').map(|end| &rest[..end + 2]);
        let tag = tag.filter(|tag| {
            let name = &tag.as_bytes()[1..tag.len() - 1];
            !name.first().is_some_and(u8::is_ascii_digit) && name.iter().copied().all(is_word)
        });
        let Some(tag) = tag else {
            self.at += 1;
            return None;
        };
        let start = self.at + tag.len();
        self.at = after(self.text, start, tag);
        let end = if self.text[..self.at].ends_with(tag) {
            (self.at - tag.len()).max(start)
        } else {
            self.at
        };
        Some(Token::Literal(&self.text[start..end]))
    }

    /// Comments nest.
    fn skip_comment(&mut self) {
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        while self.at < bytes.len() {
            let rest = &bytes[self.at..];
            if rest.starts_with(b"/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += 1;
            }
        }
    }
}

/// Where the text goes on after the next `end`, counted from `from`.
fn after(text: &str, from: usize, end: &str) -> usize {
    text[from..]
        .find(end)
        .map_or(text.len(), |found| from + found + end.len())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_ascii() && !is_word(c as u8))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn length_of_word(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| !is_word(*byte) && *byte != b'$')
        .unwrap_or(bytes.len())
}
