//! Known attacks on each kind of credential, and what an issuer's keys go through.

use std::time::{Duration, Instant};

use chrono::Utc;
use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    browser::by,
    common::{OPERATOR_TOKEN, Responses, TestApp, eventually},
    issuer::{Issuer, NAME, claims, eddsa, es256},
    sessions::app,
};

/// A service that trusts an issuer, with the tenants acme and globex.
async fn with_issuer(more: &str) -> (TestApp, Issuer) {
    let issuer = Issuer::start().await;
    let app = TestApp::builder().more(&(issuer.settings() + more)).start().await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    (app, issuer)
}

fn part(value: &Value) -> String {
    BASE64URL_NOPAD.encode(value.to_string().as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_each_algorithm_are_credentials() {
    let (app, issuer) = with_issuer("").await;
    for key in ["rs", "es", "ed"] {
        let who = app.whoami(&issuer.token(key, json!({}))).await.expect(200);
        assert_eq!(
            (&who["tenant"], &who["role"]),
            (&json!("acme"), &json!("member")),
            "{key}"
        );
        assert_eq!(who["principal"], format!("jwt:{NAME}#ann"));
    }
    let uuid = app.whoami(&app.key("globex", "viewer").await).await.expect(200)["uuid"].clone();
    let by_uuid = issuer.token(
        "ed",
        json!({"tenant_id": uuid, "role": null, "aud": ["x", "other"]}),
    );
    let who = app.whoami(&by_uuid).await.expect(200);
    assert_eq!(
        (&who["tenant"], &who["role"]),
        (&json!("globex"), &json!("viewer"))
    );

    let both = issuer.token("ed", json!({"tenant_id": ["acme", uuid]}));
    app.whoami(&both).await.problem(400, "tenant-required");
    for tenant in ["acme", "globex"] {
        let named = app
            .v1(Method::GET, "/whoami", &both)
            .header("x-tenant-id", tenant);
        assert_eq!(named.answer().await.expect(200)["tenant"], tenant);
    }
    let other = app
        .v1(Method::GET, "/whoami", &both)
        .header("x-tenant-id", "nosuch");
    other.answer().await.problem(403, "wrong-tenant");
    // A member of no tenant's.
    let gone = issuer.token("ed", json!({"tenant_id": "nosuch"}));
    app.whoami(&gone).await.problem(401, "unauthenticated");
    let invoice = json!({"customer": "Ann", "amount_cents": 100, "currency": "EUR"});
    let viewer = issuer.token("ed", json!({"role": "viewer"}));
    app.v1(Method::POST, "/invoices", &viewer)
        .json(&invoice)
        .answer()
        .await
        .problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_somebody_made_up_or_changed_are_refused() {
    let (app, issuer) = with_issuer("").await;
    let now = Utc::now().timestamp();
    let good = issuer.token("rs", json!({}));
    app.whoami(&good).await.expect(200);
    let parts: Vec<&str> = good.split('.').collect();

    let mut attacks = Vec::new();
    // No signature, in every spelling.
    for name in ["none", "None", "NONE", "nOnE"] {
        let head = part(&json!({"alg": name, "kid": "rs"}));
        attacks.push(format!("{head}.{}.", parts[1]));
        attacks.push(format!("{head}.{}.{}", parts[1], parts[2]));
    }
    // The public key as a shared secret.
    let public = issuer.key("rs").public;
    for secret in [public.to_string(), public["n"].as_str().unwrap().to_owned()] {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            let mut header = Header::new(algorithm);
            header.kid = Some("rs".to_owned());
            let secret = EncodingKey::from_secret(secret.as_bytes()).unwrap();
            attacks.push(jsonwebtoken::encode(&header, &claims(json!({})), &secret).unwrap());
        }
    }
    // A key of somebody else's under an id that is known, unknown, or a path.
    let own = eddsa("ed");
    for id in [
        "ed",
        "rs",
        "unknown",
        "../../../../dev/null",
        "/etc/passwd",
        "ed\0",
        "' or 1=1 --",
        &"x".repeat(2000),
    ] {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(id.to_owned());
        attacks.push(own.sign_with(&header, &claims(json!({}))));
    }
    // A token that brings its key along, or says where it is.
    let mut header = Header::new(Algorithm::EdDSA);
    header.jwk = serde_json::from_value(own.public.clone()).ok();
    header.jku = Some(issuer.url.clone());
    header.x5u = Some(issuer.url.clone());
    attacks.push(own.sign_with(&header, &claims(json!({}))));
    // Changed after it was signed; signed by another of the issuer's keys; cut; doubled.
    let admin = part(&claims(json!({"role": "admin", "tenant_id": "globex"})));
    attacks.push(format!("{}.{admin}.{}", parts[0], parts[2]));
    attacks.push(format!(
        "{}.{}.{}",
        part(&json!({"alg": "RS256", "kid": "es"})),
        parts[1],
        parts[2]
    ));
    attacks.push(format!("{}.{}.", parts[0], parts[1]));
    attacks.push(good[..good.len() - 2].to_owned());
    attacks.push(format!("{good}.{good}"));
    // One character of it changed, at every place of the signature's, and now and then elsewhere.
    for (index, byte) in good.bytes().enumerate() {
        let of_signature = index > good.len() - 20;
        if byte != b'.' && (of_signature || index % 17 == 0) && index + 1 < good.len() {
            let mut changed = good.clone();
            changed.replace_range(index..=index, if byte == b'A' { "B" } else { "A" });
            attacks.push(changed);
        }
    }
    // Extensions that have to be understood.
    let mut header = Header::new(Algorithm::EdDSA);
    header.kid = Some("ed".to_owned());
    header.crit = Some(vec!["exp".to_owned()]);
    attacks.push(issuer.key("ed").sign_with(&header, &claims(json!({}))));
    // Claims.
    for change in [
        json!({"exp": null}),
        json!({"exp": now - 60}),
        json!({"exp": "tomorrow"}),
        json!({"nbf": now + 600}),
        json!({"iat": now + 600}),
        json!({"aud": "somebody-else"}),
        json!({"aud": null}),
        json!({"aud": []}),
        json!({"iss": "https://evil.example"}),
        json!({"iss": null}),
        json!({"iss": [NAME, "https://evil.example"]}),
        json!({"sub": null}),
        json!({"sub": "a\nb"}),
        json!({"tenant_id": null}),
        json!({"tenant_id": {"acme": true}}),
        json!({"role": "operator"}),
        json!({"padding": "x".repeat(10_000)}),
    ] {
        attacks.push(issuer.token("ed", change));
    }
    for attack in &attacks {
        let answer = app.whoami(attack).await;
        answer.problem(401, "unauthenticated");
        assert!(
            !answer.text.contains(&attack[..attack.len().min(40)]),
            "an answer repeats nothing of a token"
        );
    }
    // A tenant's token is no operator's, wherever.
    app.get("/control/v1/tenants")
        .bearer_auth(&good)
        .answer()
        .await
        .problem(401, "unauthenticated");
    // Another tenant's, by header and by host.
    let wrong = app
        .v1(Method::GET, "/whoami", &good)
        .header("x-tenant-id", "globex");
    wrong.answer().await.problem(403, "wrong-tenant");
    let wrong = app
        .v1(Method::GET, "/whoami", &good)
        .header("host", "globex.localhost");
    wrong.answer().await.problem(403, "wrong-tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_algorithm_that_an_issuer_may_not_use_is_refused() {
    let (app, issuer) = with_issuer("algorithms = [\"ES256\"]\n").await;
    app.whoami(&issuer.token("es", json!({}))).await.expect(200);
    for key in ["rs", "ed"] {
        app.whoami(&issuer.token(key, json!({})))
            .await
            .problem(401, "unauthenticated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuers_new_key_counts_at_once_and_its_old_one_until_the_next_look() {
    let (app, issuer) = with_issuer("refresh_interval = \"500ms\"\n").await;
    let (old, new) = (issuer.key("ed"), eddsa("new"));
    app.whoami(&old.sign(&claims(json!({})))).await.expect(200);
    issuer.publish(vec![new.clone(), es256("es")]);
    app.whoami(&new.sign(&claims(json!({})))).await.expect(200);
    eventually("the old key is forgotten", async || {
        app.whoami(&old.sign(&claims(json!({})))).await.status == 401
    })
    .await;

    // With the issuer away, what is known counts on.
    issuer.away(true);
    let fetches = issuer.fetches();
    eventually("it was asked in vain", async || issuer.fetches() > fetches + 2).await;
    app.whoami(&new.sign(&claims(json!({})))).await.expect(200);
    issuer.away(false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_unknown_keys_asks_the_issuer_once() {
    let (app, issuer) = with_issuer("refresh_interval = \"1h\"\n").await;
    app.whoami(&issuer.token("ed", json!({}))).await.expect(200);
    let before = issuer.fetches();
    let forged: Vec<String> = (0..200)
        .map(|number| eddsa(&format!("key-{number}")).sign(&claims(json!({}))))
        .collect();
    let answers = futures::future::join_all(forged.iter().map(|token| app.whoami(token))).await;
    assert!(answers.iter().all(|answer| answer.status == 401));
    assert!(
        issuer.fetches() <= before + 1,
        "{} fetches",
        issuer.fetches() - before
    );
    app.whoami(&issuer.token("ed", json!({}))).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_is_away_at_the_start_is_found_later() {
    let issuer = Issuer::start().await;
    issuer.away(true);
    let settings = issuer.settings() + "refresh_interval = \"200ms\"\n";
    let app = TestApp::builder().more(&settings).start().await;
    app.tenant("acme").await;
    app.whoami(&issuer.token("ed", json!({})))
        .await
        .problem(503, "unavailable");
    issuer.away(false);
    eventually("its keys are fetched", async || {
        app.whoami(&issuer.token("ed", json!({}))).await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn api_keys_and_tokens_are_taken_from_the_header_only_and_only_once() {
    let app = app().await;
    app.tenant("acme").await;
    let key = app.key("acme", "admin").await;
    for path in [
        format!("/v1/whoami?api_key={key}"),
        format!("/v1/whoami?access_token={key}"),
        format!("/v1/whoami?authorization=Bearer%20{key}"),
        format!("/control/v1/tenants?token={OPERATOR_TOKEN}"),
    ] {
        app.get(&path).answer().await.problem(401, "unauthenticated");
    }
    let twice = app.get("/v1/whoami").bearer_auth(&key).bearer_auth(&key);
    twice.answer().await.problem(401, "unauthenticated");
    for name in ["x-api-key", "cookie", "proxy-authorization", "x-authorization"] {
        let request = app.get("/v1/whoami").header(name, &key);
        request.answer().await.problem(401, "unauthenticated");
    }
    for end in [key.len() - 1, key.len() - 9, 20, 4] {
        app.whoami(&key[..end]).await.problem(401, "unauthenticated");
    }
    // Anybody can say that they were forwarded.
    let forwarded = app
        .v1(Method::GET, "/whoami", &key)
        .header("x-forwarded-host", "globex.localhost");
    assert_eq!(forwarded.answer().await.expect(200)["tenant"], "acme");
    let operator = app.get("/v1/whoami").bearer_auth(OPERATOR_TOKEN);
    let operator = operator.header("x-forwarded-host", "acme.localhost");
    operator.answer().await.problem(400, "tenant-required");
    for header in ["x-tenant-id", "host"] {
        let request = app
            .v1(Method::GET, "/whoami", &key)
            .header(header, "acme")
            .header(header, "acme");
        request.answer().await.problem(400, "ambiguous-tenant");
    }
    // With a key and a cookie, the key is the credential, however bad it is.
    let (_, session) = crate::browser::person(&app, "acme", "viewer").await;
    let both = by(&app, &session, Method::GET, "/v1/whoami").bearer_auth("nonsense");
    both.answer().await.problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_trusted_proxy_what_was_asked_for_counts() {
    let app = TestApp::builder()
        .set("http.trusted_proxies", "127.0.0.0/8")
        .start()
        .await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    let key = app.key("acme", "viewer").await;
    let forwarded = |host: &str| {
        app.v1(Method::GET, "/whoami", &key)
            .header("x-forwarded-host", host)
    };
    forwarded("acme.localhost").answer().await.expect(200);
    forwarded("globex.localhost")
        .answer()
        .await
        .problem(403, "wrong-tenant");
    forwarded("acme.localhost, globex.localhost")
        .answer()
        .await
        .problem(400, "ambiguous-tenant");
    forwarded("acme.localhost")
        .header("host", "globex.localhost")
        .answer()
        .await
        .problem(403, "wrong-tenant");
}

/// How long a wrong key takes does not depend on how much of it is right.
#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_wrong_key_tells_nothing_about_the_right_one() {
    let app = TestApp::builder()
        .set("limits.requests_per_second", "0")
        .start()
        .await;
    app.tenant("acme").await;
    let key = app.key("acme", "viewer").await;
    let parts: Vec<&str> = key.split('_').collect();
    let with = |secret: &str| {
        let body = format!("tnt_{}_{secret}", parts[1]);
        format!("{body}_{:08x}", crc32fast::hash(body.as_bytes()))
    };
    let nothing = with(&"x".repeat(36));
    let almost = with(&format!(
        "{}{}",
        &parts[2][..35],
        if parts[2].ends_with('x') { "y" } else { "x" }
    ));
    let (mut far, mut near) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        for (key, times) in [(&nothing, &mut far), (&almost, &mut near)] {
            let begun = Instant::now();
            app.whoami(key).await.problem(401, "unauthenticated");
            times.push(begun.elapsed());
        }
    }
    far.sort();
    near.sort();
    let median = |times: &[Duration]| times[times.len() / 2].as_secs_f64();
    let ratio = median(&near) / median(&far);
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}
