//! `/openapi.json` describes every operation completely.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{Responses, TestApp};

/// Calls `visit` with every operation: its method, its path, and what is said about it.
fn operations(api: &Value, mut visit: impl FnMut(&str, &str, &Value)) {
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            visit(method, path, operation);
        }
    }
}

fn references<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_is_complete() {
    let app = TestApp::start().await;
    let answer = app.get("/openapi.json").answer().await;
    let api = answer.expect(200);
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1."));

    let mut refs = BTreeSet::new();
    references(&api, &mut refs);
    assert!(refs.len() > 10);
    for reference in refs {
        let pointer = reference
            .strip_prefix('#')
            .expect("references stay in the document");
        assert!(api.pointer(pointer).is_some(), "{reference} leads nowhere");
    }

    let mut ids = BTreeSet::new();
    operations(&api, |method, path, operation| {
        let at = format!("{method} {path}");
        let way_in = ["post /v1/session", "post /v1/invitations/accept"].contains(&at.as_str());
        let public = way_in || (!path.starts_with("/v1/") && !path.starts_with("/control/"));
        let security = operation["security"]
            .as_array()
            .unwrap_or_else(|| panic!("{at} says who may call it"));
        assert_eq!(security.is_empty(), public, "{at}");
        for scheme in security
            .iter()
            .flat_map(|requirement| requirement.as_object().unwrap().keys())
        {
            let kind = if scheme == "session" { "apiKey" } else { "http" };
            assert_eq!(
                api["components"]["securitySchemes"][scheme]["type"], kind,
                "{at}: {scheme}"
            );
        }
        let id = operation["operationId"]
            .as_str()
            .unwrap_or_else(|| panic!("{at} has an operationId"));
        assert!(ids.insert(id.to_owned()), "{id} is there twice");
        for said in ["summary", "tags"] {
            assert!(!operation[said].is_null(), "{at} has a {said}");
        }

        let responses = operation["responses"].as_object().unwrap();
        assert!(
            responses.keys().any(|status| status.starts_with('2')),
            "{at} can succeed"
        );
        assert_eq!(
            responses["default"]["content"]["application/problem+json"]["schema"]["$ref"],
            "#/components/schemas/Problem"
        );
        for (status, response) in responses {
            assert!(
                response["headers"]["X-Request-Id"].is_object(),
                "{at} {status} has a request id"
            );
            if status == "201" {
                assert!(
                    response["headers"]["Location"].is_object(),
                    "{at} says where the new thing is"
                );
            }
            if status == "503" {
                assert!(
                    response["headers"]["Retry-After"].is_object(),
                    "{at} says when to try again"
                );
            }
        }
        if !public {
            for status in ["401", "503"] {
                assert!(
                    responses.contains_key(status),
                    "{at} can be answered with {status}"
                );
            }
        }
        if operation["requestBody"].is_object() {
            for status in ["400", "413", "415", "422"] {
                assert!(
                    responses.contains_key(status),
                    "{at} can be answered with {status}"
                );
            }
        }
        let parameters: BTreeSet<&str> = operation["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        for name in path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        {
            assert!(parameters.contains(name), "{at} explains {name}");
        }
        // A person's own session is good for whatever tenants it is good for; at a login the name chooses.
        let in_tenant = path.starts_with("/v1/") && !path.starts_with("/v1/session") && !way_in;
        assert!(
            parameters.contains("X-Tenant-ID") == (in_tenant || at == "post /v1/session"),
            "{at}"
        );
        // A login begins a session each time.
        if responses.contains_key("201") && at != "post /v1/session" {
            assert!(
                parameters.contains("Idempotency-Key"),
                "{at} can be repeated safely"
            );
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_in_the_description() {
    let app = TestApp::start().await;
    let api = app.get("/openapi.json").answer().await.expect(200);
    let mut described = BTreeSet::new();
    operations(&api, |method, path, _| {
        described.insert(format!("{method} {path}"));
    });
    for operation in [
        "post /control/v1/tenants",
        "get /control/v1/tenants",
        "get /control/v1/tenants/{id}",
        "post /control/v1/tenants/{id}/api-keys",
        "get /control/v1/tenants/{id}/api-keys",
        "delete /control/v1/tenants/{id}/api-keys/{key}",
        "get /control/v1/operations/{id}",
        "get /control/v1/clusters",
        "get /control/v1/clusters/{name}",
        "get /v1/whoami",
        "post /v1/invoices",
        "get /v1/invoices",
        "get /v1/invoices/{id}",
        "get /livez",
        "get /readyz",
        "get /metrics",
    ] {
        assert!(
            described.contains(operation),
            "{operation} is not in {described:#?}"
        );
    }
    let tenant = &api["components"]["schemas"]["Tenant"]["properties"];
    assert_eq!(tenant.as_object().unwrap().len(), 12);
    assert!(
        api["paths"]["/control/v1/tenants/{id}"]["get"]["responses"]["200"]["headers"]["ETag"].is_object()
    );
}

/// An operation that nobody described would be missing above; one that is described and asks for no credential would not be
/// refused here.
#[tokio::test(flavor = "multi_thread")]
async fn every_operation_that_needs_a_credential_refuses_without_one() {
    let app = TestApp::start().await;
    let api = app.get("/openapi.json").answer().await.expect(200);
    let mut calls = Vec::new();
    operations(&api, |method, path, operation| {
        if !operation["security"].as_array().unwrap().is_empty() {
            calls.push((method.to_uppercase(), path.replace(['{', '}'], "")));
        }
    });
    assert!(calls.len() > 15);
    for (method, path) in calls {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        app.request(method, &path)
            .answer()
            .await
            .problem(401, "unauthenticated");
    }
}
