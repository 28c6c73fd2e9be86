//! From the answer on, every instance knows: a new tenant at its first request, a suspended one at its next.

use std::time::Instant;

use reqwest::Method;
use serde_json::json;

use crate::{
    instance::Instance,
    world::{Way, World, from_environment, shared_broker},
};

/// The first request of a new tenant goes to every instance, and the next after its suspension too.
async fn everybody_knows(instances: &[Instance], rounds: usize, prefix: &str) {
    let (mut waits, everybody) = (Vec::new(), instances.len());
    for round in 0..rounds {
        let (tenant, asked) = (format!("{prefix}-{round}"), &instances[round % everybody]);
        let begun = Instant::now();
        let created = asked.create(&tenant).await;
        waits.push(begun.elapsed());
        assert_eq!(created.status, 201, "{created:?}");
        assert_eq!(
            created.body["propagation"]["applied_instances"], everybody,
            "{created:?}"
        );
        let key = asked.key(&tenant).await;
        for instance in instances {
            let me = instance.whoami(&key).await;
            assert_eq!(me.status, 200, "{me:?}");
            assert_eq!(me.body["database_tenant"], created.body["uuid"]);
        }
        let suspended = asked
            .control(Method::POST, &format!("/tenants/{tenant}/suspend"), &json!({}))
            .await;
        assert_eq!(
            suspended.body["propagation"]["applied_instances"], everybody,
            "{suspended:?}"
        );
        for instance in instances {
            let refused = instance.whoami(&key).await;
            assert_eq!(
                (refused.status, &refused.body["type"]),
                (403, &json!("/problems/tenant-suspended"))
            );
        }
    }
    waits.sort();
    let at = |share: usize| waits[(waits.len() - 1) * share / 100];
    println!(
        "{everybody} instances, {prefix}: {:?} in the middle, {:?} for 95 of 100, {:?} at most",
        at(50),
        at(95),
        at(100)
    );
}

async fn converges(way: Way, count: usize) {
    let rounds = usize::try_from(from_environment("CONVERGENCE_ROUNDS", 10)).unwrap();
    let world = World::new(way).await;
    let instances = world.instances(count).await;
    everybody_knows(&instances, rounds, "few").await;
    world.populate(10_000).await;
    everybody_knows(&instances, rounds, "many").await;
    for instance in &instances {
        assert_eq!(instance.metric("tenantry_routing_unknown_total").await, 0.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_instances_by_the_catalog() {
    converges(Way::Catalog, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_instances_by_a_broker() {
    converges(Way::Broker(shared_broker().url()), 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_instances() {
    converges(Way::Catalog, 10).await;
}

/// What an instance reads is what has changed, however many tenants there are.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_reads_the_rows_that_changed_and_no_others() {
    let world = World::new(Way::Catalog).await;
    let instances = world.instances(2).await;
    let mut tenants_before = 0;
    for (present, prefix) in [(100, "hundred"), (9_900, "thousands")] {
        world.populate(present).await;
        tenants_before += present;
        // The rows from outside arrive with the next change, or with the timer.
        instances[0].create(&format!("{prefix}-first")).await;
        tenants_before += 1;
        for instance in &instances {
            crate::world::eventually("all rows are there", async || {
                instance.metric("tenantry_routing_tenants").await >= f64::from(tenants_before)
            })
            .await;
        }
        let rows = async |instance: &Instance| instance.metric("tenantry_routing_rows_total").await;
        let revision = world.count("select revision from catalog_revision").await;
        let before = (rows(&instances[0]).await, rows(&instances[1]).await);
        for round in 0..5 {
            let tenant = format!("{prefix}-{round}");
            // Answered when both have read it.
            assert_eq!(instances[round % 2].create(&tenant).await.status, 201);
            instances[round % 2].key(&tenant).await;
            tenants_before += 1;
        }
        let changes = world.count("select revision from catalog_revision").await - revision;
        let changed: i64 = sqlx::query_scalar(
            "select (select count(*) from tenants where revision > $1) + (select count(*) from api_keys where revision > $1)",
        )
        .bind(revision)
        .fetch_one(&mut world.catalog().await)
        .await
        .unwrap();
        let after = (rows(&instances[0]).await, rows(&instances[1]).await);
        for read in [after.0 - before.0, after.1 - before.1] {
            println!("{prefix}: {read} rows read for {changed} rows changed in {changes} changes");
            // A row that changes twice is read once or twice, as the instance looks in between or not.
            assert!(
                read >= lossless(changed) && read <= lossless(changes),
                "{before:?} {after:?}"
            );
        }
    }
}

/// A count as a metric has it.
fn lossless(count: i64) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}
