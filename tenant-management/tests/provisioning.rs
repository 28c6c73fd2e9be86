//! Invariant I8: a tenant is made once and whole, however often, by however many and after whatever failure it is asked for.

mod support;

use std::{collections::HashSet, sync::Arc};

use sandbox::Cluster;
use sqlx::Executor;
use support::{World, eventually, fresh_name, operator, request};
use tenant_management::{ControlError, TenantState};

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_created_once_and_found_again() {
    let world = World::start().await;
    let tenancy = world.instance(world.wishes()).await;

    let created = tenancy
        .control()
        .create_tenant(&request("acme"), &operator())
        .await
        .unwrap();
    assert!(created.newly);
    assert_eq!(created.value.state, TenantState::Created);
    assert_eq!(created.value.schema_version, 1);
    assert_eq!(
        (
            created.propagation.live_instances,
            created.propagation.applied_instances
        ),
        (1, 1)
    );

    let again = tenancy
        .control()
        .create_tenant(&request("acme"), &operator())
        .await
        .unwrap();
    assert!(!again.newly);
    assert_eq!(again.value, created.value);

    let mut other = request("acme");
    other.display_name = Some("Another".to_owned());
    let refused = tenancy
        .control()
        .create_tenant(&other, &operator())
        .await
        .unwrap_err();
    assert!(matches!(refused, ControlError::OtherRequest));
    assert_eq!(world.tenant_objects().await, (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_identical_requests_at_once_make_one_tenant() {
    for spares in [0, 2] {
        let world = World::start().await;
        let mut wishes = world.wishes();
        wishes.spares = spares;
        // Two instances, as behind a load balancer.
        let instances = [world.instance(wishes.clone()).await, world.instance(wishes).await];
        stock_is(&world, spares).await;

        let creations = (0..50).map(|index| {
            let tenancy = instances[index % 2].clone();
            tokio::spawn(async move {
                tenancy
                    .control()
                    .create_tenant(&request("acme"), &operator())
                    .await
            })
        });
        let mut newly = 0;
        let mut uuids = HashSet::new();
        for creation in futures::future::join_all(creations).await {
            let created = creation.unwrap().expect("each is answered with the tenant");
            newly += u32::from(created.newly);
            uuids.insert(created.value.uuid);
        }

        assert_eq!(newly, 1, "one call made it");
        assert_eq!(uuids.len(), 1);
        stock_is(&world, spares).await;
        let all = i64::from(spares) + 1;
        assert_eq!(world.tenant_objects().await, (all, all));
        assert_eq!(world.count("select count(*) from tenants").await, 1);
        assert_eq!(world.count("select count(*) from operations").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_different_tenants_at_once_all_succeed() {
    for spares in [0, 4] {
        let world = World::start().await;
        let mut wishes = world.wishes();
        wishes.spares = spares;
        let tenancy = world.instance(wishes).await;
        stock_is(&world, spares).await;

        let creations = (0..20).map(|_| {
            let tenancy = tenancy.clone();
            tokio::spawn(async move {
                tenancy
                    .control()
                    .create_tenant(&request(&fresh_name()), &operator())
                    .await
            })
        });
        for creation in futures::future::join_all(creations).await {
            let created = creation.unwrap().expect("each succeeds");
            assert!(created.newly);
            let route = tenancy
                .resolve(&created.value.id)
                .await
                .expect("it is routed when the answer is there");
            assert_eq!(route.uuid, created.value.uuid);
        }
        stock_is(&world, spares).await;
        assert_eq!(world.tenant_objects().await.0, 20 + i64::from(spares));
        let report = tenancy
            .control()
            .orphans(&tenancy_cluster())
            .await
            .unwrap()
            .unwrap();
        assert!(report.is_empty(), "{report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_down_fails_the_tenant_visibly_and_the_resumer_finishes_it() {
    let world = World::start().await;
    let second = Cluster::builder().start().await.unwrap();
    let mut wishes = world.wishes();
    wishes
        .clusters
        .push(world.cluster_settings("second", second.primary().url("postgres")));
    let tenancy = world.instance(wishes).await;
    second.primary().kill().await.unwrap();

    let mut wanted = request("acme");
    wanted.cluster = Some(tenant_management::ClusterName::parse("second").unwrap());
    let refused = tenancy
        .control()
        .create_tenant(&wanted, &operator())
        .await
        .unwrap_err();
    let ControlError::NotPossibleNow {
        operation: Some(operation),
        ..
    } = refused
    else {
        panic!("{refused:?}")
    };
    let failed = tenancy.control().tenant(&wanted.id).await.unwrap().unwrap();
    assert_eq!(failed.state, TenantState::Failed);
    assert!(
        tenancy.resolve(&wanted.id).await.is_err(),
        "a failed tenant is not routed"
    );
    let shown = tenancy.control().operation(operation).await.unwrap().unwrap();
    assert!(shown.error.is_some_and(|error| !error.is_empty()));

    second.primary().start().await.unwrap();
    eventually("the resumer creates the tenant", async || {
        tenancy.control().tenant(&wanted.id).await.unwrap().unwrap().state == TenantState::Created
    })
    .await;
    let again = tenancy
        .control()
        .create_tenant(&wanted, &operator())
        .await
        .unwrap();
    assert!(!again.newly);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_interrupted_attempt_left_is_taken_as_it_is() {
    let world = World::start().await;
    let tenancy = world.instance(world.wishes()).await;
    let created = tenancy
        .control()
        .create_tenant(&request("acme"), &operator())
        .await
        .unwrap();

    // As after a crash between the last step on the server and its record.
    let mut catalog = world.admin("tenantry_catalog").await;
    catalog
        .execute(
            "update tenants set state = 'IN_PROGRESS', revision = 0;
             update operations set state = 'RUNNING', lease_until = now() - interval '1 second', finished_at = null",
        )
        .await
        .unwrap();
    eventually("the resumer takes over", async || {
        tenancy
            .control()
            .tenant(&created.value.id)
            .await
            .unwrap()
            .unwrap()
            .state
            == TenantState::Created
    })
    .await;

    assert_eq!(world.tenant_objects().await, (1, 1));
    assert_eq!(
        world.count("select max(attempts)::bigint from operations").await,
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_database_from_an_interrupted_drop_is_made_again() {
    let world = World::start().await;
    let tenancy = world.instance(world.wishes()).await;
    let created = tenancy
        .control()
        .create_tenant(&request("acme"), &operator())
        .await
        .unwrap();
    let mut admin = world.admin("postgres").await;
    admin
        .execute("update pg_database set datconnlimit = -2 where datname like 't\\_%'")
        .await
        .unwrap();

    let mut catalog = world.admin("tenantry_catalog").await;
    catalog
        .execute(
            "update tenants set state = 'IN_PROGRESS';
             update operations set state = 'RUNNING', lease_until = now() - interval '1 second', finished_at = null",
        )
        .await
        .unwrap();
    eventually("the database is whole again", async || {
        tenancy
            .control()
            .tenant(&created.value.id)
            .await
            .unwrap()
            .unwrap()
            .state
            == TenantState::Created
    })
    .await;
    assert_eq!(
        world
            .count("select count(*) from pg_database where datconnlimit = -2")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_reported_and_left_alone() {
    let world = World::start().await;
    let tenancy = world.instance(world.wishes()).await;
    let kept = tenancy
        .control()
        .create_tenant(&request("acme"), &operator())
        .await
        .unwrap();
    let lost = tenancy
        .control()
        .create_tenant(&request("globex"), &operator())
        .await
        .unwrap();
    let stray = tenant_management::TenantUuid::generate();
    let mut admin = world.admin("postgres").await;
    for statement in [
        format!("create database {}", stray.physical_name()),
        format!("create role {}", stray.physical_name()),
        format!("drop database {}", lost.value.uuid.physical_name()),
    ] {
        admin.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    }

    let report = tenancy
        .control()
        .orphans(&tenancy_cluster())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(report.databases, [stray]);
    assert_eq!(report.roles, [stray]);
    assert_eq!(report.missing_databases, [lost.value.uuid]);
    assert_ne!(kept.value.uuid, lost.value.uuid);
    assert_eq!(world.tenant_objects().await, (2, 3), "nothing was dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_instances_that_start_at_once_share_one_migration_and_one_template() {
    let world = Arc::new(World::start().await);
    let starts = (0..6).map(|_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let mut wishes = world.wishes();
            wishes.spares = 2;
            world.instance(wishes).await
        })
    });
    let instances: Vec<_> = futures::future::join_all(starts)
        .await
        .into_iter()
        .map(|start| start.expect("it starts"))
        .collect();
    stock_is(&world, 2).await;
    let twice = "select count(*) - count(distinct version) from schema_history";
    assert_eq!(world.count(twice).await, 0, "each migration has run once");
    assert_eq!(
        world
            .count("select count(*) from pg_database where datistemplate and not datallowconn")
            .await,
        2
    );
    let created = instances[3]
        .control()
        .create_tenant(&request("acme"), &operator())
        .await
        .unwrap();
    assert!(created.newly);
}

fn tenancy_cluster() -> tenant_management::ClusterName {
    tenant_management::ClusterName::parse("main").expect("well-formed")
}

async fn stock_is(world: &World, spares: u32) {
    eventually("the stock is filled", async || {
        world
            .count("select count(*) from spare_databases where state = 'READY'")
            .await
            == i64::from(spares)
    })
    .await;
}

/// The rights that the README asks for are enough, also for a creation that has to be taken up again.
#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_who_is_no_superuser_is_enough() {
    let world = World::start().await;
    let mut admin = world.admin("postgres").await;
    admin
        .execute(
            "create role provisioner login password 'example-only' createrole;
            grant pg_signal_backend, pg_monitor to provisioner;
            grant set on parameter \"tenantry.tenant\" to provisioner;
            alter database postgres owner to provisioner",
        )
        .await
        .unwrap();
    let mut url: url::Url = world.cluster.primary().url("postgres").parse().unwrap();
    url.set_username("provisioner").unwrap();
    url.set_password(Some("example-only")).unwrap();
    let mut wishes = world.wishes();
    wishes.clusters = vec![world.cluster_settings("main", url.into())];
    // The template needs the right that is missing below.
    admin.execute("alter role provisioner createdb").await.unwrap();
    let tenancy = world.instance(wishes).await;
    let control = tenancy.control();
    control
        .create_tenant(&request("acme"), &operator())
        .await
        .unwrap();

    admin.execute("alter role provisioner nocreatedb").await.unwrap();
    let refused = control
        .create_tenant(&request("globex"), &operator())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ControlError::NotPossibleNow { .. }),
        "{refused:?}"
    );
    // Role and database are asked for at the same time, and the refusal of one may be faster than the making of the other.
    eventually("its role is there, its database is not", async || {
        control
            .create_tenant(&request("globex"), &operator())
            .await
            .unwrap_err();
        world.tenant_objects().await == (1, 2)
    })
    .await;
    admin.execute("alter role provisioner createdb").await.unwrap();
    eventually("the creation is taken up again", async || {
        control
            .create_tenant(&request("globex"), &operator())
            .await
            .is_ok()
    })
    .await;
    assert_eq!(world.tenant_objects().await, (2, 2));
}
