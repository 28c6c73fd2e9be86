//! Invariant I11: with the catalog gone, what is known is served.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::json;

use crate::world::{Way, World, eventually, from_environment};

#[tokio::test(flavor = "multi_thread")]
async fn while_the_catalog_is_stopped_known_tenants_are_served_and_afterwards_everything_goes_on() {
    let away = Duration::from_secs(from_environment("AWAY_SECONDS", 8));
    let world = World::with_catalog_apart(Way::Catalog).await;
    let instances = world.instances(2).await;
    assert_eq!(instances[0].create("acme").await.status, 201);
    let key = instances[0].key("acme").await;
    let catalog = world.catalog_server.as_ref().unwrap().primary();
    let stopped = AtomicBool::new(false);

    let load = async {
        let (mut served, mut slowest) = (0_u64, Duration::ZERO);
        while !stopped.load(Ordering::Relaxed) {
            for instance in &instances {
                let begun = Instant::now();
                let me = instance.whoami(&key).await;
                slowest = slowest.max(begun.elapsed());
                assert_eq!(me.status, 200, "{me:?}");
                let invoice = json!({"customer": "c", "amount_cents": 100, "currency": "EUR"});
                let request = instance
                    .request(Method::POST, "/v1/invoices")
                    .bearer_auth(&key)
                    .json(&invoice);
                assert_eq!(crate::instance::answer(request).await.unwrap().status, 201);
                served += 2;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        (served, slowest)
    };
    let meanwhile = async {
        catalog.stop().await.unwrap();
        let begun = Instant::now();
        while begun.elapsed() < away {
            for instance in &instances {
                let refused = instance.create("globex").await;
                assert_eq!(
                    (refused.status, &refused.body["type"]),
                    (503, &json!("/problems/unavailable"))
                );
                let unknown = instance
                    .request(Method::GET, "/v1/whoami")
                    .bearer_auth(crate::instance::OPERATOR_TOKEN)
                    .header("x-tenant-id", "initech");
                let unknown = crate::instance::answer(unknown).await.unwrap();
                assert_eq!(
                    unknown.status, 503,
                    "an unknown tenant is not said to be none: {unknown:?}"
                );
            }
        }
        for instance in &instances {
            assert_eq!(instance.part("catalog").await["ready"], false);
            if away > Duration::from_secs(6) {
                assert_eq!(instance.part("lease").await["ready"], false);
            }
            let ready = instance.request(Method::GET, "/readyz").send().await.unwrap();
            assert_eq!(ready.status().as_u16(), 200, "it can serve");
            // One line when it began, for each kind of work; not one a second.
            assert!(instance.lines_with("WARN") < 40, "{}", instance.log());
        }
        catalog.start().await.unwrap();
        eventually("a tenant can be created again", async || {
            [200, 201].contains(&instances[1].create("globex").await.status)
        })
        .await;
        for instance in &instances {
            instance.hears().await;
        }
        let created = instances[0].create("initech").await;
        assert_eq!(
            (created.status, &created.body["propagation"]["applied_instances"]),
            (201, &2.into()),
            "{created:?}"
        );
        stopped.store(true, Ordering::Relaxed);
    };
    let ((served, slowest), ()) = tokio::join!(load, meanwhile);
    println!(
        "{served} requests while the catalog was away for {away:?} and after, the slowest in {slowest:?}"
    );
    let other = instances[1].key("initech").await;
    assert_eq!(instances[0].whoami(&other).await.status, 200);
}
