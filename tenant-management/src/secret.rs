//! Secrets at rest and in memory: master keys, sealed values, tenants' passwords.
//!
//! Refuses to know where sealed values are stored.

use std::{collections::BTreeMap, fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use hmac::{Hmac, Mac};
use rand::{RngExt, distr::Alphanumeric};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// Bytes of a key's id in a sealed value.
const KEY_ID: usize = 4;
/// Bytes of an XChaCha20-Poly1305 nonce, long enough to be drawn at random for every value.
const NONCE: usize = 24;

/// The keys that seal values in the catalog. New values are sealed with the first; the others open what they have sealed,
/// so that a key can be replaced while everything is in use.
#[derive(Clone)]
pub struct KeyRing {
    current: [u8; KEY_ID],
    keys: Arc<BTreeMap<[u8; KEY_ID], MasterKey>>,
}

/// One master key, in the two ways it is used.
struct MasterKey {
    cipher: XChaCha20Poly1305,
    derivation: Hmac<Sha256>,
}

/// The text is no master key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a master key is 32 random bytes in base64; make one with `openssl rand -base64 32`")]
pub struct InvalidMasterKey;

/// A sealed value cannot be opened: it was changed, belongs to something else, or its key is missing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// None of the keys at hand has sealed it.
    #[error("a sealed value was made with a master key that is not configured here")]
    UnknownKey,
    /// The value is damaged or was sealed for another owner.
    #[error("a sealed value is damaged or belongs to another owner")]
    Damaged,
}

impl KeyRing {
    /// A ring of the current key and earlier ones, each 32 bytes in base64.
    pub fn new<'k>(
        current: &SecretString,
        earlier: impl IntoIterator<Item = &'k SecretString>,
    ) -> Result<Self, InvalidMasterKey> {
        let (current, key) = master_key(current)?;
        let mut keys = BTreeMap::from([(current, key)]);
        for key in earlier {
            let (id, key) = master_key(key)?;
            keys.insert(id, key);
        }
        Ok(Self {
            current,
            keys: Arc::new(keys),
        })
    }

    /// A key for another purpose, from the current master key, and the same from each earlier one. Knowing it says nothing
    /// about the master key or about keys for other purposes (HMAC-SHA-256 as in RFC 5869, section 2.3, for one block).
    pub fn derive(&self, purpose: &str) -> ([u8; 32], Vec<[u8; 32]>) {
        let derive = |key: &MasterKey| {
            let derivation = key.derivation.clone().chain_update(purpose).chain_update([1]);
            derivation.finalize().into_bytes().into()
        };
        let earlier = self.keys.iter().filter(|(id, _)| **id != self.current);
        (
            derive(&self.keys[&self.current]),
            earlier.map(|(_, key)| derive(key)).collect(),
        )
    }

    /// Encrypts `secret` for `owner`; only the same owner can open it, so that a value copied to another row is refused.
    ///
    /// Layout: key id (4 bytes), nonce (24), ciphertext with tag.
    pub fn seal(&self, owner: &[u8], secret: &[u8]) -> Sealed {
        let nonce: [u8; NONCE] = rand::rng().random();
        let ciphertext = self.keys[&self.current]
            .cipher
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: secret,
                    aad: owner,
                },
            )
            .expect("a secret is far shorter than the cipher's limit of 256 GiB");
        Sealed([self.current.as_slice(), &nonce, &ciphertext].concat().into())
    }

    /// Decrypts what [`Self::seal`] made for the same `owner`.
    pub fn open(&self, owner: &[u8], sealed: &Sealed) -> Result<Vec<u8>, OpenError> {
        let (id, rest) = sealed.0.split_first_chunk::<KEY_ID>().ok_or(OpenError::Damaged)?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE>().ok_or(OpenError::Damaged)?;
        let key = self.keys.get(id).ok_or(OpenError::UnknownKey)?;
        key.cipher
            .decrypt(
                &XNonce::from(*nonce),
                Payload {
                    msg: ciphertext,
                    aad: owner,
                },
            )
            .map_err(|_| OpenError::Damaged)
    }

    /// Like [`Self::open`], for a secret that is text.
    pub fn open_text(&self, owner: &[u8], sealed: &Sealed) -> Result<SecretString, OpenError> {
        let text = String::from_utf8(self.open(owner, sealed)?).map_err(|_| OpenError::Damaged)?;
        Ok(text.into())
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({} keys)", self.keys.len())
    }
}

/// A key and its id: the start of the key's hash, which says nothing useful about the key.
fn master_key(text: &SecretString) -> Result<([u8; KEY_ID], MasterKey), InvalidMasterKey> {
    let bytes = STANDARD
        .decode(text.expose_secret().trim())
        .map_err(|_| InvalidMasterKey)?;
    let key: [u8; 32] = bytes.try_into().map_err(|_| InvalidMasterKey)?;
    let hash = Sha256::new()
        .chain_update(b"tenantry master key id")
        .chain_update(key)
        .finalize();
    let id = *hash.first_chunk::<KEY_ID>().expect("SHA-256 has 32 bytes");
    let master = MasterKey {
        cipher: XChaCha20Poly1305::new(&Key::from(key)),
        derivation: Hmac::new_from_slice(&key).expect("HMAC takes keys of any length"),
    };
    Ok((id, master))
}

/// An encrypted value, as the catalog stores it.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(Box<[u8]>);

impl Sealed {
    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Sealed {
    fn from(stored: Vec<u8>) -> Self {
        Self(stored.into())
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

/// A new password for a tenant's role: 32 letters and digits, 190 bits, and nothing that would need escaping anywhere.
pub fn generate_password() -> SecretString {
    let password: String = rand::rng()
        .sample_iter(Alphanumeric)
        .take(32)
        .map(char::from)
        .collect();
    password.into()
}

/// What PostgreSQL stores in place of a *random* password, such as [`generate_password`] makes (SCRAM-SHA-256, RFC 5803). It
/// is sent instead of the password, so that the password appears neither in the statement nor in any log of the server.
///
/// It asks for one iteration instead of the usual 4,096. Iterations slow down whoever guesses passwords from a stolen
/// verifier; a password of 190 random bits cannot be guessed however quick each try is. They slow down the service as well:
/// each new connection would cost milliseconds of processor time, and so would `create role`, where the server tries whether
/// the password is the role's name. **A password that a person chose needs another verifier.**
pub fn scram_verifier(password: &SecretString) -> String {
    let salt: [u8; 16] = rand::rng().random();
    // PBKDF2 with one iteration: one HMAC of the salt and the number of the block.
    let salted = hmac(
        password.expose_secret().as_bytes(),
        &[&salt[..], &1_u32.to_be_bytes()].concat(),
    );
    let stored_key = Sha256::digest(hmac(&salted, b"Client Key"));
    let server_key = hmac(&salted, b"Server Key");
    format!(
        "SCRAM-SHA-256$1:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored_key),
        STANDARD.encode(server_key)
    )
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    Hmac::<Sha256>::new_from_slice(key)
        .expect("HMAC takes keys of any length")
        .chain_update(message)
        .finalize()
        .into_bytes()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SecretString {
        STANDARD.encode([byte; 32]).into()
    }

    #[test]
    fn derived_keys_differ_by_purpose_and_master_key_and_stay_the_same() {
        let old = KeyRing::new(&key(1), []).unwrap();
        let ring = KeyRing::new(&key(2), [&key(1)]).unwrap();
        let (current, earlier) = ring.derive("tokens");
        assert_eq!(earlier, [old.derive("tokens").0]);
        assert_ne!(current, earlier[0]);
        assert_ne!(current, ring.derive("cookies").0);
        assert_ne!(current, [2; 32]);
    }

    #[test]
    fn a_value_opens_for_its_owner_only() {
        let ring = KeyRing::new(&key(1), []).unwrap();
        let sealed = ring.seal(b"acme", b"secret");
        assert_eq!(ring.open(b"acme", &sealed).unwrap(), b"secret");
        assert_eq!(ring.open(b"globex", &sealed), Err(OpenError::Damaged));
        assert_ne!(
            ring.seal(b"acme", b"secret"),
            sealed,
            "each value has a nonce of its own"
        );
    }

    #[test]
    fn an_earlier_key_still_opens_what_it_sealed() {
        let old = KeyRing::new(&key(1), []).unwrap();
        let sealed = old.seal(b"acme", b"secret");
        let rotated = KeyRing::new(&key(2), [&key(1)]).unwrap();
        assert_eq!(rotated.open(b"acme", &sealed).unwrap(), b"secret");
        assert_eq!(
            old.open(b"acme", &rotated.seal(b"acme", b"x")),
            Err(OpenError::UnknownKey)
        );
    }

    #[test]
    fn damage_is_noticed() {
        let ring = KeyRing::new(&key(1), []).unwrap();
        let sealed = ring.seal(b"acme", b"secret");
        for length in 0..sealed.as_bytes().len() {
            assert!(
                ring.open(b"acme", &sealed.as_bytes()[..length].to_vec().into())
                    .is_err()
            );
        }
        for index in 0..sealed.as_bytes().len() {
            let mut bytes = sealed.as_bytes().to_vec();
            bytes[index] ^= 1;
            assert!(ring.open(b"acme", &bytes.into()).is_err());
        }
    }

    #[test]
    fn a_key_that_is_none_is_refused_without_being_repeated() {
        for text in ["", "short", "AAAA", &STANDARD.encode([0; 31])] {
            let refusal = KeyRing::new(&SecretString::from(text.to_owned()), []).unwrap_err();
            assert!(text.is_empty() || !refusal.to_string().contains(text));
        }
    }

    #[test]
    fn a_password_needs_no_escaping_and_never_repeats() {
        let (one, other) = (generate_password(), generate_password());
        assert!(
            one.expose_secret()
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric())
        );
        assert_eq!(one.expose_secret().len(), 32);
        assert_ne!(one.expose_secret(), other.expose_secret());
        assert!(!scram_verifier(&one).contains(one.expose_secret()));
    }
}
