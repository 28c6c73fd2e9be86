//! Who may do what in which tenant, and how little the others learn.

use std::collections::BTreeSet;

use chrono::{TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor};

use crate::common::{Answer, OPERATOR_TOKEN, Responses, TestApp, eventually};

/// A problem without what differs between any two requests.
fn without_instance(answer: &Answer) -> String {
    let mut body = answer.json();
    body.as_object_mut().unwrap().remove("instance");
    let headers: Vec<String> = answer
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "x-request-id" | "date"))
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    format!("{} {headers:?} {body}", answer.status)
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_a_credential_the_answer_is_the_same() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let good = app.key("acme", "admin").await;
    let revoked = app.key("acme", "admin").await;
    let id = revoked.split('_').nth(1).unwrap();
    app.control(Method::DELETE, &format!("/tenants/acme/api-keys/{id}"))
        .answer()
        .await
        .expect(200);
    let soon =
        json!({"name": "soon", "role": "admin", "expires_at": Utc::now() + TimeDelta::milliseconds(1500)});
    let expiring = app
        .control(Method::POST, "/tenants/acme/api-keys")
        .json(&soon)
        .answer()
        .await
        .expect(201);
    let expired = expiring["secret"].as_str().unwrap().to_owned();
    eventually("the key expires", async || {
        app.whoami(&expired).await.status == 401
    })
    .await;

    // The id of one key with the secret of another, with a checksum that is right.
    let parts: Vec<&str> = good.split('_').collect();
    let body = format!("tnt_{id}_{}", parts[2]);
    let mixed = format!("{body}_{:08x}", crc32fast::hash(body.as_bytes()));
    let unknown_body = format!("tnt_aaaaaaaaaaaaaaaa_{}", parts[2]);
    let unknown = format!("{unknown_body}_{:08x}", crc32fast::hash(unknown_body.as_bytes()));

    let credentials = [
        Some(format!("Bearer {revoked}")),
        Some(format!("Bearer {expired}")),
        Some(format!("Bearer {mixed}")),
        Some(format!("Bearer {unknown}")),
        Some(format!("Bearer {}", &good[..good.len() - 1])),
        Some(format!("Bearer {good}x")),
        Some(good.clone()),
        Some(format!("Basic {good}")),
        Some("Bearer".to_owned()),
        Some(format!("Bearer {OPERATOR_TOKEN}x")),
        Some(format!("Bearer {}", "x".repeat(10_000))),
        None,
    ];
    let mut answers = BTreeSet::new();
    for credential in credentials {
        let mut request = app.get("/v1/whoami").header("x-tenant-id", "acme");
        if let Some(credential) = credential {
            request = request.header("authorization", credential);
        }
        let answer = request.answer().await;
        answer.problem(401, "unauthenticated");
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"tenantry\"");
        answers.insert(without_instance(&answer));
    }
    assert_eq!(answers.len(), 1, "{answers:#?}");

    let twice = app.get("/v1/whoami").bearer_auth(&good).bearer_auth(&good);
    twice.answer().await.problem(401, "unauthenticated");
    app.get(&format!("/v1/whoami?access_token={good}"))
        .answer()
        .await
        .problem(401, "unauthenticated");
    app.whoami(&good).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_is_refused_the_same_whether_or_not_it_exists() {
    let app = TestApp::start().await;
    app.create(&json!({"id": "acme", "domains": ["portal.acme.test"]}))
        .await
        .expect(201);
    app.create(&json!({"id": "globex", "domains": ["portal.globex.test"]}))
        .await
        .expect(201);
    let key = app.key("acme", "admin").await;

    let mut answers = BTreeSet::new();
    for (name, value) in [
        ("x-tenant-id", "globex"),
        ("x-tenant-id", "GLOBEX"),
        ("x-tenant-id", "nobody"),
        ("x-tenant-id", ""),
        ("x-tenant-id", "www"),
        ("x-tenant-id", "acme,acme"),
        ("x-tenant-id", "acme globex"),
        ("x-tenant-id", "a'; drop database postgres; --"),
        ("host", "globex.localhost"),
        ("host", "nobody.localhost:8080"),
        ("host", "x.acme.localhost"),
        ("host", "a--b.localhost"),
        ("host", "portal.globex.test"),
        ("host", "PORTAL.globex.test:443"),
    ] {
        let answer = app
            .v1(Method::GET, "/whoami", &key)
            .header(name, value)
            .answer()
            .await;
        answer.problem(403, "wrong-tenant");
        answers.insert(without_instance(&answer));
    }
    assert_eq!(answers.len(), 1, "{answers:#?}");
    let mixed = app
        .v1(Method::GET, "/whoami", &key)
        .header("x-tenant-id", "acme")
        .header("host", "globex.localhost");
    mixed.answer().await.problem(403, "wrong-tenant");
    let twice = app
        .v1(Method::GET, "/whoami", &key)
        .header("x-tenant-id", "acme")
        .header("x-tenant-id", "acme");
    twice.answer().await.problem(400, "ambiguous-tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_named_as_well_must_agree() {
    let app = TestApp::start().await;
    app.create(&json!({"id": "acme", "domains": ["portal.acme.test"]}))
        .await
        .expect(201);
    let key = app.key("acme", "admin").await;
    for (name, value) in [
        ("x-tenant-id", "acme"),
        ("x-tenant-id", "ACME"),
        ("host", "acme.localhost"),
        ("host", "Acme.LocalHost:8080"),
        ("host", "portal.acme.test"),
        ("host", "PORTAL.ACME.TEST.:443"),
        ("host", "localhost"),
        ("host", "www.localhost"),
        ("host", "load-balancer.internal"),
        ("host", "10.1.2.3:8080"),
        ("x-forwarded-host", "globex.localhost"),
    ] {
        let me = app
            .v1(Method::GET, "/whoami", &key)
            .header(name, value)
            .answer()
            .await
            .expect(200);
        assert_eq!(
            (&me["tenant"], &me["database_tenant"]),
            (&json!("acme"), &me["uuid"]),
            "{name}: {value}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_chooses_the_tenant() {
    let app = TestApp::start().await;
    for id in ["acme", "globex"] {
        app.create(&json!({"id": id, "domains": [format!("portal.{id}.test")]}))
            .await
            .expect(201);
    }
    let whoami = |headers: &[(&'static str, &'static str)]| {
        let request = app.v1(Method::GET, "/whoami", OPERATOR_TOKEN);
        headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .answer()
    };
    whoami(&[]).await.problem(400, "tenant-required");
    whoami(&[("host", "load-balancer.internal")])
        .await
        .problem(400, "tenant-required");
    for headers in [
        [("x-tenant-id", "globex")],
        [("host", "globex.localhost")],
        [("host", "portal.globex.test")],
    ] {
        let me = whoami(&headers).await.expect(200);
        assert_eq!((&me["tenant"], &me["role"]), (&json!("globex"), &json!("admin")));
        assert_eq!(
            (&me["principal"], &me["database_tenant"]),
            (&json!("operator:configured"), &me["uuid"])
        );
    }
    for headers in [
        [("x-tenant-id", "nobody")],
        [("x-tenant-id", "a b")],
        [("host", "nobody.localhost")],
    ] {
        whoami(&headers).await.problem(404, "unknown-tenant");
    }
    whoami(&[("x-tenant-id", "acme"), ("host", "globex.localhost")])
        .await
        .problem(403, "wrong-tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_plane_is_for_operators() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let key = app.key("acme", "admin").await;
    for (method, path) in [
        (Method::GET, "/tenants"),
        (Method::POST, "/tenants"),
        (Method::GET, "/tenants/acme"),
        (Method::GET, "/tenants/nobody"),
        (Method::GET, "/tenants/acme/api-keys"),
        (Method::POST, "/tenants/acme/api-keys"),
        (Method::DELETE, "/tenants/acme/api-keys/aaaaaaaaaaaaaaaa"),
        (Method::GET, "/operations/x"),
        (Method::GET, "/clusters"),
        (Method::GET, "/clusters/main"),
    ] {
        let request = || app.request(method.clone(), &format!("/control/v1{path}"));
        let mut answers = BTreeSet::new();
        for request in [
            request(),
            request().bearer_auth(&key),
            request().bearer_auth("x"),
            request().basic_auth("a", Some("b")),
        ] {
            let answer = request.answer().await;
            answer.problem(401, "unauthenticated");
            answers.insert(without_instance(&answer));
        }
        assert_eq!(answers.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_enough_or_it_is_not() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let invoice = json!({"customer": "c", "amount_cents": 100, "currency": "EUR"});
    for (role, status) in [("viewer", 403), ("member", 201), ("admin", 201)] {
        let key = app.key("acme", role).await;
        app.v1(Method::GET, "/invoices", &key).answer().await.expect(200);
        let answer = app
            .v1(Method::POST, "/invoices", &key)
            .json(&invoice)
            .answer()
            .await;
        match status {
            403 => _ = answer.problem(403, "forbidden"),
            _ => _ = answer.expect(status),
        }
    }
}

async fn set_state(app: &TestApp, id: &str, state: &str) {
    let statement = format!(
        "with next as (update catalog_revision set revision = revision + 1 returning revision) \
         update tenants set state = '{state}', revision = (select revision from next) where slug = '{id}'"
    );
    app.catalog_connection()
        .await
        .execute(AssertSqlSafe(statement))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_not_in_service_serves_nobody() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    app.tenant("globex").await;
    let (key, other) = (app.key("acme", "admin").await, app.key("globex", "admin").await);

    set_state(&app, "acme", "SUSPENDED").await;
    eventually("the suspension arrives", async || {
        app.whoami(&key).await.status == 403
    })
    .await;
    app.whoami(&key).await.problem(403, "tenant-suspended");
    let named = app
        .v1(Method::GET, "/whoami", &other)
        .header("x-tenant-id", "acme");
    named.answer().await.problem(403, "wrong-tenant");
    let operator = app
        .v1(Method::GET, "/whoami", OPERATOR_TOKEN)
        .header("x-tenant-id", "acme");
    operator.answer().await.problem(403, "tenant-suspended");

    set_state(&app, "acme", "DELETED").await;
    eventually("the deletion arrives", async || {
        app.whoami(&key).await.status == 401
    })
    .await;
    app.whoami(&key).await.problem(401, "unauthenticated");
    let operator = app
        .v1(Method::GET, "/whoami", OPERATOR_TOKEN)
        .header("x-tenant-id", "acme");
    operator.answer().await.problem(404, "unknown-tenant");

    set_state(&app, "acme", "CREATED").await;
    eventually("the restoration arrives", async || {
        app.whoami(&key).await.status == 200
    })
    .await;
    app.whoami(&other).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_works_on_every_instance_at_once() {
    let app = TestApp::start().await;
    let other = app.another_instance().await;
    app.tenant("acme").await;
    for _ in 0..5 {
        let key = app.key("acme", "viewer").await;
        let me: Value = other.whoami(&key).await.expect(200);
        assert_eq!(me["tenant"], "acme");
    }
}
