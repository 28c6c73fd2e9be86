//! Operators: several, each with a name and a role of their own.

use chrono::{TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};

use crate::common::{Responses, TestApp, eventually};

async fn token(app: &TestApp, name: &str, role: &str) -> Value {
    app.control(Method::POST, "/operator-tokens")
        .json(&json!({"name": name, "role": role}))
        .answer()
        .await
        .expect(201)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_is_known_by_name_until_the_token_is_revoked() {
    let app = TestApp::start().await;
    let made = token(&app, "deployment", "write").await;
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("tno_"));
    app.request(Method::POST, "/control/v1/tenants")
        .bearer_auth(secret)
        .json(&json!({"id": "acme"}))
        .answer()
        .await
        .expect(201);
    let created = app
        .control(Method::GET, "/audit-events?action=tenant.create")
        .answer()
        .await
        .expect(200);
    assert_eq!(created["items"][0]["actor"], "operator:deployment");

    let taken = app
        .control(Method::POST, "/operator-tokens")
        .json(&json!({"name": "deployment", "role": "read"}));
    taken.answer().await.problem(409, "conflict");
    for body in [
        json!({"name": "configured", "role": "read"}),
        json!({"name": "", "role": "read"}),
        json!({"name": "Ann", "role": "read"}),
        json!({"name": "ann", "role": "owner"}),
        json!({"name": "ann", "role": "read", "expires_at": "2020-01-01T00:00:00Z"}),
    ] {
        let request = app.control(Method::POST, "/operator-tokens").json(&body);
        request.answer().await.problem(422, "invalid-body");
    }

    let path = format!("/operator-tokens/{}", made["id"].as_str().unwrap());
    for _ in 0..2 {
        let revoked = app.control(Method::DELETE, &path).answer().await.expect(200);
        assert!(revoked["revoked_at"].is_string());
        assert_eq!(revoked["propagation"]["pending"], json!([]));
    }
    app.request(Method::GET, "/control/v1/tenants")
        .bearer_auth(secret)
        .answer()
        .await
        .problem(401, "unauthenticated");
    // The name is free again.
    token(&app, "deployment", "read").await;
    let list = app
        .control(Method::GET, "/operator-tokens")
        .answer()
        .await
        .expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert!(!list.to_string().contains("tno_"));
    app.control(Method::DELETE, "/operator-tokens/aaaaaaaaaaaaaaaa")
        .answer()
        .await
        .problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_read_changes_nothing() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let made = token(&app, "watcher", "read").await;
    let secret = made["secret"].as_str().unwrap();
    let control = |method, path: &str| {
        app.request(method, &format!("/control/v1{path}"))
            .bearer_auth(secret)
    };
    control(Method::GET, "/tenants/acme").answer().await.expect(200);
    control(Method::POST, "/tenants/acme/suspend")
        .answer()
        .await
        .problem(403, "forbidden");
    let in_tenant = |method, path: &str| app.v1(method, path, secret).header("x-tenant-id", "acme");
    assert_eq!(
        in_tenant(Method::GET, "/whoami").answer().await.expect(200)["role"],
        "viewer"
    );
    let profile = json!({"display_name": "Acme", "notification_email": null});
    in_tenant(Method::PUT, "/profile")
        .json(&profile)
        .answer()
        .await
        .problem(403, "forbidden");
    in_tenant(Method::GET, "/users")
        .answer()
        .await
        .problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_expires_and_shows_its_last_use() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let soon = Utc::now() + TimeDelta::milliseconds(1500);
    let made = app
        .control(Method::POST, "/operator-tokens")
        .json(&json!({"name": "guest", "role": "read", "expires_at": soon}))
        .answer()
        .await
        .expect(201);
    let key = app.key("acme", "viewer").await;
    app.whoami(&key).await.expect(200);
    eventually("the token expires", async || {
        let request = app.request(Method::GET, "/control/v1/tenants");
        let secret = made["secret"].as_str().unwrap();
        request.bearer_auth(secret).answer().await.status == 401
    })
    .await;
    for list in ["/operator-tokens", "/tenants/acme/api-keys"] {
        eventually("the last use is written", async || {
            let list = app.control(Method::GET, list).answer().await.expect(200);
            list["items"][0]["last_used_at"].is_string()
        })
        .await;
    }
}
