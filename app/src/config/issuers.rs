//! `[[jwt_issuers]]`: whose tokens are credentials.

use std::{path::PathBuf, time::Duration};

use auth::{
    IssuerSettings, Role,
    jwt::{Algorithm, KeySource},
};

use super::{
    reader::Reader,
    sections::{TICK, required},
};

/// The most that clocks may be off.
const MAX_LEEWAY: Duration = Duration::from_secs(300);

/// Reads every issuer; `None` when the reader has complaints.
pub(super) fn read(reader: &mut Reader) -> Option<Vec<IssuerSettings>> {
    let mut issuers: Vec<Option<IssuerSettings>> = Vec::new();
    for number in 0..reader.tables("jwt_issuers") {
        let issuer = issuer(reader, &format!("jwt_issuers[{number}]"));
        let twice = issuer.as_ref().is_some_and(|issuer| {
            let earlier = issuers.iter().flatten();
            earlier.into_iter().any(|other| other.issuer == issuer.issuer)
        });
        if twice {
            let path = format!("jwt_issuers[{number}].issuer");
            reader.refuse(&path, "another issuer has this name");
        }
        issuers.push(issuer);
    }
    issuers.into_iter().collect()
}

fn issuer(reader: &mut Reader, at: &str) -> Option<IssuerSettings> {
    let hint = "the issuer's name, exactly as its tokens have it in `iss`";
    let issuer = required(
        reader,
        &format!("{at}.issuer"),
        |reader, path| reader.parsed(path, None, |text| name(text, 255)),
        hint,
    );
    let path = format!("{at}.audiences");
    let audiences = reader.list(&path, &[], |text| name(text, 255));
    if audiences.is_empty() {
        reader.refuse(
            &path,
            "is required: the names of this service, of which tokens have one in `aud`",
        );
    }
    let keys = keys(reader, at);
    let path = format!("{at}.algorithms");
    let all = Algorithm::ALL.map(Algorithm::as_str);
    let algorithms = reader.list(&path, &all, str::parse::<Algorithm>);
    if algorithms.is_empty() {
        reader.refuse(&path, "must name at least one");
    }
    let path = format!("{at}.leeway");
    let leeway = reader.duration(&path, "30s", Duration::ZERO)?;
    if leeway > MAX_LEEWAY {
        reader.refuse(&path, format!("must be at most {MAX_LEEWAY:?}"));
    }
    let tenant_claim = reader.parsed(&format!("{at}.tenant_claim"), Some("tenant_id"), |text| {
        name(text, 100)
    });
    let role_claim = reader.parsed(&format!("{at}.role_claim"), Some("role"), |text| name(text, 100));
    let default_role = reader.parsed(&format!("{at}.default_role"), Some("viewer"), role);
    let refresh_interval = reader.duration(&format!("{at}.refresh_interval"), "5m", TICK);
    Some(IssuerSettings {
        issuer: issuer?,
        audiences,
        keys: keys?,
        algorithms,
        leeway,
        tenant_claim: tenant_claim?,
        role_claim: role_claim?,
        default_role: default_role?,
        refresh_interval: refresh_interval?,
    })
}

fn keys(reader: &mut Reader, at: &str) -> Option<KeySource> {
    let (file, url) = (format!("{at}.jwks_file"), format!("{at}.jwks_url"));
    let complaints = reader.complaints();
    let from_file = reader.parsed(&file, None, |text| match text {
        "" => Err("must be a path"),
        path => Ok(KeySource::File(PathBuf::from(path))),
    });
    let from_url = reader.parsed(&url, None, |text| text.parse().map(KeySource::Url));
    match (from_file, from_url) {
        (Some(_), Some(_)) => {
            reader.refuse(&url, "must not be there together with jwks_file");
            None
        }
        (Some(source), None) | (None, Some(source)) => Some(source),
        (None, None) => {
            if reader.complaints() == complaints {
                reader.refuse(&url, "is required, or jwks_file: where the issuer's keys are");
            }
            None
        }
    }
}

fn name(text: &str, longest: usize) -> Result<String, String> {
    let sane = (1..=longest).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    sane.then(|| text.to_owned())
        .ok_or_else(|| format!("must have 1 to {longest} visible ASCII characters"))
}

fn role(text: &str) -> Result<Option<Role>, &'static str> {
    match text {
        "none" => Ok(None),
        "viewer" => Ok(Some(Role::Viewer)),
        "member" => Ok(Some(Role::Member)),
        "admin" => Ok(Some(Role::Admin)),
        _ => Err("must be \"viewer\", \"member\", \"admin\" or \"none\""),
    }
}
