//! Time limits, callers that leave, servers that do not answer: no place gets lost, and none is given out twice.

mod pool_support;

use std::{
    process::Command,
    sync::{Arc, Barrier},
    time::{Duration, Instant},
};

use pool_support::{LIMIT, World, backends, eventually};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use sqlx::{Connection, Executor};
use tenant_management::pool::{AcquireError, NodeSettings, PoolLimits};
use tokio::task::JoinSet;

fn limits() -> PoolLimits {
    PoolLimits {
        connect_timeout: LIMIT,
        acquire_timeout: LIMIT,
        idle_timeout: LIMIT * 10,
        ..PoolLimits::default()
    }
}

fn signal(pid: i32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .expect("there is a kill command");
    assert!(status.success());
}

#[tokio::test]
async fn waiting_ends_with_an_error_and_leaves_nothing_behind() {
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(
        2,
        PoolLimits {
            acquire_timeout: Duration::from_millis(300),
            ..limits()
        },
    );
    // The first may take longer than the limit on a slow machine; it opens the connection nevertheless.
    eventually("the connection is open", async || {
        pool.acquire(&route).await.is_ok()
    })
    .await;
    let taken = pool.acquire(&route).await.expect("it is idle");
    let start = Instant::now();
    let refused = pool.acquire(&route).await;
    assert!(
        matches!(refused, Err(AcquireError::Timeout { .. })),
        "{refused:?}"
    );
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(pool.stats().waiting, 0);
    drop(taken);
    pool.acquire(&route).await.expect("the connection is free again");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_taken_until_the_servers_process_is_gone() {
    // Given: room for one connection, which one tenant has idle, and whose process on the server is stopped.
    let world = World::start().await;
    let (acme, globex) = (world.tenant("acme").await, world.tenant("globex").await);
    let pool = world.pool(2, limits());
    let connection = pool.acquire(&acme).await.expect("there is room");
    let pid = connection.backend_pid();
    drop(connection);
    signal(pid, "-STOP");

    // When: another tenant needs the place.
    let waiting = tokio::spawn({
        let (pool, globex) = (pool.clone(), Arc::clone(&globex));
        async move {
            pool.acquire(&globex)
                .await
                .map(|connection| connection.backend_pid())
        }
    });
    eventually("the idle connection is closed", async || {
        pool.stats().closing == 1
    })
    .await;

    // Then: it waits as long as the process is there, however often the pool asks, and no longer.
    let mut admin = world.admin().await;
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        assert!(
            backends(&mut admin).await <= 2,
            "the pool's own and the stopped one"
        );
        assert!(!waiting.is_finished());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    signal(pid, "-CONT");
    assert!(waiting.await.expect("no panic").is_ok());
    admin.close().await.expect("the administrator can leave");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_freed_in_time_when_the_administrator_cannot_ask() {
    // Given: an administrator with a wrong password, and room for one connection, which one tenant has idle.
    let world = World::start().await;
    let (acme, globex) = (world.tenant("acme").await, world.tenant("globex").await);
    let settings = world.settings(2, limits());
    let pool = world.pool_from(NodeSettings {
        admin: settings.admin.clone().password("wrong"),
        ..settings
    });
    drop(pool.acquire(&acme).await.expect("there is room"));
    // When.
    let start = Instant::now();
    pool.acquire(&globex).await.expect("its turn comes");
    // Then: after the time that a process may take to end, and not before.
    assert!(start.elapsed() >= Duration::from_secs(4), "{:?}", start.elapsed());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_administrator_connects_again_after_its_connection_was_killed() {
    let world = World::start().await;
    let (acme, globex) = (world.tenant("acme").await, world.tenant("globex").await);
    let pool = world.pool(2, limits());
    let mut admin = world.admin().await;
    for round in 0..4 {
        let route = if round % 2 == 0 { &acme } else { &globex };
        let start = Instant::now();
        drop(pool.acquire(route).await.expect("its turn comes"));
        assert!(
            round < 2 || start.elapsed() < Duration::from_secs(4),
            "{:?}",
            start.elapsed()
        );
        admin
            .execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tenantry pool'")
            .await
            .expect("the administrator can do it");
    }
    admin.close().await.expect("the administrator can leave");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_costs_its_time_limit_and_no_place() {
    // Given: a way to the server that swallows everything.
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let proxy = world.cluster.primary().proxy().await.expect("a proxy starts");
    let limits = PoolLimits {
        connect_timeout: Duration::from_millis(300),
        acquire_timeout: LIMIT,
        ..limits()
    };
    let settings = world.settings(3, limits);
    let admin = settings.admin.clone().host("127.0.0.1").port(proxy.port());
    let pool = world.pool_from(NodeSettings { admin, ..settings });
    proxy.black_hole().await;
    // When.
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let (pool, route) = (pool.clone(), Arc::clone(&route));
        callers.spawn(async move { pool.acquire(&route).await });
    }
    while let Some(answer) = callers.join_next().await {
        let answer = answer.expect("no panic");
        assert!(
            matches!(answer, Err(AcquireError::ConnectTimeout { .. })),
            "{answer:?}"
        );
    }
    assert!(start.elapsed() < LIMIT);
    // Then: it can be reached again as soon as it answers.
    proxy.restore().await;
    eventually("the tenant is reached", async || {
        pool.acquire(&route).await.is_ok()
    })
    .await;
    eventually("no place is lost", async || pool.stats().closing == 0).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_opens_a_few_connections_at_a_time() {
    // Given: a way to the server that swallows everything, so that no opening ends.
    let world = World::start().await;
    let routes = world.tenants(4).await;
    let proxy = world.cluster.primary().proxy().await.expect("a proxy starts");
    let settings = world.settings(60, limits());
    let admin = settings.admin.clone().host("127.0.0.1").port(proxy.port());
    let pool = world.pool_from(NodeSettings { admin, ..settings });
    proxy.black_hole().await;
    // When: forty callers, for all of whom there is room.
    let mut callers = JoinSet::new();
    for number in 0..40 {
        let (pool, route) = (pool.clone(), Arc::clone(&routes[number % routes.len()]));
        callers.spawn(async move { pool.acquire(&route).await.map(drop) });
    }
    // Then.
    eventually("eight are being opened", async || proxy.connections() == 8).await;
    assert_eq!(pool.stats().opening, 40);
    let watched = Instant::now();
    while watched.elapsed() < Duration::from_millis(200) {
        assert_eq!(proxy.connections(), 8);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    callers.shutdown().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_callers_that_leave_at_any_moment_leaks_nothing() {
    // Given: three places and five tenants.
    let world = World::start().await;
    let routes = world.tenants(5).await;
    let pool = world.pool(4, limits());
    let mut random = StdRng::seed_from_u64(11);

    // When: thousands of callers ask, and most of them leave while they wait, connect or have a connection.
    let mut callers = JoinSet::new();
    for _ in 0..4000 {
        let (pool, route) = (
            pool.clone(),
            Arc::clone(&routes[random.random_range(0..routes.len())]),
        );
        let (start, patience) = (random.random_range(0..2_000_000), random.random_range(0..30_000));
        let query = random.random_bool(0.3);
        callers.spawn(async move {
            tokio::time::sleep(Duration::from_micros(start)).await;
            let call = async {
                let mut connection = pool.acquire(&route).await.expect("only leaving ends the wait");
                if query {
                    connection
                        .execute("select pg_sleep(0.001)")
                        .await
                        .expect("it is answered");
                }
            };
            let _ = tokio::time::timeout(Duration::from_micros(patience), call).await;
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.expect("no panic");
    }

    // Then: nobody is left waiting, no place is left taken, and everybody can be served.
    eventually("all has come to rest", async || {
        let stats = pool.stats();
        (stats.in_use, stats.opening, stats.closing, stats.waiting) == (0, 0, 0, 0)
    })
    .await;
    for route in &routes {
        let taken = [
            pool.acquire(route).await,
            pool.acquire(route).await,
            pool.acquire(route).await,
        ];
        assert!(taken.iter().all(Result::is_ok));
    }
    pool.close_idle();
    let mut admin = world.admin().await;
    eventually("only the pool's own is left", async || {
        backends(&mut admin).await <= 1
    })
    .await;
    admin.close().await.expect("the administrator can leave");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_in_the_moment_it_is_served_takes_nothing_with_it() {
    // Given: one place.
    let world = World::start().await;
    let (acme, globex) = (world.tenant("acme").await, world.tenant("globex").await);
    let pool = world.pool(2, limits());
    for _ in 0..20_000 {
        // When: somebody waits for it, and leaves in the moment it comes back.
        let connection = pool.acquire(&acme).await.expect("its turn comes");
        let mut waiting = Box::pin(pool.acquire(&acme));
        assert!(futures::poll!(&mut waiting).is_pending());
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                drop(connection);
            });
            start.wait();
            drop(waiting);
        });
    }
    // Then.
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.waiting, stats.idle), (0, 0, 1));
    // And a thread that is not the runtime's can bring back what another tenant waits for.
    let connection = pool.acquire(&acme).await.expect("its turn comes");
    let mut waiting = Box::pin(pool.acquire(&globex));
    assert!(futures::poll!(&mut waiting).is_pending());
    std::thread::spawn(move || drop(connection))
        .join()
        .expect("no panic");
    waiting.await.expect("its turn comes");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_ends_refuses_callers_and_leaves_no_connection() {
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(2, limits());
    let taken = pool.acquire(&route).await.expect("there is room");
    let waiting = tokio::spawn({
        let (pool, route) = (pool.clone(), Arc::clone(&route));
        async move { pool.acquire(&route).await.map(|_| ()) }
    });
    eventually("a caller waits", async || pool.stats().waiting == 1).await;
    assert!(world.tasks.shut_down(LIMIT).await);
    let refused = waiting.await.expect("no panic");
    assert!(matches!(refused, Err(AcquireError::Closed)), "{refused:?}");
    assert!(matches!(pool.acquire(&route).await, Err(AcquireError::Closed)));
    drop(taken);
    let mut admin = world.admin().await;
    eventually("nothing is left", async || backends(&mut admin).await == 0).await;
    admin.close().await.expect("the administrator can leave");
    world.end().await;
}
