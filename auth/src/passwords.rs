//! Passwords that people choose: argon2id with the parameters that OWASP's password storage cheat sheet asks for (19 MiB, two
//! passes, one lane), which are the crate's own.
//!
//! A hash takes tens of milliseconds of a processor and 19 MiB, so it is made where it holds up no request, and few at a time.
//! Refuses to know whose a password is.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Semaphore;

/// Hashes that are made at the same time.
const PARALLEL: usize = 2;
/// How long a hash may wait for its turn.
const WAIT: Duration = Duration::from_secs(3);

/// A password that may be set.
#[derive(Clone, Debug)]
pub struct NewPassword(SecretString);

/// The text may not be a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a password has {} to {} characters", NewPassword::MIN, NewPassword::MAX)]
pub struct UnfitPassword;

/// There are too many passwords to be checked at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many people are logging in at the moment")]
pub struct Busy;

impl NewPassword {
    /// Fewest characters. (NIST SP 800-63B asks for at least 8, and for 15 where nothing else is checked.)
    pub const MIN: usize = 12;
    /// Most characters: a limit that no person reaches.
    pub const MAX: usize = 256;

    /// Takes any text of a fitting length: rules about kinds of characters make passwords worse (NIST SP 800-63B, 3.1.1.2).
    pub fn parse(text: SecretString) -> Result<Self, UnfitPassword> {
        let characters = text.expose_secret().chars().take(Self::MAX + 1).count();
        if (Self::MIN..=Self::MAX).contains(&characters) {
            Ok(Self(text))
        } else {
            Err(UnfitPassword)
        }
    }
}

/// Makes and checks hashes of passwords. A clone is cheap.
#[derive(Clone)]
pub struct Passwords {
    turns: Arc<Semaphore>,
    /// The hash of nobody's password, so that an account that does not exist takes as long as one that does.
    nobodys: Arc<OnceLock<String>>,
}

impl Passwords {
    /// Nothing is being hashed yet.
    pub fn new() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(PARALLEL)),
            nobodys: Arc::default(),
        }
    }

    /// The hash of a new password, in the PHC string format.
    pub async fn hash(&self, password: NewPassword) -> Result<String, Busy> {
        self.in_turn(move || hash(password.0.expose_secret())).await
    }

    /// Whether the password is the one with this hash. Without a hash it is not, and that takes as long.
    pub async fn verify(&self, password: SecretString, hash_of: Option<String>) -> Result<bool, Busy> {
        let nobodys = Arc::clone(&self.nobodys);
        self.in_turn(move || {
            let nobodys = nobodys.get_or_init(|| hash("nobody's password"));
            let known = hash_of.is_some();
            let stored = hash_of.as_ref().unwrap_or(nobodys);
            // A stored hash that is damaged fits no password.
            let fits = PasswordHash::new(stored).is_ok_and(|stored| {
                Argon2::default()
                    .verify_password(password.expose_secret().as_bytes(), &stored)
                    .is_ok()
            });
            fits && known
        })
        .await
    }

    /// Makes the hash of nobody's password, so that the first attempt does not take twice as long.
    pub async fn warm_up(&self) {
        let _ = self.verify(SecretString::default(), None).await;
    }

    async fn in_turn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Busy> {
        let turn = tokio::time::timeout(WAIT, Arc::clone(&self.turns).acquire_owned());
        let turn = turn
            .await
            .map_err(|_| Busy)?
            .expect("the semaphore is never closed");
        let hashing = tokio::task::spawn_blocking(move || {
            // Held here, since a caller who goes away does not end what has begun.
            let _turn = turn;
            work()
        });
        Ok(hashing.await.expect("hashing does not panic"))
    }
}

impl Default for Passwords {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passwords")
    }
}

fn hash(password: &str) -> String {
    Argon2::default()
        .hash_password(password.as_bytes())
        .expect("a password is shorter than argon2's limit, and the system has random bytes")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str) -> NewPassword {
        NewPassword::parse(text.to_owned().into()).unwrap()
    }

    #[tokio::test]
    async fn a_hash_fits_its_own_password_only() {
        let passwords = Passwords::new();
        let hash = passwords.hash(password("correct horse battery")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        for (text, fits) in [
            ("correct horse battery", true),
            ("correct horse batterx", false),
            ("", false),
        ] {
            let verified = passwords.verify(text.to_owned().into(), Some(hash.clone())).await;
            assert_eq!(verified, Ok(fits), "{text}");
        }
        let twice = passwords.hash(password("correct horse battery")).await.unwrap();
        assert_ne!(hash, twice, "each hash has a salt of its own");
    }

    #[tokio::test]
    async fn nobody_has_no_password() {
        let passwords = Passwords::new();
        let nobodys = || SecretString::from("nobody's password");
        assert_eq!(passwords.verify(nobodys(), None).await, Ok(false));
        let damaged = passwords.verify(nobodys(), Some("$argon2id$".to_owned())).await;
        assert_eq!(damaged, Ok(false));
    }

    #[test]
    fn a_password_has_a_length_and_no_other_rule() {
        for (text, fits) in [
            ("elevenchars", false),
            ("twelve chars", true),
            ("ääääääääääää", true),
            (&"x".repeat(256), true),
            (&"x".repeat(257), false),
            ("", false),
        ] {
            assert_eq!(NewPassword::parse(text.to_owned().into()).is_ok(), fits, "{text}");
        }
    }
}
