//! Invariant I11: what an instance knows it serves, whether or not the catalog is there.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::common::{Responses, TestApp, cluster, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn known_tenants_are_served_without_the_catalog() {
    let proxy = cluster().primary().proxy().await.unwrap();
    let app = TestApp::builder().start_with_catalog_behind(&proxy).await;
    app.create(&json!({"id": "acme", "domains": ["portal.acme.test"]}))
        .await
        .expect(201);
    let key = app.key("acme", "member").await;
    app.whoami(&key).await.expect(200);

    proxy.cut().await;
    eventually("the catalog is missed", async || {
        let ready = app.get("/readyz").answer().await.expect(200);
        ready["parts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|part| part["part"] == "catalog" && part["ready"] == false)
    })
    .await;

    for host in [
        "localhost",
        "acme.localhost",
        "portal.acme.test",
        "load-balancer.internal",
    ] {
        let me = app
            .v1(Method::GET, "/whoami", &key)
            .header("host", host)
            .answer()
            .await
            .expect(200);
        assert_eq!(me["tenant"], "acme");
    }
    let invoice = json!({"customer": "c", "amount_cents": 100, "currency": "EUR"});
    app.v1(Method::POST, "/invoices", &key)
        .json(&invoice)
        .answer()
        .await
        .expect(201);

    app.create(&json!({"id": "globex"}))
        .await
        .problem(503, "unavailable");
    app.control(Method::GET, "/tenants")
        .answer()
        .await
        .problem(503, "unavailable");
    let unknown = "tnt_aaaaaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    let unknown = format!("{unknown}_{:08x}", crc32fast::hash(unknown.as_bytes()));
    app.whoami(&unknown).await.problem(503, "unavailable");
    app.whoami("tnt_not_a_key").await.problem(401, "unauthenticated");

    proxy.restore().await;
    eventually("the catalog is back", async || {
        app.create(&json!({"id": "globex"})).await.status.is_success()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_that_hangs_does_not_make_the_instance_hang() {
    let proxy = cluster().primary().proxy().await.unwrap();
    let app = TestApp::builder().start_with_catalog_behind(&proxy).await;
    app.tenant("acme").await;
    let key = app.key("acme", "member").await;
    proxy.black_hole().await;
    let started = Instant::now();
    app.get("/readyz").answer().await.expect(200);
    for host in ["localhost", "load-balancer.internal", "10.1.2.3"] {
        app.v1(Method::GET, "/whoami", &key)
            .header("host", host)
            .answer()
            .await
            .expect(200);
    }
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    app.control(Method::GET, "/tenants")
        .answer()
        .await
        .problem(503, "unavailable");
}
