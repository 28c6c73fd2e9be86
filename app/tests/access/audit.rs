//! What the audit trail says about who did what, and about who tried.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    browser::{fresh_address, join, log_in, session},
    common::{Responses, TestApp, eventually},
};

async fn events(app: &TestApp, query: &str) -> Vec<Value> {
    let path = format!("/audit-events?{query}");
    let list = app.control(Method::GET, &path).answer().await.expect(200);
    list["items"].as_array().unwrap().clone()
}

/// The only event of this action, once it is there.
async fn only(app: &TestApp, action: &str) -> Value {
    let query = format!("action={action}");
    eventually(action, async || !events(app, &query).await.is_empty()).await;
    let found = events(app, &query).await;
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_says_who_did_it_from_where_and_by_which_request() {
    let app = TestApp::builder()
        .set("http.secure_cookies", "false")
        .set("http.trusted_proxies", "127.0.0.1")
        .start()
        .await;
    let created = app
        .control(Method::POST, "/tenants")
        .header("x-request-id", "the-request")
        .header("x-forwarded-for", "192.0.2.7")
        .json(&json!({"id": "acme"}))
        .answer()
        .await
        .expect(201);
    let event = only(&app, "tenant.create").await;
    assert_eq!(event["actor"], "operator:configured");
    assert_eq!(
        (&event["tenant"], &event["tenant_uuid"]),
        (&json!("acme"), &created["uuid"])
    );
    assert_eq!(
        (&event["address"], &event["request_id"]),
        (&json!("192.0.2.7"), &json!("the-request"))
    );

    let email = fresh_address();
    let user = join(&app, &email, "acme", "admin").await;
    let admin = session(&app, &email, None).await;
    let key = crate::browser::by(&app, &admin, Method::POST, "/v1/api-keys")
        .json(&json!({"name": "ci", "role": "viewer"}))
        .answer()
        .await
        .expect(201);
    let event = only(&app, "api-key.create").await;
    assert_eq!(event["actor"], format!("user:{user}"));
    assert_eq!(event["subject"], key["id"]);
    for (action, actor) in [
        ("invitation.create", "operator:configured".to_owned()),
        ("invitation.accept", format!("user:{user}")),
        ("login.succeeded", format!("user:{user}")),
    ] {
        let event = only(&app, action).await;
        assert_eq!(event["actor"], actor, "{event}");
        assert_eq!(event["address"], "127.0.0.1", "{event}");
    }
    let of_tenant = events(&app, &format!("tenant={}", created["uuid"].as_str().unwrap())).await;
    assert_eq!(of_tenant.len(), 4, "{of_tenant:?}");
    let page = app
        .control(Method::GET, "/audit-events?limit=1")
        .answer()
        .await
        .expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = events(&app, &format!("limit=1&cursor={cursor}")).await;
    assert_ne!(next[0]["id"], page["items"][0]["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failed_attempt_is_in_the_trail_and_a_flood_is_counted() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let key = app.key("acme", "viewer").await;
    let id = key.split('_').nth(1).unwrap();
    app.control(Method::DELETE, &format!("/tenants/acme/api-keys/{id}"))
        .answer()
        .await
        .expect(200);
    app.whoami(&key).await.problem(401, "unauthenticated");
    let event = only(&app, "authentication.revoked").await;
    assert_eq!(event["actor"], format!("api-key:{id}"));
    assert_eq!(event["tenant"], "acme");
    assert_eq!(event["address"], "127.0.0.1");

    for _ in 0..50 {
        app.whoami("nonsense").await.problem(401, "unauthenticated");
    }
    let times = async || {
        let found = events(&app, "action=authentication.malformed").await;
        let times: Vec<u64> = found
            .iter()
            .map(|event| event["times"].as_u64().unwrap())
            .collect();
        (times.iter().sum::<u64>(), times.len())
    };
    eventually("all are counted", async || times().await.0 == 50).await;
    assert!(
        times().await.1 < 50,
        "attempts that look the same are counted together"
    );

    log_in(&app, "nobody@example.com", "wrong, wrong, wrong")
        .answer()
        .await
        .problem(401, "unauthenticated");
    let event = only(&app, "login.failed").await;
    assert_eq!(
        (&event["actor"], &event["subject"]),
        (&json!("unknown"), &json!("nobody@example.com"))
    );
    // A request without a credential has not tried.
    app.get("/v1/whoami")
        .answer()
        .await
        .problem(401, "unauthenticated");
    assert!(events(&app, "action=authentication.missing").await.is_empty());
    let all = events(&app, "limit=200").await;
    assert!(
        !json!(all).to_string().contains("wrong, wrong"),
        "passwords stay out of it"
    );
}
