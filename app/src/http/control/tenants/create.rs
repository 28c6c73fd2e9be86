//! `POST /control/v1/tenants`

use std::collections::{BTreeMap, BTreeSet};

use auth::{OperatorAccess, Write};
use axum::{extract::State, response::Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use tenant_management::{Begun, ClusterName, CreateTenant, Tenant, TenantId, control::Changed};
use utoipa::ToSchema;

use super::domain;
use crate::http::{
    AppState,
    control::{
        PREFIX,
        model::{Mutated, OperationBody, TenantBody},
    },
    idempotency::{Answer, IdempotencyKey, once},
    json::Json,
    problem::Problem,
    validate::Checks,
};

const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const RESPOND_ASYNC: &str = "respond-async";
/// Most domains of a tenant.
const MAX_DOMAINS: usize = 20;
/// Most labels of a tenant.
const MAX_LABELS: usize = 50;

/// What a new tenant should be.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTenant {
    /// Public name: 2 to 40 bytes of `a-z`, `0-9` and `-`, starting with a letter, ending with a letter or digit, no `--`, and
    /// none of the reserved names.
    #[schema(examples("acme"), min_length = 2, max_length = 40)]
    id: String,
    /// Name for people, up to 200 characters; the id when absent.
    #[schema(examples("Acme Corporation"))]
    display_name: Option<String>,
    /// Only clusters of this region will do.
    #[schema(examples("eu"))]
    region: Option<String>,
    /// Only this cluster will do.
    #[schema(examples("main"))]
    cluster: Option<String>,
    /// Host names that mean this tenant.
    #[serde(default)]
    #[schema(examples(json!(["portal.acme.example"])))]
    domains: Option<Vec<String>>,
    /// Key-value pairs for the operator's own use.
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

/// Create a tenant
///
/// Makes its database and answers once the tenant is in service. The same request again finds what the first one has made, or
/// takes up what it had to leave. With `Prefer: respond-async` what takes time goes on in the background.
#[utoipa::path(post, path = "/tenants", tag = "tenants", operation_id = "create_tenant",
    params(
        IdempotencyKey,
        ("Prefer" = Option<String>, Header, description = "`respond-async`: answer at once, with an operation to follow"),
    ),
    request_body = NewTenant,
    responses(
        (status = CREATED, description = "The tenant is in service", body = Mutated<TenantBody>,
            headers(("Location" = String, description = "Where the tenant is"))),
        (status = OK, description = "The same request has created it before", body = Mutated<TenantBody>,
            headers(("Location" = String, description = "Where the tenant is"))),
        (status = ACCEPTED, description = "The tenant is being made", body = OperationBody,
            headers(("Location" = String, description = "Where the operation is"),
                ("Preference-Applied" = String, description = "`respond-async`"))),
    )
)]
pub(crate) async fn create(
    access: OperatorAccess<Write>,
    State(state): State<AppState>,
    idempotency: Option<IdempotencyKey>,
    headers: HeaderMap,
    Json(new): Json<NewTenant>,
) -> Result<Response, Problem> {
    let request = checked(&new, state.base_domain())?;
    let actor = access.actor();
    let scope = format!("{} POST {PREFIX}/tenants", actor.name);
    let in_background = prefers_async(&headers);
    let at_work = state.clone();
    let work = async move {
        let control = at_work.control();
        if !in_background {
            return Ok(done(control.create_tenant(&request, &actor).await?));
        }
        Ok(match control.begin_create_tenant(&request, &actor).await? {
            Begun::Done(changed) => done(changed),
            Begun::Started(operation) => {
                let location = format!("{PREFIX}/operations/{}", operation.id);
                Answer::new(StatusCode::ACCEPTED, &OperationBody::from(operation)).at(location)
            }
        })
    };
    let mut response = once(&state, &scope, idempotency, &new, work).await?;
    if response.status() == StatusCode::ACCEPTED {
        response
            .headers_mut()
            .insert(PREFERENCE_APPLIED, HeaderValue::from_static(RESPOND_ASYNC));
    }
    Ok(response)
}

fn done(changed: Changed<Tenant>) -> Answer {
    let status = if changed.newly {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let location = format!("{PREFIX}/tenants/{}", changed.value.id);
    Answer::new(status, &Mutated::new(changed, TenantBody::from)).at(location)
}

/// Whether the client would rather not wait (RFC 7240).
fn prefers_async(headers: &HeaderMap) -> bool {
    let preferences = headers
        .get_all(PREFER)
        .iter()
        .filter_map(|value| value.to_str().ok());
    preferences.flat_map(|value| value.split(',')).any(|preference| {
        preference
            .split(';')
            .next()
            .is_some_and(|name| name.trim().eq_ignore_ascii_case(RESPOND_ASYNC))
    })
}

/// The request in the domain's terms, or all that is wrong with it.
fn checked(new: &NewTenant, base_domain: &str) -> Result<CreateTenant, Problem> {
    let mut checks = Checks::new();
    let id = checks.take("id", TenantId::parse_new(&new.id));
    if let Some(name) = &new.display_name {
        checks.text("display_name", name, 1, 200);
    }
    if let Some(region) = &new.region {
        checks.name("region", region);
    }
    let cluster = new
        .cluster
        .as_deref()
        .and_then(|name| checks.take("cluster", ClusterName::parse(name)));
    let domains = domains(
        &mut checks,
        new.domains.as_deref().unwrap_or_default(),
        base_domain,
    );
    let labels = new.labels.clone().unwrap_or_default();
    check_labels(&mut checks, &labels);
    checks.finish()?;
    let id = id.expect("an id that is none has been noted above");
    Ok(CreateTenant {
        id,
        display_name: new.display_name.clone(),
        region: new.region.clone(),
        cluster,
        domains,
        labels,
    })
}

fn domains(checks: &mut Checks, given: &[String], base_domain: &str) -> Vec<String> {
    if given.len() > MAX_DOMAINS {
        checks.refuse("domains", format!("must be at most {MAX_DOMAINS}"));
        return Vec::new();
    }
    let mut domains = BTreeSet::new();
    for (number, text) in given.iter().enumerate() {
        let field = format!("domains[{number}]");
        if let Some(domain) = checks.take(&field, domain::canonical(text, base_domain))
            && !domains.insert(domain)
        {
            checks.refuse(field, "is there twice");
        }
    }
    domains.into_iter().collect()
}

fn check_labels(checks: &mut Checks, labels: &BTreeMap<String, String>) {
    if labels.len() > MAX_LABELS {
        checks.refuse("labels", format!("must be at most {MAX_LABELS}"));
        return;
    }
    for (key, value) in labels {
        let well_formed = (1..=63).contains(&key.len())
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/'));
        if well_formed {
            checks.text(&format!("labels.{key}"), value, 0, 200);
        } else {
            checks.refuse(
                "labels",
                "a key must have 1 to 63 characters of letters, digits and `.`, `_`, `-`, `/`",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(json: serde_json::Value) -> NewTenant {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let wrong = new(serde_json::json!({
            "id": "Acme", "display_name": "a\u{0}b", "region": "'", "cluster": "\"", "domains": ["acme", "a.test", "A.test"],
            "labels": {"": "x", "ok": "a\u{0}"},
        }));
        let problem = checked(&wrong, "example.com").unwrap_err();
        assert_eq!(problem.detail(), "8 fields are wrong; see `errors`");
    }

    #[test]
    fn what_was_left_out_is_nothing_and_domains_are_folded() {
        let least = checked(&new(serde_json::json!({"id": "acme"})), "example.com").unwrap();
        assert_eq!(least, CreateTenant::new(TenantId::parse_new("acme").unwrap()));
        let nulls = serde_json::json!({"id": "acme", "display_name": null, "domains": null, "labels": null});
        assert_eq!(checked(&new(nulls), "example.com").unwrap(), least);
        let more =
            new(serde_json::json!({"id": "acme", "domains": ["B.test", "a.test"], "labels": {"team": ""}}));
        assert_eq!(
            checked(&more, "example.com").unwrap().domains,
            ["a.test", "b.test"]
        );
    }

    #[test]
    fn a_preference_is_one_of_a_list() {
        let prefers = |values: &[&'static str]| {
            prefers_async(
                &values
                    .iter()
                    .map(|value| (PREFER, HeaderValue::from_static(value)))
                    .collect(),
            )
        };
        assert!(
            prefers(&["respond-async"])
                && prefers(&["wait=10, Respond-Async; x=y"])
                && prefers(&["a", "respond-async"])
        );
        assert!(!prefers(&[]) && !prefers(&["return=minimal"]) && !prefers(&["respond-asynchronously"]));
    }
}
