//! The keys of one issuer that may verify a token. Refuses to know where they come from.

use jsonwebtoken::{
    DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse},
};
use serde_json::Value;

use super::settings::Algorithm;

/// Fewest bytes of an RSA modulus (RFC 7518, section 3.3: 2,048 bits).
const LEAST_MODULUS: usize = 256;

/// The usable keys of a JWK set.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// The text is no JWK set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no JWK set: a JSON object with a list `keys`")]
pub(super) struct NoKeySet;

impl Keys {
    /// The usable keys of a set, and how many of its keys are not: of other kinds, for other uses, or too short.
    pub(super) fn parse(set: &[u8]) -> Result<(Self, usize), NoKeySet> {
        let set: Value = serde_json::from_slice(set).map_err(|_| NoKeySet)?;
        let listed = set.get("keys").and_then(Value::as_array).ok_or(NoKeySet)?;
        let keys: Vec<Key> = listed.iter().filter_map(usable).collect();
        let unusable = listed.len() - keys.len();
        Ok((Self(keys), unusable))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key to verify with: the one of this id, or without an id the only one for the algorithm.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let mut fitting = self
            .0
            .iter()
            .filter(|key| key.algorithm == algorithm && (id.is_none() || key.id.as_deref() == id));
        let found = fitting.next()?;
        fitting.next().is_none().then_some(&found.key)
    }
}

fn usable(listed: &Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(listed.clone()).ok()?;
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(rsa) => {
            let modulus = data_encoding::BASE64URL_NOPAD.decode(rsa.n.as_bytes()).ok()?;
            let bytes = modulus.iter().skip_while(|byte| **byte == 0).count();
            (bytes >= LEAST_MODULUS).then_some(Algorithm::Rs256)?
        }
        AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => Algorithm::Es256,
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => Algorithm::EdDsa,
        _ => return None,
    };
    let common = &jwk.common;
    let wanted = match algorithm {
        Algorithm::Rs256 => KeyAlgorithm::RS256,
        Algorithm::Es256 => KeyAlgorithm::ES256,
        Algorithm::EdDsa => KeyAlgorithm::EdDSA,
    };
    let for_this = common.key_algorithm.is_none_or(|only| only == wanted)
        && common
            .public_key_use
            .as_ref()
            .is_none_or(|only| *only == PublicKeyUse::Signature)
        && common
            .key_operations
            .as_ref()
            .is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    if !for_this {
        return None;
    }
    Some(Key {
        id: common.key_id.clone(),
        algorithm,
        key: DecodingKey::from_jwk(&jwk).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ed(id: &str) -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    }

    fn with(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    fn count(key: &Value) -> usize {
        let set = json!({"keys": [key]}).to_string();
        Keys::parse(set.as_bytes()).unwrap().0.0.len()
    }

    #[test]
    fn only_keys_that_verify_signatures_are_usable() {
        assert_eq!(count(&ed("a")), 1);
        assert_eq!(count(&with(ed("a"), "use", json!("sig"))), 1);
        assert_eq!(count(&with(ed("a"), "key_ops", json!(["verify"]))), 1);
        assert_eq!(count(&with(ed("a"), "alg", json!("EdDSA"))), 1);
        for unusable in [
            with(ed("a"), "use", json!("enc")),
            with(ed("a"), "key_ops", json!(["encrypt"])),
            with(ed("a"), "alg", json!("RS256")),
            with(ed("a"), "crv", json!("X25519")),
            json!({"kty": "oct", "kid": "a", "k": "c2VjcmV0"}),
            json!({"kty": "RSA", "kid": "a", "e": "AQAB", "n": "qqqqqqqqqqqqqqqqqqqq"}),
            json!({"kty": "EC", "crv": "P-521", "kid": "a", "x": "AA", "y": "AA"}),
            json!({"kty": "RSA"}),
            json!("a"),
        ] {
            assert_eq!(count(&unusable), 0, "{unusable}");
        }
    }

    #[test]
    fn a_key_is_found_by_its_id_or_by_being_the_only_one() {
        let parse = |keys: Value| {
            Keys::parse(json!({"keys": keys}).to_string().as_bytes())
                .unwrap()
                .0
        };
        let (one, two) = (parse(json!([ed("a")])), parse(json!([ed("a"), ed("b")])));
        assert!(one.find(None, Algorithm::EdDsa).is_some());
        assert!(two.find(None, Algorithm::EdDsa).is_none());
        assert!(two.find(Some("b"), Algorithm::EdDsa).is_some());
        for id in ["c", "", "../a", "a\0"] {
            assert!(two.find(Some(id), Algorithm::EdDsa).is_none(), "{id}");
        }
        assert!(
            two.find(Some("a"), Algorithm::Es256).is_none(),
            "a key has one algorithm"
        );
        let twins = parse(json!([ed("a"), ed("a")]));
        assert!(
            twins.find(Some("a"), Algorithm::EdDsa).is_none(),
            "two of a name are none"
        );
    }

    #[test]
    fn what_is_no_key_set_is_an_error() {
        for text in ["", "[]", "{}", "{\"keys\": {}}", "<html>"] {
            assert_eq!(Keys::parse(text.as_bytes()).unwrap_err(), NoKeySet, "{text}");
        }
    }
}
