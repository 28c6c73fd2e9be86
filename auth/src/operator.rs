//! Operators: people and programs that run the service, each known by a token.
//!
//! Refuses to know what an operator may do and where tokens come from.

use std::{fmt, sync::Arc};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The name of an operator, as it appears in the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorName(Arc<str>);

impl OperatorName {
    /// The name of an operator whose token the catalog has.
    pub(crate) fn registered(name: &str) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OperatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// No usable token is configured, so that nobody could be told apart from anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no operator token is configured, or one is blank; make one with `openssl rand -hex 32`")]
pub struct NoOperatorToken;

/// The tokens that operators may present, as hashes. There is at least one, and none is blank.
#[derive(Clone)]
pub struct OperatorTokens(Arc<[(OperatorName, [u8; 32])]>);

impl OperatorTokens {
    /// Tokens by the name of their operator.
    pub fn new(tokens: impl IntoIterator<Item = (String, SecretString)>) -> Result<Self, NoOperatorToken> {
        let tokens = tokens
            .into_iter()
            .map(|(name, token)| {
                let token = token.expose_secret();
                let usable = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
                usable
                    .then(|| (OperatorName(name.into()), Sha256::digest(token).into()))
                    .ok_or(NoOperatorToken)
            })
            .collect::<Result<Arc<[_]>, _>>()?;
        if tokens.is_empty() {
            Err(NoOperatorToken)
        } else {
            Ok(Self(tokens))
        }
    }

    /// Whose token this is. Takes the same time whichever token it is, or is not: hashes are compared, all of them.
    pub fn identify(&self, presented: &str) -> Option<&OperatorName> {
        let hash: [u8; 32] = Sha256::digest(presented).into();
        let mut found = Choice::from(0);
        let mut at = 0_u32;
        for (index, (_, token)) in (0_u32..).zip(self.0.iter()) {
            let same = hash.ct_eq(token);
            at.conditional_assign(&index, same);
            found |= same;
        }
        bool::from(found).then(|| &self.0[at as usize].0)
    }
}

impl fmt::Debug for OperatorTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name.as_str()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(pairs: &[(&str, &str)]) -> Result<OperatorTokens, NoOperatorToken> {
        OperatorTokens::new(
            pairs
                .iter()
                .map(|(name, token)| ((*name).to_owned(), (*token).to_owned().into())),
        )
    }

    #[test]
    fn each_token_names_its_operator() {
        let tokens = tokens(&[("one", "first-token"), ("two", "second-token")]).unwrap();
        assert_eq!(tokens.identify("first-token").unwrap().as_str(), "one");
        assert_eq!(tokens.identify("second-token").unwrap().as_str(), "two");
        for other in [
            "",
            "first-toke",
            "first-token ",
            "FIRST-TOKEN",
            "first-tokensecond-token",
        ] {
            assert_eq!(tokens.identify(other), None, "{other:?}");
        }
    }

    #[test]
    fn nothing_is_ever_open() {
        for pairs in [
            &[][..],
            &[("one", "")],
            &[("one", "  ")],
            &[("one", "good"), ("two", "")],
            &[("one", "a\nb")],
        ] {
            assert_eq!(tokens(pairs).unwrap_err(), NoOperatorToken);
        }
    }

    #[test]
    fn a_token_does_not_appear_when_printed() {
        let printed = format!("{:?}", tokens(&[("one", "first-token")]).unwrap());
        assert_eq!(printed, r#"["one"]"#);
    }
}
