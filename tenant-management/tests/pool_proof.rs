//! I1 at the level of connections: a connection is used only after it has proved that it reached its own tenant's
//! database, and what is refused is not tried over and over.

mod pool_support;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use pool_support::{LIMIT, World, backends, eventually, next_generation, run};
use sqlx::Connection;
use tenant_management::{
    Generation, Route, TenantUuid,
    pool::{AcquireError, PoolLimits},
};

fn limits() -> PoolLimits {
    PoolLimits {
        connect_timeout: LIMIT,
        acquire_timeout: LIMIT,
        ..PoolLimits::default()
    }
}

#[tokio::test]
async fn a_new_connection_starts_as_a_read_only_session_with_its_tenants_name() {
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(5, limits());
    let mut connection = pool.acquire(&route).await.expect("the tenant can be reached");
    for (setting, value) in [
        ("default_transaction_read_only", "on"),
        ("statement_timeout", "30s"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("application_name", "tenantry/acme"),
        ("tenantry.tenant", &route.uuid.to_string()),
    ] {
        let found: String = sqlx::query_scalar("select current_setting($1)")
            .bind(setting)
            .fetch_one(&mut connection)
            .await
            .expect("the setting is there");
        assert_eq!(found, value, "{setting}");
    }
    assert_eq!(connection.statements(), 5);
    drop(connection);
    world.end().await;
}

#[tokio::test]
async fn a_database_without_the_tenants_mark_is_refused() {
    let world = World::start().await;
    let mut admin = world.admin().await;
    let other = TenantUuid::generate();
    for fake in [false, true] {
        for mark in [
            format!("set tenantry.tenant = '{other}'"),
            "reset tenantry.tenant".to_owned(),
        ] {
            // Given: a database with the wrong mark or none, and perhaps a role that claims to be marked.
            let route = world.tenant("acme").await;
            let (uuid, name) = (route.uuid, route.uuid.physical_name());
            run(&mut admin, format!("alter database {name} {mark}")).await;
            if fake {
                run(
                    &mut admin,
                    format!("alter role {name} set tenantry.tenant = '{uuid}'"),
                )
                .await;
                run(
                    &mut admin,
                    format!("alter role {name} in database {name} set tenantry.tenant = '{uuid}'"),
                )
                .await;
            }
            // When.
            let pool = world.pool(5, limits());
            let refused = pool.acquire(&route).await;
            // Then: refused, and the connection is closed.
            assert!(matches!(refused, Err(AcquireError::WrongDatabase)), "{refused:?}");
            eventually("the connection is gone", async || backends(&mut admin).await <= 1).await;
            eventually("its place is free", async || pool.stats().closing == 0).await;
            // And when the mark is right.
            run(
                &mut admin,
                format!("alter database {name} set tenantry.tenant = '{uuid}'"),
            )
            .await;
            let healed = next_generation(&route);
            assert!(pool.acquire(&healed).await.is_ok());
            pool.shut_down();
        }
    }
    admin.close().await.expect("the administrator can leave");
    world.end().await;
}

#[tokio::test]
async fn connections_of_another_generation_are_never_handed_out() {
    // Given: an idle connection and one in use, of the first generation.
    let world = World::start().await;
    let old = world.tenant("acme").await;
    let new = next_generation(&old);
    let pool = world.pool(
        10,
        PoolLimits {
            idle_timeout: LIMIT * 10,
            ..limits()
        },
    );
    let (idle, in_use) = (pool.acquire(&old).await, pool.acquire(&old).await);
    let (idle, in_use) = (idle.expect("there is room"), in_use.expect("there is room"));
    let old_pids = [idle.backend_pid(), in_use.backend_pid()];
    drop(idle);

    // When: the second generation asks.
    let first = pool.acquire(&new).await.expect("there is room");
    assert!(!old_pids.contains(&first.backend_pid()));
    assert_eq!(
        pool.stats().idle,
        1,
        "the old one is still there, for those who began with it"
    );

    // Then: once the old generation is retired its idle connection is closed, and the other when it comes back.
    pool.retire(old.uuid, Generation(2));
    eventually("the idle one is gone", async || {
        pool.stats().open - pool.stats().administrative == 2
    })
    .await;
    drop(in_use);
    eventually("the used one is gone", async || {
        pool.stats().open - pool.stats().administrative == 1
    })
    .await;
    let pid = first.backend_pid();
    drop(first);
    let again = pool.acquire(&new).await.expect("there is room");
    assert_eq!(
        again.backend_pid(),
        pid,
        "the new generation's connection is kept"
    );
    drop(again);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_an_error_and_not_hammered() {
    // Given: a route with the password of somebody else.
    let world = World::start().await;
    let (acme, globex) = (world.tenant("acme").await, world.tenant("globex").await);
    let secret = world
        .keys
        .open(&Route::secret_owner(globex.uuid), &globex.password)
        .expect("the keys are right");
    let password = world.keys.seal(&Route::secret_owner(acme.uuid), &secret);
    let wrong = Arc::new(Route {
        password,
        ..(*acme).clone()
    });
    let pool = world.pool(20, limits());

    // When: callers ask without end for a while.
    let start = Instant::now();
    let mut refused = 0;
    while start.elapsed() < Duration::from_secs(3) {
        let answer = pool.acquire(&wrong).await;
        assert!(matches!(answer, Err(AcquireError::Refused(_))), "{answer:?}");
        refused += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    // Then: pauses of 250, 500, 1000, 2000 ms lie between the attempts.
    let log = std::fs::read_to_string(world.cluster.primary().log_path()).expect("the server keeps a log");
    let attempts = log.matches("password authentication failed").count();
    assert!(
        (2..=5).contains(&attempts),
        "{attempts} attempts for {refused} callers"
    );
    assert!(refused > 50);

    // And neither another tenant nor the next generation waits for it.
    assert!(pool.acquire(&globex).await.is_ok());
    assert!(pool.acquire(&next_generation(&acme)).await.is_ok());
    let texts = format!("{:?}", pool.acquire(&wrong).await);
    assert!(!texts.contains(&String::from_utf8(secret).expect("it is text")));
    world.end().await;
}

#[tokio::test]
async fn a_database_that_is_gone_and_a_password_of_another_tenant_are_errors() {
    let world = World::start().await;
    let (acme, globex) = (world.tenant("acme").await, world.tenant("globex").await);
    let mut admin = world.admin().await;
    run(&mut admin, format!("drop database {}", acme.uuid.physical_name())).await;
    admin.close().await.expect("the administrator can leave");
    let pool = world.pool(5, limits());
    let gone = pool.acquire(&acme).await;
    assert!(matches!(gone, Err(AcquireError::NoSuchDatabase)), "{gone:?}");
    let copied = Arc::new(Route {
        password: acme.password.clone(),
        ..(*globex).clone()
    });
    let sealed = pool.acquire(&copied).await;
    assert!(matches!(sealed, Err(AcquireError::Password(_))), "{sealed:?}");
    assert_eq!(pool.stats().open, 0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_of_few_tenants_each_reach_their_own() {
    // Given: sixteen callers, five tenants and room for three connections.
    let world = World::start().await;
    let routes = world.tenants(5).await;
    let pool = world.pool(4, limits());
    let caller = async |number: usize| {
        for round in 0..40 {
            let route = &routes[(number + round * 7) % routes.len()];
            let mut connection = pool.acquire(route).await.expect("its turn comes");
            let (tenant, database): (String, String) =
                sqlx::query_as("select current_setting('tenantry.tenant'), current_database()")
                    .fetch_one(&mut connection)
                    .await
                    .expect("it is answered");
            assert_eq!(tenant, route.uuid.to_string());
            assert_eq!(database, route.uuid.physical_name());
        }
    };
    futures::future::join_all((0..16).map(caller)).await;
    world.end().await;
}
