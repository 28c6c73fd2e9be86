//! What somebody sends who means no good, or does not know better: a clear refusal, and nothing is made.

use std::time::{Duration, Instant};

use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::{Value, json};

use crate::common::{Answer, Responses, TestApp, slow_body};

async fn post(app: &TestApp, body: impl Into<reqwest::Body>) -> Answer {
    app.control(Method::POST, "/tenants")
        .header(CONTENT_TYPE, "application/json")
        .body(body)
        .answer()
        .await
}

async fn nothing_was_made(app: &TestApp) {
    for query in [
        "select count(*) from tenants",
        "select count(*) from operations",
        "select count(*) from idempotency_keys",
    ] {
        assert_eq!(app.count(query).await, 0, "{query}");
    }
    app.get("/livez").answer().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_bad_id_becomes_a_tenant() {
    let app = TestApp::start().await;
    let long = "a".repeat(10_000);
    let over = "a".repeat(41);
    let ids = [
        "",
        "a",
        "1a",
        "-a",
        "a-",
        "a--b",
        "Acme",
        "ACME",
        "a b",
        " acme",
        "acme ",
        "acme\n",
        "a.b",
        "a/b",
        "../acme",
        "a_b",
        "a'b",
        "a\"b",
        "a;b",
        "a`b",
        "a\\b",
        "a$b",
        "a%b",
        "a\0b",
        "acme\u{0}",
        "acmé",
        "аcme",
        "ａcme",
        "acme\u{200b}",
        "😀😀",
        "acme'; drop database postgres; --",
        "a\"; drop role postgres; --",
        "$$;drop database postgres;$$",
        "pg_catalog",
        "www",
        "api",
        "admin",
        "control",
        "postgres",
        "template1",
        "localhost",
        "127.0.0.1",
        "null",
        &long,
        &over,
    ];
    for id in ids {
        let answer = app.create(&json!({ "id": id })).await;
        let problem = answer.problem(422, "invalid-body");
        assert_eq!(problem["errors"][0]["field"], "id", "{id:.40?}");
        assert!(
            answer.text.len() < 1000,
            "a refusal does not repeat what was sent"
        );
    }
    nothing_was_made(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_bad_field_becomes_a_tenant() {
    let app = TestApp::start().await;
    let many: Vec<String> = (0..21).map(|number| format!("d{number}.test")).collect();
    for (field, value) in [
        ("display_name", json!("")),
        ("display_name", json!("a\u{0}b")),
        ("display_name", json!("x".repeat(201))),
        ("display_name", json!(1)),
        ("region", json!("eu'; --")),
        ("region", json!("\u{0}")),
        ("cluster", json!("main\"")),
        ("cluster", json!("")),
        ("domains", json!(["not a domain"])),
        ("domains", json!(["localhost"])),
        ("domains", json!(["globex.localhost"])),
        ("domains", json!(["a.test", "A.TEST"])),
        ("domains", json!(many)),
        ("domains", json!("a.test")),
        ("labels", json!({"a\u{0}": "x"})),
        ("labels", json!({"a": "x\u{0}"})),
        ("labels", json!({"a": 1})),
        ("labels", json!(["a"])),
        ("unknown", json!(1)),
        ("uuid", json!("0193746c-0000-7000-8000-000000000000")),
    ] {
        let answer = app.create(&json!({ "id": "acme", field: value })).await;
        let problem = answer.problem(422, "invalid-body");
        let named = problem["errors"][0]["field"].as_str().unwrap();
        assert!(named.starts_with(field), "{field}: {problem}");
    }
    nothing_was_made(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_bad_body_becomes_a_tenant() {
    let app = TestApp::start().await;
    let deep = format!(r#"{{"id":{}1{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    let unfinished = "{\"id\":".repeat(50_000);
    for body in [
        "",
        "{",
        "acme",
        "id=acme",
        "{\"id\":\"acme\"",
        "{\"id\":\"acme\"} {}",
        "{'id':'acme'}",
        "\u{feff}{}",
        "NaN",
        &deep,
        &unfinished,
    ] {
        post(&app, body.to_owned()).await.problem(400, "malformed-body");
    }
    post(&app, b"{\"id\":\"\xff\xfe\"}".to_vec())
        .await
        .problem(400, "malformed-body");
    for body in [
        "[]",
        "null",
        "1",
        "\"acme\"",
        "{}",
        "{\"id\":null}",
        "{\"id\":[]}",
        "{\"id\":\"acme\",\"id\":\"acme\"}",
        "[[[]]]",
    ] {
        post(&app, body).await.problem(422, "invalid-body");
    }
    nothing_was_made(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_a_type_and_a_size() {
    let app = TestApp::start().await;
    let request = || app.control(Method::POST, "/tenants");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "json",
        "",
    ] {
        request()
            .header(CONTENT_TYPE, kind)
            .body(r#"{"id":"acme"}"#)
            .answer()
            .await
            .problem(415, "unsupported-media-type");
    }
    request()
        .body(r#"{"id":"acme"}"#)
        .answer()
        .await
        .problem(415, "unsupported-media-type");
    let large = json!({"id": "acme", "display_name": "x".repeat(1024 * 1024)}).to_string();
    post(&app, large).await.problem(413, "body-too-large");
    nothing_was_made(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_one_mebibyte_is_read() {
    let app = TestApp::start().await;
    let padding = " ".repeat(1024 * 1024 - r#"{"id":"acme"}"#.len());
    post(&app, format!("{padding}{}", r#"{"id":"acme"}"#))
        .await
        .expect(201);
    post(&app, format!("{padding} {}", r#"{"id":"acme"}"#))
        .await
        .problem(413, "body-too-large");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_never_comes_is_given_up_and_holds_nothing() {
    let app = TestApp::builder().set("http.body_timeout", "300ms").start().await;
    app.tenant("acme").await;
    let key = app.key("acme", "member").await;
    let started = Instant::now();
    // More of them than the tenant has connections: were one taken before the body is there, the last would wait for it.
    let (_parts, bodies): (Vec<_>, Vec<_>) = (0..30).map(|_| slow_body()).unzip();
    let slow = bodies.into_iter().map(|body| {
        app.v1(Method::POST, "/invoices", &key)
            .header(CONTENT_TYPE, "application/json")
            .body(body)
            .answer()
    });
    let all = async {
        for answer in futures::future::join_all(slow).await {
            answer.problem(408, "body-timeout");
        }
    };
    let meanwhile = async {
        app.whoami(&key).await.expect(200);
        started.elapsed()
    };
    let ((), answered) = tokio::join!(all, meanwhile);
    assert!(
        answered < Duration::from_secs(3),
        "others are answered meanwhile: {answered:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_without_a_credential_may_send_a_body() {
    let app = TestApp::builder().set("http.body_timeout", "30s").start().await;
    let (_parts, body) = slow_body();
    let request = app
        .request(Method::POST, "/control/v1/tenants")
        .header(CONTENT_TYPE, "application/json")
        .body(body);
    let answer = tokio::time::timeout(Duration::from_secs(5), request.answer())
        .await
        .expect("it is not waited for the body");
    answer.problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_bad_key_is_made() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    for body in [
        json!({"name": "", "role": "viewer"}),
        json!({"name": "x".repeat(101), "role": "viewer"}),
        json!({"name": "a\u{0}", "role": "viewer"}),
        json!({"name": "x", "role": "root"}),
        json!({"name": "x", "role": "Admin"}),
        json!({"name": "x"}),
        json!({"name": "x", "role": "viewer", "expires_at": "2000-01-01T00:00:00Z"}),
        json!({"name": "x", "role": "viewer", "expires_at": "tomorrow"}),
        json!({"name": "x", "role": "viewer", "expires_at": 99_999_999_999_999_u64}),
        json!({"name": "x", "role": "viewer", "secret": "mine"}),
    ] {
        let answer = app
            .control(Method::POST, "/tenants/acme/api-keys")
            .json(&body)
            .answer()
            .await;
        answer.problem(422, "invalid-body");
    }
    assert_eq!(app.count("select count(*) from api_keys").await, 0);
    // The far ends of what the form of a time can say.
    for end in ["9999-12-31T23:59:59.999999999Z", "2999-02-28T23:59:59+14:00"] {
        let body: Value = json!({"name": "x", "role": "viewer", "expires_at": end});
        app.control(Method::POST, "/tenants/acme/api-keys")
            .json(&body)
            .answer()
            .await
            .expect(201);
    }
}
