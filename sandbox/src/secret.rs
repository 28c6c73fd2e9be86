//! Passwords of superusers.

use rand::distr::{Alphanumeric, SampleString};
use secrecy::SecretString;

/// A new password of 190 bits. Letters and digits only, so that it means itself in URLs and files.
pub(crate) fn password() -> SecretString {
    Alphanumeric.sample_string(&mut rand::rng(), 32).into()
}
