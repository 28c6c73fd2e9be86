//! Instances that begin at the same moment.

use std::time::Instant;

use crate::world::{Way, World, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn ten_instances_that_start_at_once_migrate_once_and_are_all_ready() {
    let world = World::new(Way::Catalog).await;
    let begun = Instant::now();
    let instances = world.instances(10).await;
    println!("an empty catalog: 10 instances ready after {:?}", begun.elapsed());
    let migrations = world.count("select count(*) from schema_history").await;
    let versions = world
        .count("select count(distinct version) from schema_history")
        .await;
    assert_eq!(migrations, versions);
    assert_eq!(world.count("select count(*) from clusters").await, 1);
    assert_eq!(instances[0].create("acme").await.status, 201);
    let listed = instances[3]
        .control(reqwest::Method::GET, "/instances", &serde_json::json!({}))
        .await;
    let items = listed.body["items"].as_array().unwrap();
    assert_eq!(items.len(), 10, "{listed:?}");
    for instance in items {
        assert_eq!(
            (&instance["live"], &instance["behind"]),
            (&true.into(), &0.into()),
            "{instance}"
        );
    }
    drop(instances);

    world.populate(10_000).await;
    let begun = Instant::now();
    let instances = world.instances(10).await;
    println!("10,000 tenants: 10 instances ready after {:?}", begun.elapsed());
    for instance in &instances {
        assert!(instance.metric("tenantry_routing_tenants").await >= 10_000.0);
    }
    assert_eq!(instances[9].create("globex").await.status, 201);
    // The instances of the first time went without a farewell.
    eventually("their leases have ended", async || {
        world
            .count("select count(*) from instances where lease_until > now()")
            .await
            == 10
    })
    .await;
}
