//! Limits: a tenant that asks for too much is refused, and takes nothing from the others.

use std::time::{Duration, Instant};

use reqwest::Method;

use crate::common::{Responses, TestApp};

/// How long something may take on a slow machine with a lot to do.
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_over_its_rate_is_told_when_to_come_back() {
    let app = TestApp::builder()
        .set("limits.requests_per_second", "1")
        .set("limits.burst", "3")
        .start()
        .await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    let (key, other) = (app.key("acme", "viewer").await, app.key("globex", "viewer").await);
    // Whoever is not let in uses nothing up.
    for _ in 0..10 {
        let refused = app
            .v1(Method::GET, "/whoami", &other)
            .header("x-tenant-id", "acme");
        refused.answer().await.problem(403, "wrong-tenant");
        app.v1(Method::GET, "/users", &key)
            .answer()
            .await
            .problem(403, "forbidden");
    }
    let begun = Instant::now();
    for left in [2, 1, 0] {
        let answer = app.whoami(&key).await;
        answer.expect(200);
        assert_eq!(answer.header("ratelimit-policy"), "\"tenant\";q=3;w=3");
        let state = answer.header("ratelimit");
        if begun.elapsed() < Duration::from_millis(900) {
            assert!(state.starts_with(&format!("\"tenant\";r={left};t=")), "{state}");
        }
    }
    let mut refused = app.whoami(&key).await;
    while refused.status == 200 {
        refused = app.whoami(&key).await;
    }
    refused.problem(429, "too-many-requests");
    assert!(
        refused.header("ratelimit").starts_with("\"tenant\";r=0;t="),
        "{refused:?}"
    );
    app.whoami(&other).await.expect(200);
    // The routed handlers look at their caller twice, and count once.
    let routed = app.v1(Method::GET, "/routed/invoices", &other).answer().await;
    let state = routed.header("ratelimit");
    assert!(
        state.starts_with("\"tenant\";r=1") || begun.elapsed() > Duration::from_secs(1),
        "{state}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_limits_nothing_is_said_about_them() {
    let app = TestApp::builder()
        .set("limits.requests_per_second", "0")
        .set("limits.concurrent_requests", "0")
        .start()
        .await;
    app.tenant("acme").await;
    let answer = app.whoami(&app.key("acme", "viewer").await).await;
    answer.expect(200);
    assert!(!answer.headers.contains_key("ratelimit"));
}

/// How long a quiet tenant's requests take alone, and beside one that sends as many as it can, in turns.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_at_its_limit_does_not_slow_the_others() {
    let app = TestApp::builder()
        .set("limits.requests_per_second", "20")
        .set("limits.burst", "20")
        .set("limits.concurrent_requests", "2")
        .start()
        .await;
    for tenant in ["noisy", "quiet"] {
        app.tenant(tenant).await;
    }
    let (noisy, quiet) = (app.key("noisy", "viewer").await, app.key("quiet", "viewer").await);
    let storm = async {
        let (mut served, mut refused) = (0_u32, 0_u32);
        let begun = Instant::now();
        // Beside all that the quiet tenant asks, and on a slow machine until it has been a storm.
        while begun.elapsed() < Duration::from_millis(700) || (refused < 100 && begun.elapsed() < LIMIT) {
            let requests = (0..16).map(|_| app.whoami(&noisy));
            for answer in futures::future::join_all(requests).await {
                match answer.status.as_u16() {
                    200 => served += 1,
                    429 => refused += 1,
                    status => panic!("{status}"),
                }
            }
        }
        (served, refused, begun.elapsed())
    };
    let ask = async |times: &mut Vec<Duration>| {
        for _ in 0..5 {
            let begun = Instant::now();
            app.whoami(&quiet).await.expect(200);
            times.push(begun.elapsed());
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    };
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    ask(&mut alone).await;
    let ((served, refused, took), ()) = tokio::join!(storm, ask(&mut beside));
    ask(&mut alone).await;
    let allowed = 20.0 + 20.0 * took.as_secs_f64();
    assert!(
        refused >= 100 && f64::from(served) <= allowed + 16.0,
        "{served} served, {refused} refused in {took:?}"
    );
    alone.sort();
    beside.sort();
    let (alone, beside) = (alone[alone.len() / 2], beside[beside.len() / 2]);
    println!("quiet: {alone:?} alone, {beside:?} beside a tenant with {refused} refused requests");
    // The storm's own client runs on the same processors.
    assert!(beside < alone * 20, "{alone:?} alone, {beside:?} beside");
}
