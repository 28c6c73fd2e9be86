//! Keys that the service gives out: their text form, how they are made, parsed and compared.
//!
//! `<prefix>_<key id>_<secret>_<checksum>`: a prefix that says what the key is for and that secret scanners recognise, 16
//! characters that name the key, 36 random characters, and the CRC-32 of all before it in hexadecimal. Refuses to know where
//! keys are stored and whose they are.

use std::fmt;

use rand::{
    CryptoRng, RngExt,
    distr::{Alphanumeric, SampleString},
};
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What a key is for. One kind is never taken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// A tenant's API key.
    Tenant,
    /// An operator's token.
    Operator,
    /// An invitation into a tenant.
    Invitation,
}

impl KeyKind {
    /// How every key of this kind begins.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Tenant => "tnt_",
            Self::Operator => "tno_",
            Self::Invitation => "tni_",
        }
    }
}

/// Characters of a key's id, each `a-z` or `0-9`.
const ID_LENGTH: usize = 16;
/// Characters of a key's secret, each one of 62: 214 bits.
const SECRET_LENGTH: usize = 36;
/// Hexadecimal digits of the checksum.
const CHECKSUM_LENGTH: usize = 8;
const ID_ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The public part of a key: names it in the catalog, in logs and in paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; ID_LENGTH]);

/// The text is no key of the kind that is asked for, or was cut or mistyped. Says nothing about what was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text is no key of this kind, or only a part of one")]
pub struct MalformedKey;

impl KeyId {
    /// Parses a key's id.
    pub fn parse(text: &str) -> Result<Self, MalformedKey> {
        let id: [u8; ID_LENGTH] = text.as_bytes().try_into().map_err(|_| MalformedKey)?;
        // The characters of `ID_ALPHABET`.
        let well_formed = id
            .iter()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if well_formed {
            Ok(Self(id))
        } else {
            Err(MalformedKey)
        }
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("letters and digits are text")
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyId").field(&self.as_str()).finish()
    }
}

impl std::str::FromStr for KeyId {
    type Err = MalformedKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// A new key. Its plaintext goes to the one who asked for it and is not kept.
#[derive(Debug)]
pub struct GeneratedKey {
    /// Names the key.
    pub id: KeyId,
    /// The whole key, for its owner.
    pub plaintext: SecretString,
    /// What the catalog keeps of the secret.
    pub secret_sha256: [u8; 32],
}

impl GeneratedKey {
    /// Draws a new key.
    pub fn generate(kind: KeyKind, rng: &mut impl CryptoRng) -> Self {
        let id = KeyId(std::array::from_fn(|_| ID_ALPHABET[rng.random_range(0..36)]));
        let secret = Alphanumeric.sample_string(rng, SECRET_LENGTH);
        let secret_sha256 = Sha256::digest(&secret).into();
        let body = format!("{}{id}_{secret}", kind.prefix());
        let plaintext = format!("{body}_{:08x}", crc32fast::hash(body.as_bytes()));
        Self {
            id,
            plaintext: plaintext.into(),
            secret_sha256,
        }
    }
}

/// A key that somebody presented, reduced to what is needed to judge it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentedKey {
    id: KeyId,
    secret_sha256: [u8; 32],
}

impl PresentedKey {
    /// Parses a presented key. Only this form is accepted; nothing is trimmed or folded.
    pub fn parse(kind: KeyKind, text: &str) -> Result<Self, MalformedKey> {
        let (body, checksum) = text.rsplit_once('_').ok_or(MalformedKey)?;
        let (id, secret) = body
            .strip_prefix(kind.prefix())
            .and_then(|rest| rest.split_once('_'))
            .ok_or(MalformedKey)?;
        let id = KeyId::parse(id)?;
        let well_formed = secret.len() == SECRET_LENGTH
            && secret.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && checksum.len() == CHECKSUM_LENGTH
            && checksum
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && u32::from_str_radix(checksum, 16) == Ok(crc32fast::hash(body.as_bytes()));
        if !well_formed {
            return Err(MalformedKey);
        }
        Ok(Self {
            id,
            secret_sha256: Sha256::digest(secret).into(),
        })
    }

    /// The key that it claims to be.
    pub fn id(&self) -> &KeyId {
        &self.id
    }

    /// Whether its secret is the one with this hash, in constant time.
    pub fn matches(&self, secret_sha256: &[u8; 32]) -> bool {
        self.secret_sha256.ct_eq(secret_sha256).into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{SeedableRng, rngs::StdRng};
    use secrecy::ExposeSecret;

    use super::*;

    fn key(seed: u64) -> GeneratedKey {
        GeneratedKey::generate(KeyKind::Tenant, &mut StdRng::seed_from_u64(seed))
    }

    fn parse(text: &str) -> Result<PresentedKey, MalformedKey> {
        PresentedKey::parse(KeyKind::Tenant, text)
    }

    #[test]
    fn a_key_of_one_kind_is_none_of_another() {
        let kinds = [KeyKind::Tenant, KeyKind::Operator, KeyKind::Invitation];
        for made in kinds {
            let key = GeneratedKey::generate(made, &mut StdRng::seed_from_u64(5));
            for wanted in kinds {
                let parsed = PresentedKey::parse(wanted, key.plaintext.expose_secret());
                assert_eq!(parsed.is_ok(), made == wanted, "{made:?} as {wanted:?}");
            }
        }
    }

    #[test]
    fn a_key_has_the_documented_form() {
        let key = key(1);
        let text = key.plaintext.expose_secret();
        let parts: Vec<&str> = text.split('_').collect();
        assert_eq!(parts.len(), 4);
        assert_eq!((parts[0], parts[1]), ("tnt", key.id.as_str()));
        assert_eq!((parts[1].len(), parts[2].len(), parts[3].len()), (16, 36, 8));
        assert!(
            !format!("{key:?}").contains(parts[2]),
            "the secret does not appear when a key is printed"
        );
    }

    #[test]
    fn a_part_of_a_key_is_no_key() {
        let key = key(2);
        let text = key.plaintext.expose_secret();
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), Err(MalformedKey), "cut after {end}");
        }
        for (index, _) in text.char_indices() {
            assert_eq!(parse(&text[index + 1..]), Err(MalformedKey), "from {index}");
        }
        for other in [
            format!(" {text}"),
            format!("{text} "),
            format!("{text}\n"),
            text.to_uppercase(),
            format!("{text}0"),
        ] {
            assert_eq!(parse(&other), Err(MalformedKey), "{other:?}");
        }
    }

    #[test]
    fn a_key_opens_with_its_own_secret_only() {
        let (one, other) = (key(3), key(4));
        let presented = parse(one.plaintext.expose_secret()).unwrap();
        assert!(presented.matches(&one.secret_sha256));
        assert!(!presented.matches(&other.secret_sha256));
        assert!(!presented.matches(&[0; 32]));
    }

    proptest! {
        #[test]
        fn what_is_generated_is_parsed(seed: u64) {
            let key = key(seed);
            let presented = parse(key.plaintext.expose_secret()).unwrap();
            prop_assert_eq!(presented.id(), &key.id);
            prop_assert!(presented.matches(&key.secret_sha256));
        }

        /// CRC-32 finds every error burst of up to 32 bits, and so every changed character.
        #[test]
        fn one_wrong_character_is_noticed(seed: u64, index in 0usize..67, replacement in "[ -~]") {
            let text = key(seed).plaintext.expose_secret().to_owned();
            let index = index % text.len();
            let mut changed = text.clone();
            changed.replace_range(index..=index, &replacement);
            prop_assume!(changed != text);
            prop_assert_eq!(parse(&changed), Err(MalformedKey));
        }

        #[test]
        fn arbitrary_text_never_panics_and_is_never_a_key(text in "(tnt_)?\\PC{0,80}") {
            prop_assert_eq!(parse(&text), Err(MalformedKey));
        }

        #[test]
        fn a_key_id_is_safe_in_a_path(text in ".{0,24}") {
            if let Ok(id) = KeyId::parse(&text) {
                prop_assert!(id.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
            }
        }
    }
}
