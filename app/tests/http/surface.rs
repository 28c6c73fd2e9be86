//! What holds whatever is asked for: ids, problems, headers, metrics, health, documentation.

use reqwest::Method;
use serde_json::json;

use crate::common::{OPERATOR_TOKEN, Responses, TestApp};

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_leads_nowhere_says_so() {
    let app = TestApp::start().await;
    for path in [
        "/",
        "/nowhere",
        "/v1",
        "/v1/nowhere",
        "/control",
        "/control/v1/nowhere",
        "/control/v2/tenants",
        "//",
        "/v1/../x",
        "/tenants",
    ] {
        app.get(path).answer().await.problem(404, "unknown-path");
        app.get(path)
            .bearer_auth(OPERATOR_TOKEN)
            .answer()
            .await
            .problem(404, "unknown-path");
    }
    app.get("/control/v1/tenants/%ff")
        .bearer_auth(OPERATOR_TOKEN)
        .answer()
        .await
        .problem(400, "bad-request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_is_not_there_says_which_are() {
    let app = TestApp::start().await;
    for (method, path, allowed) in [
        (Method::DELETE, "/control/v1/tenants", "GET,HEAD,POST"),
        (Method::PUT, "/control/v1/tenants/acme", "GET,HEAD"),
        (Method::GET, "/control/v1/tenants/acme/api-keys/x", "DELETE"),
        (Method::POST, "/v1/whoami", "GET,HEAD"),
        (Method::POST, "/livez", "GET,HEAD"),
        (Method::from_bytes(b"BREW").unwrap(), "/livez", "GET,HEAD"),
    ] {
        let answer = app.request(method, path).answer().await;
        answer.problem(405, "method-not-allowed");
        let mut methods: Vec<&str> = answer.header("allow").split(',').map(str::trim).collect();
        methods.sort_unstable();
        assert_eq!(methods.join(","), allowed, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_is_taken_when_it_is_sane() {
    let app = TestApp::start().await;
    for id in ["a", "req:2026-11-30.1_x", &"x".repeat(128)] {
        for path in ["/livez", "/nowhere"] {
            assert_eq!(
                app.get(path)
                    .header("x-request-id", id)
                    .answer()
                    .await
                    .header("x-request-id"),
                id
            );
        }
    }
    for id in ["", "a b", "<script>", "a,b", "{\"a\":1}", &"x".repeat(129)] {
        let answer = app.get("/nowhere").header("x-request-id", id).answer().await;
        answer.problem(404, "unknown-path");
        let made = uuid::Uuid::parse_str(answer.header("x-request-id")).expect("a UUID");
        assert_eq!(made.get_version_num(), 7);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_problem_has_a_page() {
    let app = TestApp::start().await;
    let kinds = app.get("/problems").answer().await.expect(200);
    let kinds = kinds.as_array().unwrap();
    assert!(kinds.len() > 30);
    for kind in kinds {
        let path = kind["type"].as_str().unwrap();
        let page = app.get(path).answer().await.expect(200);
        assert_eq!(&page, kind);
        let html = app
            .get(path)
            .header("accept", "text/html,*/*;q=0.8")
            .answer()
            .await;
        assert!(html.header("content-type").starts_with("text/html"));
        assert!(html.text.contains(kind["explanation"].as_str().unwrap()));
    }
    app.get("/problems/nothing")
        .answer()
        .await
        .problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_not_be_used_for_anything_else() {
    let app = TestApp::start().await;
    for path in ["/livez", "/nowhere", "/control/v1/tenants", "/problems/internal"] {
        let answer = app.get(path).answer().await;
        assert!(
            answer
                .header("content-security-policy")
                .starts_with("default-src 'none'")
        );
        assert_eq!(
            (answer.header("cache-control"), answer.header("x-frame-options")),
            ("no-store", "DENY")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_learn_how_the_instance_is() {
    let app = TestApp::start().await;
    assert_eq!(
        app.get("/livez").answer().await.expect(200),
        json!({"alive": true})
    );
    let ready = app.get("/readyz").answer().await.expect(200);
    assert_eq!(ready["ready"], true);
    let parts: Vec<&str> = ready["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["part"].as_str().unwrap())
        .collect();
    assert_eq!(parts, ["routing-table", "catalog", "lease", "events", "listener"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_route_and_never_by_tenant() {
    let app = TestApp::start().await;
    app.tenant("unmistakable").await;
    let key = app.key("unmistakable", "viewer").await;
    app.whoami(&key).await.expect(200);
    app.control(Method::GET, "/tenants/unmistakable")
        .answer()
        .await
        .expect(200);
    app.get("/unmistakable/path")
        .answer()
        .await
        .problem(404, "unknown-path");
    app.request(Method::from_bytes(b"UNMISTAKABLE").unwrap(), "/livez")
        .answer()
        .await
        .problem(405, "method-not-allowed");
    let metrics = app.get("/metrics").answer().await;
    assert!(
        metrics
            .header("content-type")
            .starts_with("text/plain; version=0.0.4")
    );
    for line in [
        r#"tenantry_http_requests_total{method="GET",route="/v1/whoami",status="200"}"#,
        r#"tenantry_http_requests_total{method="GET",route="/control/v1/tenants/{id}",status="200"}"#,
        r#"tenantry_http_requests_total{method="GET",route="unmatched",status="404"}"#,
        r#"tenantry_http_requests_total{method="OTHER",route="/livez",status="405"}"#,
        r#"tenantry_http_request_duration_seconds_bucket{method="GET",route="/v1/whoami",le="0.001"}"#,
        "tenantry_http_requests_in_flight ",
    ] {
        assert!(metrics.text.contains(line), "{line} in\n{}", metrics.text);
    }
    let secret = key.split('_').nth(2).unwrap();
    for absent in ["unmistakable", "UNMISTAKABLE", secret] {
        assert!(!metrics.text.contains(absent), "{absent} in\n{}", metrics.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_needs_no_other_host() {
    let app = TestApp::start().await;
    let moved = app.get("/docs").answer().await;
    assert_eq!((moved.status.as_u16(), moved.header("location")), (303, "/docs/"));
    let page = app.get("/docs/").answer().await;
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-security-policy")
            .contains("script-src 'self'")
    );
    assert!(
        !page.text.contains("http://") && !page.text.contains("https://"),
        "{}",
        page.text
    );
    for file in [
        "swagger-ui.css",
        "swagger-ui-bundle.js",
        "swagger-ui-standalone-preset.js",
        "swagger-initializer.js",
        "index.css",
    ] {
        let answer = app.get(&format!("/docs/{file}")).answer().await;
        assert_eq!(answer.status, 200, "{file}");
    }
    let start = app.get("/docs/swagger-initializer.js").answer().await;
    assert!(
        start.text.contains("/openapi.json") && start.text.contains("\"validatorUrl\": \"none\""),
        "{}",
        start.text
    );
    app.get("/docs/nothing.js")
        .answer()
        .await
        .problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_plane_can_have_a_listener_of_its_own() {
    let app = TestApp::builder()
        .set("http.control_listen", "127.0.0.1:0")
        .start()
        .await;
    app.control(Method::GET, "/tenants")
        .answer()
        .await
        .problem(404, "unknown-path");
    let control = app.service.control_address().unwrap();
    let there = |path: &str| {
        app.client
            .get(format!("http://{control}{path}"))
            .bearer_auth(OPERATOR_TOKEN)
            .answer()
    };
    there("/control/v1/tenants").await.expect(200);
    there("/readyz").await.expect(200);
    there("/v1/whoami").await.problem(404, "unknown-path");
    let api = app.get("/openapi.json").answer().await.expect(200);
    assert!(
        api["paths"]["/control/v1/tenants"].is_object(),
        "the description lists it all the same"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_is_ended() {
    let app = TestApp::builder()
        .set("http.request_timeout", "10ms")
        .start()
        .await;
    // Making a database takes longer than that.
    app.create(&json!({"id": "acme"})).await.problem(504, "timeout");
    app.get("/livez").answer().await.expect(200);
}
