//! An issuer of tokens, as a server on this machine: it has keys of each kind, replaces them, goes away and comes back.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use aws_lc_rs::{
    rsa::{KeyPair as RsaKeyPair, KeySize},
    signature::KeyPair as _,
};
use axum::{Json, Router, http::StatusCode, routing::get};
use chrono::Utc;
use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub(crate) const NAME: &str = "https://login.example.com";
pub(crate) const AUDIENCE: &str = "tenantry";

/// A key and its public half.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) algorithm: Algorithm,
    pub(crate) secret: EncodingKey,
    pub(crate) public: Value,
}

#[derive(Default)]
struct State {
    keys: Vec<Key>,
    away: bool,
}

/// A running issuer. Ends with its test's runtime.
#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    fetches: Arc<AtomicU32>,
}

impl Issuer {
    /// With one key of each kind: `rs`, `es` and `ed`.
    pub(crate) async fn start() -> Self {
        let issuer = Self {
            url: String::new(),
            state: Arc::default(),
            fetches: Arc::default(),
        };
        issuer.publish(vec![rs256("rs"), es256("es"), eddsa("ed")]);
        let (state, fetches) = (Arc::clone(&issuer.state), Arc::clone(&issuer.fetches));
        let serve = move || {
            let (state, fetches) = (Arc::clone(&state), Arc::clone(&fetches));
            async move {
                fetches.fetch_add(1, Ordering::Relaxed);
                let state = state.lock();
                if state.away {
                    return Err(StatusCode::BAD_GATEWAY);
                }
                let keys: Vec<&Value> = state.keys.iter().map(|key| &key.public).collect();
                Ok(Json(json!({ "keys": keys })))
            }
        };
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", socket.local_addr().unwrap());
        let router = Router::new().route("/jwks", get(serve));
        tokio::spawn(async move { axum::serve(socket, router).await });
        Self { url, ..issuer }
    }

    /// The settings with which a service trusts it.
    pub(crate) fn settings(&self) -> String {
        format!(
            "[[jwt_issuers]]\nissuer = \"{NAME}\"\naudiences = [\"{AUDIENCE}\", \"other\"]\njwks_url = \"{}\"\n",
            self.url
        )
    }

    /// Replaces its keys.
    pub(crate) fn publish(&self, keys: Vec<Key>) {
        self.state.lock().keys = keys;
    }

    /// Answers with errors from now on, or properly again.
    pub(crate) fn away(&self, away: bool) {
        self.state.lock().away = away;
    }

    /// How often its keys were fetched.
    pub(crate) fn fetches(&self) -> u32 {
        self.fetches.load(Ordering::Relaxed)
    }

    pub(crate) fn key(&self, id: &str) -> Key {
        let state = self.state.lock();
        state.keys.iter().find(|key| key.id == id).unwrap().clone()
    }

    /// A token with good claims for a tenant, changed as the test wants it; null removes a claim.
    pub(crate) fn token(&self, key: &str, change: Value) -> String {
        self.key(key).sign(&claims(change))
    }
}

/// Good claims for the tenant acme, changed as the test wants it; null removes a claim.
pub(crate) fn claims(change: Value) -> Value {
    let now = Utc::now().timestamp();
    let mut claims = json!({
        "iss": NAME, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 300, "tenant_id": "acme", "role": "member",
    });
    let Value::Object(change) = change else {
        panic!("a change is an object")
    };
    for (name, value) in change {
        claims[name.as_str()] = value;
    }
    claims
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    claims
}

impl Key {
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.clone());
        self.sign_with(&header, claims)
    }

    pub(crate) fn sign_with(&self, header: &Header, claims: &Value) -> String {
        jsonwebtoken::encode(header, claims, &self.secret).unwrap()
    }
}

pub(crate) fn rs256(id: &str) -> Key {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let public = pair.public_key();
    let number = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
    let modulus = number(public.modulus().big_endian_without_leading_zero());
    let exponent = number(public.exponent().big_endian_without_leading_zero());
    let der = aws_lc_rs::encoding::AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&pair).unwrap();
    Key {
        id: id.to_owned(),
        algorithm: Algorithm::RS256,
        // The key itself (PKCS #1) is in an envelope (PKCS #8) whose head has 26 bytes for keys of this size.
        secret: EncodingKey::from_rsa_der(&der.as_ref()[26..]),
        public: json!({"kty": "RSA", "kid": id, "use": "sig", "n": modulus, "e": exponent}),
    }
}

pub(crate) fn es256(id: &str) -> Key {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let point = rcgen::PublicKeyData::der_bytes(&pair).to_vec();
    let coordinate = |range: std::ops::Range<usize>| BASE64URL_NOPAD.encode(&point[range]);
    Key {
        id: id.to_owned(),
        algorithm: Algorithm::ES256,
        secret: EncodingKey::from_ec_der(&pair.serialize_der()),
        public: json!({"kty": "EC", "crv": "P-256", "kid": id, "x": coordinate(1..33), "y": coordinate(33..65)}),
    }
}

pub(crate) fn eddsa(id: &str) -> Key {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let public = BASE64URL_NOPAD.encode(rcgen::PublicKeyData::der_bytes(&pair));
    Key {
        id: id.to_owned(),
        algorithm: Algorithm::EdDSA,
        secret: EncodingKey::from_ed_der(&pair.serialize_der()),
        public: json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": public}),
    }
}
