//! `Idempotency-Key` on the control plane.

use reqwest::Method;
use serde_json::{Value, json};

use crate::common::{Answer, Responses, TestApp, eventually};

async fn post(app: &TestApp, path: &str, key: &str, body: &Value) -> Answer {
    app.control(Method::POST, path)
        .header("idempotency-key", key)
        .json(body)
        .answer()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_again_gets_the_same_answer() {
    let app = TestApp::start().await;
    let other = app.another_instance().await;
    let first = post(&app, "/tenants", "k1", &json!({"id": "acme"})).await;
    first.expect(201);
    assert_eq!(first.header("idempotency-replayed"), "");
    let again = post(
        &other,
        "/tenants",
        "k1",
        &json!({"display_name": null, "id": "acme"}),
    )
    .await;
    again.expect(201);
    assert_eq!(
        (&again.text, again.header("location")),
        (&first.text, first.header("location"))
    );
    assert_eq!(
        (again.header("idempotency-replayed"), again.header("content-type")),
        ("true", "application/json")
    );
    assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
    // Without the key, or with a new one, it is an ordinary repetition.
    post(&app, "/tenants", "k2", &json!({"id": "acme"}))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_one_request() {
    let app = TestApp::start().await;
    post(&app, "/tenants", "k1", &json!({"id": "acme"}))
        .await
        .expect(201);
    post(&app, "/tenants", "k1", &json!({"id": "globex"}))
        .await
        .problem(422, "idempotency-key-reused");
    assert_eq!(app.count("select count(*) from tenants").await, 1);
    // Another operation is another matter.
    post(
        &app,
        "/tenants/acme/api-keys",
        "k1",
        &json!({"name": "x", "role": "viewer"}),
    )
    .await
    .expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_is_made_once_and_its_secret_is_kept_sealed() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let body = json!({"name": "ci", "role": "admin"});
    let first = post(&app, "/tenants/acme/api-keys", "k1", &body)
        .await
        .expect(201);
    let again = post(&app, "/tenants/acme/api-keys", "k1", &body)
        .await
        .expect(201);
    assert_eq!(first, again);
    assert_eq!(app.count("select count(*) from api_keys").await, 1);
    app.whoami(again["secret"].as_str().unwrap()).await.expect(200);

    let mut catalog = app.catalog_connection().await;
    let kept: Vec<u8> = sqlx::query_scalar("select response_sealed from idempotency_keys")
        .fetch_one(&mut catalog)
        .await
        .unwrap();
    let secret = first["secret"].as_str().unwrap().as_bytes();
    assert!(
        !kept
            .windows(16)
            .any(|window| secret.windows(16).any(|part| part == window))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_done_once() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let body = json!({"name": "ci", "role": "admin"});
    let posts = (0..10).map(|_| post(&app, "/tenants/acme/api-keys", "k1", &body));
    for answer in futures::future::join_all(posts).await {
        match answer.status.as_u16() {
            201 => {}
            _ => _ = answer.problem(409, "idempotency-in-progress"),
        }
    }
    assert_eq!(app.count("select count(*) from api_keys").await, 1);
    post(&app, "/tenants/acme/api-keys", "k1", &body)
        .await
        .expect(201);
    assert_eq!(app.count("select count(*) from api_keys").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_went_away_comes_back_for_the_answer() {
    let app = TestApp::start().await;
    let body = json!({"id": "acme"});
    let request = app
        .control(Method::POST, "/tenants")
        .header("idempotency-key", "k1")
        .json(&body);
    // Making a database takes longer than that, and claiming the key does not take as long as the other limit.
    let impatient = async || {
        let waited = tokio::time::timeout(
            std::time::Duration::from_millis(30),
            request.try_clone().unwrap().send(),
        )
        .await;
        waited.is_err() && app.count("select count(*) from idempotency_keys").await == 1
    };
    eventually("the request is begun and left", impatient).await;
    eventually("its answer is there", async || {
        post(&app, "/tenants", "k1", &body).await.status == 201
    })
    .await;
    let answer = post(&app, "/tenants", "k1", &body).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("idempotency-replayed")),
        (201, "true")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_does_not_use_the_key_up() {
    let app = TestApp::start().await;
    let body = json!({"name": "ci", "role": "admin"});
    post(&app, "/tenants/acme/api-keys", "k1", &body)
        .await
        .problem(404, "unknown-tenant");
    app.tenant("acme").await;
    post(&app, "/tenants/acme/api-keys", "k1", &body)
        .await
        .expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_none_is_refused() {
    let app = TestApp::start().await;
    for key in ["", "a b", &"x".repeat(256)] {
        post(&app, "/tenants", key, &json!({"id": "acme"}))
            .await
            .problem(400, "invalid-idempotency-key");
    }
    let twice = app
        .control(Method::POST, "/tenants")
        .header("idempotency-key", "a")
        .header("idempotency-key", "a");
    twice
        .json(&json!({"id": "acme"}))
        .answer()
        .await
        .problem(400, "invalid-idempotency-key");
    assert_eq!(app.count("select count(*) from tenants").await, 0);
}
