//! An instance that stands still in the middle of provisioning, long enough for another to take over, and then goes on.
#![cfg(feature = "failpoints")]

use std::time::Duration;

use sqlx::{Connection, PgConnection};

use crate::world::{Way, World, eventually};

/// Longer than the lease of an operation.
const FROZEN: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_was_frozen_while_it_provisioned_does_nothing_twice() {
    let mut world = World::new(Way::Catalog).await;
    world.spares = 0;
    // It lingers at a step, so that it can be frozen there.
    let mut frozen = world.begin(&[("FAILPOINTS", "create-tenant::before-verify=1*sleep(4000)")]);
    frozen.answers().await;
    let other = world.instance().await;
    let creating = async {
        let begun = frozen.create("acme").await;
        (begun.status, begun.body)
    };
    let meanwhile = async {
        eventually("the database is made, and has yet to be verified", async || {
            objects(&world).await == (1, 1)
        })
        .await;
        frozen.signal("STOP");
        tokio::time::sleep(FROZEN).await;
        eventually("another instance has finished the work", async || {
            world
                .count("select count(*) from tenants where state = 'CREATED'")
                .await
                == 1
        })
        .await;
        let (generation, revision): (i64, i64) = sqlx::query_as(
            "select o.generation, t.revision from operations o join tenants t on t.uuid = o.tenant",
        )
        .fetch_one(&mut world.catalog().await)
        .await
        .unwrap();
        assert_eq!(generation, 2, "somebody else has taken over");
        frozen.signal("CONT");
        revision
    };
    let ((status, tenant), revision) = tokio::join!(creating, meanwhile);
    assert!(
        [200, 201].contains(&status),
        "{status} {tenant}\n{}",
        frozen.log()
    );
    assert_eq!(
        (&tenant["state"], &tenant["revision"]),
        (&"CREATED".into(), &revision.into()),
        "recorded once"
    );
    eventually("its lost lease is counted", async || {
        frozen.metric("tenantry_instance_leases_lost_total").await >= 1.0
    })
    .await;
    for query in [
        "select count(*) from tenants",
        "select count(*) from operations",
        "select count(*) from operations where state = 'SUCCEEDED' and generation = 2",
        "select count(*) from audit_events where action = 'tenant.create'",
    ] {
        assert_eq!(world.count(query).await, 1, "{query}");
    }
    assert_eq!(objects(&world).await, (1, 1));
    let key = other.key("acme").await;
    for instance in [&frozen, &other] {
        assert_eq!(instance.whoami(&key).await.body["uuid"], tenant["uuid"]);
    }
}

/// Databases and roles that have a tenant's form.
async fn objects(world: &World) -> (i64, i64) {
    let options = world.cluster.primary().connect_options("postgres");
    let mut admin = PgConnection::connect_with(&options).await.unwrap();
    let objects = sqlx::query_as(
        r"select (select count(*) from pg_database where datname like 't\_%'),
                 (select count(*) from pg_roles where rolname like 't\_%')",
    );
    objects.fetch_one(&mut admin).await.unwrap()
}
