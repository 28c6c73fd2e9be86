//! What a token says about whom, once its signature has been verified. Refuses to know how that was done.

use std::{fmt, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use tenant_management::{Role, TenantId, TenantUuid};

use super::{TokenRefused, VerifiedToken, settings::IssuerSettings};

/// Most tenants of one token.
const MAX_TENANTS: usize = 100;

/// Whom a token is about: 1 to 255 visible ASCII characters, so that it can stand in logs and audit trails. (RFC 7519, section
/// 4.1.2, leaves the form to the issuer; OpenID Connect Core, section 2, has at most 255 ASCII characters.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject(Arc<str>);

impl Subject {
    /// Parses a subject.
    pub fn parse(text: &str) -> Option<Self> {
        let sane = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        sane.then(|| Self(text.into()))
    }

    /// The subject.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a token names a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TenantRef {
    /// By its public name, which another tenant can have after a purge.
    Id(TenantId),
    /// By its immutable identity, which nobody else ever has.
    Uuid(TenantUuid),
}

impl TenantRef {
    /// What can be a name is one: a tenant's uuid begins with a digit (UUIDv7, for some thousands of years) and a name with a
    /// letter.
    fn parse(text: &str) -> Option<Self> {
        match TenantId::parse_reference(text) {
            Ok(id) => Some(Self::Id(id)),
            Err(_) => uuid::Uuid::try_parse(text)
                .ok()
                .map(|uuid| Self::Uuid(TenantUuid(uuid))),
        }
    }
}

/// Reads the claims of a token whose issuer, audience and signature are in order.
pub(super) fn read(
    claims: &Map<String, Value>,
    settings: &IssuerSettings,
    issuer: &Arc<str>,
    now: DateTime<Utc>,
) -> Result<VerifiedToken, TokenRefused> {
    let expires_at = time(claims, "exp")?.ok_or(TokenRefused::Claim("exp"))?;
    if expires_at + settings.leeway <= now {
        return Err(TokenRefused::Expired);
    }
    for (name, at) in [("nbf", time(claims, "nbf")?), ("iat", time(claims, "iat")?)] {
        if at.is_some_and(|at| at - settings.leeway > now) {
            return Err(if name == "nbf" {
                TokenRefused::NotYet
            } else {
                TokenRefused::Claim("iat")
            });
        }
    }
    let subject = claims.get("sub").and_then(Value::as_str).and_then(Subject::parse);
    let role = match claims.get(&settings.role_claim) {
        None => settings.default_role,
        Some(role) => role.as_str().and_then(role_named),
    };
    Ok(VerifiedToken {
        issuer: Arc::clone(issuer),
        subject: subject.ok_or(TokenRefused::Claim("sub"))?,
        tenants: tenants(claims.get(&settings.tenant_claim)).ok_or(TokenRefused::Claim("of the tenant"))?,
        role: role.ok_or(TokenRefused::Claim("of the role"))?,
        expires_at,
    })
}

/// A time in seconds since 1970, which may have a fraction (RFC 7519, section 2, NumericDate).
fn time(claims: &Map<String, Value>, name: &'static str) -> Result<Option<DateTime<Utc>>, TokenRefused> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let seconds = value.as_f64().filter(|seconds| (0.0..1e11).contains(seconds));
    let seconds = seconds.ok_or(TokenRefused::Claim(name))?;
    let since = Duration::from_secs_f64(seconds);
    Ok(Some(DateTime::<Utc>::UNIX_EPOCH + since))
}

fn tenants(claim: Option<&Value>) -> Option<Vec<TenantRef>> {
    match claim? {
        Value::String(one) => Some(vec![TenantRef::parse(one)?]),
        Value::Array(several) if (1..=MAX_TENANTS).contains(&several.len()) => several
            .iter()
            .map(|one| one.as_str().and_then(TenantRef::parse))
            .collect(),
        _ => None,
    }
}

fn role_named(name: &str) -> Option<Role> {
    [Role::Viewer, Role::Member, Role::Admin]
        .into_iter()
        .find(|role| role.as_str() == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::jwt::{Algorithm, KeySource};

    const NOW: i64 = 1_800_000_000;

    fn settings() -> IssuerSettings {
        IssuerSettings {
            issuer: "https://login.example.com".to_owned(),
            audiences: vec!["tenantry".to_owned()],
            keys: KeySource::File("jwks.json".into()),
            algorithms: Algorithm::ALL.to_vec(),
            leeway: Duration::from_secs(30),
            tenant_claim: "tenant_id".to_owned(),
            role_claim: "role".to_owned(),
            default_role: Some(Role::Viewer),
            refresh_interval: Duration::from_secs(300),
        }
    }

    fn verdict(settings: &IssuerSettings, change: &Value) -> Result<VerifiedToken, TokenRefused> {
        let mut claims = json!({"sub": "ann", "exp": NOW + 60, "tenant_id": "acme"});
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        // A claim that is null stands for one that is not there.
        let mut claims = claims.as_object().unwrap().clone();
        claims.retain(|_, value| !value.is_null());
        let now = DateTime::from_timestamp(NOW, 0).unwrap();
        read(&claims, settings, &"issuer".into(), now)
    }

    #[test]
    fn a_token_names_its_tenants_by_id_or_uuid() {
        let acme = TenantRef::Id(TenantId::parse_new("acme").unwrap());
        let uuid = TenantUuid::generate();
        let looks_like_one = TenantRef::Id(TenantId::parse_new("deadbeefdeadbeefdeadbeefdeadbeef").unwrap());
        for (claim, tenants) in [
            (json!("acme"), vec![acme]),
            (json!("ACME"), vec![acme]),
            (json!("deadbeefdeadbeefdeadbeefdeadbeef"), vec![looks_like_one]),
            (json!(uuid.to_string()), vec![TenantRef::Uuid(uuid)]),
            (
                json!(["acme", uuid.to_string()]),
                vec![acme, TenantRef::Uuid(uuid)],
            ),
        ] {
            let token = verdict(&settings(), &json!({"tenant_id": claim})).unwrap();
            assert_eq!((token.tenants, token.role), (tenants, Role::Viewer));
        }
    }

    #[test]
    fn claims_that_are_not_as_they_should_be_are_refused() {
        let claim = TokenRefused::Claim;
        for (change, refusal) in [
            (json!({"exp": null}), claim("exp")),
            (json!({"exp": "soon"}), claim("exp")),
            (json!({"exp": 1e300}), claim("exp")),
            (json!({"exp": -1}), claim("exp")),
            (json!({"exp": NOW - 30}), TokenRefused::Expired),
            (json!({"nbf": NOW + 31}), TokenRefused::NotYet),
            (json!({"nbf": "now"}), claim("nbf")),
            (json!({"iat": NOW + 31}), claim("iat")),
            (json!({"sub": null}), claim("sub")),
            (json!({"sub": ""}), claim("sub")),
            (json!({"sub": "a\nb"}), claim("sub")),
            (json!({"sub": "x".repeat(256)}), claim("sub")),
            (json!({"tenant_id": null}), claim("of the tenant")),
            (json!({"tenant_id": ""}), claim("of the tenant")),
            (json!({"tenant_id": []}), claim("of the tenant")),
            (json!({"tenant_id": ["acme", 7]}), claim("of the tenant")),
            (json!({"tenant_id": vec!["acme"; 101]}), claim("of the tenant")),
            (json!({"tenant_id": "../acme"}), claim("of the tenant")),
            (json!({"role": "owner"}), claim("of the role")),
            (json!({"role": ["admin"]}), claim("of the role")),
        ] {
            assert_eq!(verdict(&settings(), &change), Err(refusal), "{change}");
        }
    }

    #[test]
    fn the_clock_may_be_off_by_the_leeway() {
        for change in [
            json!({"exp": NOW - 29}),
            json!({"nbf": NOW + 30}),
            json!({"exp": 1_800_000_000.5}),
        ] {
            assert!(verdict(&settings(), &change).is_ok(), "{change}");
        }
    }

    #[test]
    fn a_token_without_a_role_gets_the_issuers_or_none() {
        let strict = IssuerSettings {
            default_role: None,
            ..settings()
        };
        assert_eq!(
            verdict(&strict, &json!({})),
            Err(TokenRefused::Claim("of the role"))
        );
        let admin = verdict(&strict, &json!({"role": "admin"})).unwrap();
        assert_eq!(admin.role, Role::Admin);
    }
}
