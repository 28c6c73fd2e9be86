//! Browsers: which pages may have them send a session's cookie along.

use reqwest::Method;
use serde_json::json;

use crate::{
    browser::{PASSWORD, by, fresh_address, join, log_in, person},
    common::{Answer, Responses, TestApp},
    sessions::app,
};

const PAGE: &str = "https://app.example.com";

fn profile() -> serde_json::Value {
    json!({"display_name": "Acme", "notification_email": null})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_changes_something_only_for_a_page_of_the_service() {
    let app = app().await;
    app.tenant("acme").await;
    let (_, session) = person(&app, "acme", "admin").await;
    by(&app, &session, Method::PUT, "/v1/profile")
        .json(&profile())
        .answer()
        .await
        .expect(200);
    let put = || {
        app.request(Method::PUT, "/v1/profile")
            .header("cookie", &session)
            .json(&profile())
    };
    put().answer().await.problem(403, "foreign-origin");
    for origin in ["https://evil.example", "null", PAGE, "http://127.0.0.1:1", ""] {
        let refused = put().header("origin", origin).answer().await;
        refused.problem(403, "foreign-origin");
    }
    app.request(Method::DELETE, "/v1/session")
        .header("cookie", &session)
        .answer()
        .await
        .problem(403, "foreign-origin");
    // What changes nothing needs no origin, and other credentials are not sent by themselves.
    let get = app.get("/v1/profile").header("cookie", &session);
    get.header("origin", "https://evil.example")
        .answer()
        .await
        .expect(200);
    let key = app.key("acme", "admin").await;
    let by_key = app
        .v1(Method::PUT, "/profile", &key)
        .header("origin", "https://evil.example");
    by_key.json(&profile()).answer().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_of_another_site_logs_anybody_in() {
    let app = app().await;
    app.tenant("acme").await;
    let email = fresh_address();
    join(&app, &email, "acme", "viewer").await;
    let foreign = log_in(&app, &email, PASSWORD).header("origin", "https://evil.example");
    let refused = foreign.answer().await;
    refused.problem(403, "foreign-origin");
    assert!(!refused.headers.contains_key("set-cookie"));
}

fn says_nothing(answer: &Answer) {
    let names = answer.headers.keys();
    let cors: Vec<_> = names
        .filter(|name| name.as_str().starts_with("access-control-"))
        .collect();
    assert!(cors.is_empty(), "{cors:?}");
}

async fn pre_flight(app: &TestApp, origin: &str, path: &str) -> Answer {
    app.request(Method::OPTIONS, path)
        .header("origin", origin)
        .header("access-control-request-method", "PUT")
        .header("access-control-request-headers", "content-type,idempotency-key")
        .answer()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_sites_may_nothing_unless_the_configuration_names_them() {
    let app = app().await;
    app.tenant("acme").await;
    let key = app.key("acme", "viewer").await;
    says_nothing(&pre_flight(&app, PAGE, "/v1/profile").await);
    says_nothing(
        &app.v1(Method::GET, "/whoami", &key)
            .header("origin", PAGE)
            .answer()
            .await,
    );

    let app = TestApp::builder()
        .set("http.secure_cookies", "false")
        .set("http.cors_origins", PAGE)
        .start()
        .await;
    app.tenant("acme").await;
    let allowed = pre_flight(&app, PAGE, "/v1/profile").await;
    assert_eq!(allowed.status, 200);
    assert_eq!(allowed.header("access-control-allow-origin"), PAGE);
    assert_eq!(allowed.header("access-control-allow-credentials"), "true");
    assert!(allowed.header("access-control-allow-methods").contains("PUT"));
    assert!(allowed.header("vary").to_ascii_lowercase().contains("origin"));
    for (origin, path) in [
        ("https://evil.example", "/v1/profile"),
        ("https://app.example.com.evil.example", "/v1/profile"),
        ("null", "/v1/profile"),
        (PAGE, "/control/v1/tenants"),
    ] {
        let answer = pre_flight(&app, origin, path).await;
        assert!(
            !answer.headers.contains_key("access-control-allow-origin"),
            "{origin} {answer:?}"
        );
    }
    let (_, session) = person(&app, "acme", "admin").await;
    let put = app.request(Method::PUT, "/v1/profile").header("cookie", &session);
    let answer = put.header("origin", PAGE).json(&profile()).answer().await;
    answer.expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    assert!(
        answer
            .header("access-control-expose-headers")
            .contains("tenantry-position")
    );
}
