//! Sessions: how they begin, what they are good for, how they end.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use sqlx::Executor;

use crate::{
    browser::{PASSWORD, by, fresh_address, join, log_in, own, person, session, session_of, whoami},
    common::{Responses, TestApp, eventually},
};

/// With cookies that a browser also sends without TLS, as it has to here.
pub(crate) async fn app() -> TestApp {
    TestApp::builder()
        .set("http.secure_cookies", "false")
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_is_known_and_logs_out() {
    let app = app().await;
    app.tenant("acme").await;
    let email = fresh_address();
    let user = join(&app, &email, "acme", "member").await;

    let answer = log_in(&app, &email.to_uppercase(), PASSWORD).answer().await;
    let body = answer.expect(201);
    assert_eq!(body["email"], email.as_str());
    assert_eq!(body["tenants"], json!([{"id": "acme", "role": "member"}]));
    assert_eq!(body["tenant"], json!(null));
    let cookie = answer.header("set-cookie");
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age="] {
        assert!(cookie.contains(attribute), "{attribute} in {cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");

    let session = session_of(&answer);
    let who = whoami(&app, &session).await.expect(200);
    assert_eq!((&who["tenant"], &who["role"]), (&json!("acme"), &json!("member")));
    assert_eq!(who["principal"], format!("user:{user}"));
    assert_eq!(own(&app, &session).await["email"], email.as_str());

    let out = by(&app, &session, Method::DELETE, "/v1/session").answer().await;
    let ended = out.expect(200);
    assert_eq!(ended["sessions"], 1);
    assert_eq!(ended["propagation"]["pending"], json!([]));
    assert!(
        out.header("set-cookie").starts_with("tenantry_session=;"),
        "{out:?}"
    );
    whoami(&app, &session).await.problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn secure_cookies_are_for_tls_and_say_so() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let email = fresh_address();
    join(&app, &email, "acme", "viewer").await;
    let answer = log_in(&app, &email, PASSWORD).answer().await;
    answer.expect(201);
    assert!(answer.header("set-cookie").contains("; Secure"), "{answer:?}");
    assert_eq!(answer.header("strict-transport-security"), "max-age=31536000");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_good_for_the_persons_tenants_or_for_the_one_of_its_login() {
    let app = app().await;
    for tenant in ["acme", "globex", "initech"] {
        app.tenant(tenant).await;
    }
    let email = fresh_address();
    join(&app, &email, "acme", "viewer").await;
    join(&app, &email, "globex", "admin").await;
    let named = |session: String, tenant: &'static str| {
        by(&app, &session, Method::GET, "/v1/whoami").header("x-tenant-id", tenant)
    };

    let all = session(&app, &email, None).await;
    whoami(&app, &all).await.problem(400, "tenant-required");
    for (tenant, role) in [("acme", "viewer"), ("globex", "admin")] {
        let who = named(all.clone(), tenant).answer().await.expect(200);
        assert_eq!((&who["tenant"], &who["role"]), (&json!(tenant), &json!(role)));
    }
    for tenant in ["initech", "nobody", "%%"] {
        named(all.clone(), tenant)
            .answer()
            .await
            .problem(403, "wrong-tenant");
    }

    // The cookie of one tenant's sub-domain is nothing on another's.
    let one = session(&app, &email, Some("acme")).await;
    assert_eq!(own(&app, &one).await["tenant"], "acme");
    whoami(&app, &one).await.expect(200);
    named(one.clone(), "acme").answer().await.expect(200);
    named(one.clone(), "globex")
        .answer()
        .await
        .problem(403, "wrong-tenant");
    by(&app, &one, Method::GET, "/v1/whoami")
        .header("host", "globex.localhost")
        .answer()
        .await
        .problem(403, "wrong-tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_gives_a_new_id_and_ends_what_the_request_came_with() {
    let app = app().await;
    app.tenant("acme").await;
    let (_, attackers) = person(&app, "acme", "viewer").await;
    let email = fresh_address();
    join(&app, &email, "acme", "member").await;

    // An id that the attacker knows, planted in the victim's browser.
    let answer = log_in(&app, &email, PASSWORD)
        .header("cookie", &attackers)
        .answer()
        .await;
    answer.expect(201);
    let victims = session_of(&answer);
    assert_ne!(victims, attackers);
    whoami(&app, &attackers).await.problem(401, "unauthenticated");
    assert_eq!(own(&app, &victims).await["email"], email.as_str());

    // An id that was never given out.
    for made_up in [
        "tenantry_session=AAAAAAAAAAAAAAAAAAAAAA",
        "tenantry_session=x",
        "tenantry_session=",
    ] {
        whoami(&app, made_up).await.problem(401, "unauthenticated");
        let answer = log_in(&app, &email, PASSWORD)
            .header("cookie", made_up)
            .answer()
            .await;
        assert_ne!(session_of(&answer), made_up);
    }
    // Nor is one that was changed, although it is in the catalog.
    let (name, value) = victims.split_once('=').unwrap();
    let unsigned = format!("{name}={}", &value[44.min(value.len() - 22)..]);
    whoami(&app, &unsigned).await.problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_it_is_idle_and_in_any_case() {
    let app = TestApp::builder()
        .set("http.secure_cookies", "false")
        .set("sessions.idle_timeout", "3s")
        .set("sessions.lifetime", "10s")
        .start()
        .await;
    app.tenant("acme").await;
    let email = fresh_address();
    join(&app, &email, "acme", "viewer").await;
    let (idle, used) = (
        session(&app, &email, None).await,
        session(&app, &email, None).await,
    );
    let begun = Instant::now();
    let still = || begun.elapsed() < Duration::from_secs(6);
    while still() {
        let answer = whoami(&app, &used).await;
        if answer.status == 401 {
            assert!(!still(), "a session that is used does not become idle");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    whoami(&app, &idle).await.problem(401, "unauthenticated");
    eventually("a session that is used ends all the same", async || {
        whoami(&app, &used).await.status == 401
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logging_out_everywhere_and_a_new_password_end_the_other_sessions() {
    let app = app().await;
    app.tenant("acme").await;
    let email = fresh_address();
    join(&app, &email, "acme", "viewer").await;
    let (here, there) = (
        session(&app, &email, None).await,
        session(&app, &email, None).await,
    );

    let change = |session: String, current: &'static str, new: &'static str| {
        by(&app, &session, Method::PUT, "/v1/session/password")
            .json(&json!({"current_password": current, "new_password": new}))
    };
    let new = "another example, not a password";
    change(here.clone(), "wrong, wrong, wrong", new)
        .answer()
        .await
        .problem(401, "unauthenticated");
    change(here.clone(), PASSWORD, "short")
        .answer()
        .await
        .problem(422, "invalid-body");
    whoami(&app, &there).await.expect(200);
    change(here.clone(), PASSWORD, new).answer().await.expect(200);
    whoami(&app, &there).await.problem(401, "unauthenticated");
    whoami(&app, &here).await.expect(200);
    log_in(&app, &email, PASSWORD)
        .answer()
        .await
        .problem(401, "unauthenticated");

    let answer = log_in(&app, &email, new).answer().await;
    let there = session_of(&answer);
    let out = by(&app, &here, Method::DELETE, "/v1/session?everywhere=true")
        .answer()
        .await;
    assert_eq!(out.expect(200)["sessions"], 2);
    for session in [&here, &there] {
        whoami(&app, session).await.problem(401, "unauthenticated");
    }
}

/// The answer, and how long it takes, does not tell whether there is an account.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_fails_tells_nothing() {
    let app = app().await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    let email = fresh_address();
    join(&app, &email, "acme", "viewer").await;
    log_in(&app, &email, PASSWORD).answer().await.expect(201);

    let mut bodies = std::collections::BTreeSet::new();
    let attempts = [
        (email.as_str(), "wrong, wrong, wrong", None),
        ("nobody@example.com", PASSWORD, None),
        (email.as_str(), PASSWORD, Some("globex")),
        (email.as_str(), PASSWORD, Some("nosuch")),
        (email.as_str(), PASSWORD, Some("%%")),
        (email.as_str(), "", None),
    ];
    for (email, password, tenant) in attempts {
        let mut request = log_in(&app, email, password);
        if let Some(tenant) = tenant {
            request = request.header("x-tenant-id", tenant);
        }
        let answer = request.answer().await;
        let mut body = answer.problem(401, "unauthenticated");
        assert!(!answer.headers.contains_key("set-cookie"), "{answer:?}");
        body.as_object_mut().unwrap().remove("instance");
        bodies.insert(body.to_string());
    }
    assert_eq!(bodies.len(), 1, "{bodies:?}");

    // Alternating, so that whatever else the machine does happens to both.
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for round in 0..9 {
        let other = format!("nobody-{round}@example.com");
        for (email, times) in [(&email, &mut known), (&other, &mut unknown)] {
            app.catalog_connection()
                .await
                .execute("delete from login_attempts")
                .await
                .unwrap();
            let begun = Instant::now();
            log_in(&app, email, "wrong, wrong, wrong")
                .answer()
                .await
                .problem(401, "unauthenticated");
            times.push(begun.elapsed());
        }
    }
    known.sort();
    unknown.sort();
    let ratio = known[4].as_secs_f64() / unknown[4].as_secs_f64();
    assert!((0.5..2.0).contains(&ratio), "{known:?} and {unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_counted_by_account_for_all_instances_together() {
    let app = app().await;
    let other = app.another_instance().await;
    app.tenant("acme").await;
    let (email, quiet) = (fresh_address(), fresh_address());
    join(&app, &email, "acme", "viewer").await;
    join(&app, &quiet, "acme", "viewer").await;
    // A success makes the allowance whole.
    log_in(&app, &email, PASSWORD).answer().await.expect(201);
    for attempt in 0..10 {
        let instance = if attempt % 2 == 0 { &app } else { &other };
        log_in(instance, &email, "wrong, wrong, wrong")
            .answer()
            .await
            .problem(401, "unauthenticated");
    }
    for instance in [&app, &other] {
        // Now the right one does not help either: whoever guesses must not learn that they have.
        let refused = log_in(instance, &email, PASSWORD).answer().await;
        refused.problem(429, "too-many-attempts");
        let seconds: u64 = refused.header("retry-after").parse().unwrap();
        assert!((1..=30).contains(&seconds), "{seconds}");
    }
    let nobody = fresh_address();
    for _ in 0..10 {
        log_in(&app, &nobody, PASSWORD)
            .answer()
            .await
            .problem(401, "unauthenticated");
    }
    let refused = log_in(&app, &nobody, PASSWORD).answer().await;
    refused.problem(429, "too-many-attempts");
    log_in(&app, &quiet, PASSWORD).answer().await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_counted_by_address_too() {
    let app = TestApp::builder()
        .set("http.secure_cookies", "false")
        .set("http.trusted_proxies", "127.0.0.1")
        .start()
        .await;
    app.tenant("acme").await;
    let email = fresh_address();
    join(&app, &email, "acme", "viewer").await;
    // A hundred attempts from one address, each with another account: as if they had been made.
    let mut catalog = app.catalog_connection().await;
    catalog
        .execute(
            "insert into login_attempts (key_sha256, whole_at)
            values (sha256('address\\000192.0.2.1'::bytea), now() + interval '300 seconds')",
        )
        .await
        .unwrap();
    let from = |address: &'static str| log_in(&app, &email, PASSWORD).header("x-forwarded-for", address);
    from("192.0.2.1").answer().await.problem(429, "too-many-attempts");
    from("6.6.6.6, 192.0.2.1")
        .answer()
        .await
        .problem(429, "too-many-attempts");
    from("192.0.2.2").answer().await.expect(201);
}
