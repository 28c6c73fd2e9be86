//! What one use of a connection leaves behind never reaches the next.

mod pool_support;

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use pool_support::{LIMIT, World, eventually};
use sqlx::{Connection, Executor, PgConnection};
use tenant_management::{
    Route,
    pool::{NodePool, PoolLimits},
};

fn limits() -> PoolLimits {
    PoolLimits {
        connect_timeout: LIMIT,
        acquire_timeout: LIMIT,
        idle_timeout: LIMIT * 10,
        ..PoolLimits::default()
    }
}

async fn pid(pool: &NodePool, route: &Arc<Route>) -> i32 {
    pool.acquire(route).await.expect("there is room").backend_pid()
}

async fn is_there(admin: &mut PgConnection, pid: i32) -> bool {
    sqlx::query_scalar("select exists (select from pg_stat_activity where pid = $1)")
        .bind(pid)
        .fetch_one(admin)
        .await
        .expect("the administrator can ask")
}

async fn is_active(admin: &mut PgConnection, pid: i32) -> bool {
    sqlx::query_scalar("select exists (select from pg_stat_activity where pid = $1 and state = 'active')")
        .bind(pid)
        .fetch_one(admin)
        .await
        .expect("the administrator can ask")
}

#[tokio::test]
async fn a_session_that_may_have_changed_is_closed() {
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(5, limits());
    for (sql, kept) in [
        ("select 1", true),
        ("values (1)", true),
        ("begin; set local statement_timeout = 1000; commit", true),
        ("set statement_timeout = 1", false),
        ("select set_config('statement_timeout', '1', false)", false),
        ("select pg_advisory_lock(1)", false),
        ("select pg_advisory_xact_lock(1)", true),
        ("prepare x as select 1", false),
        ("listen x", false),
        ("begin read write; create temp table x (y int); commit", false),
        ("select 1; reset all", false),
    ] {
        // Given: a session, and a statement that ran in it.
        let mut connection = pool.acquire(&route).await.expect("there is room");
        let before = connection.backend_pid();
        connection.execute(sqlx::raw_sql(sql)).await.expect("it runs");
        drop(connection);
        // When: the next one asks. Then.
        assert_eq!(pid(&pool, &route).await == before, kept, "{sql}");
    }
    world.end().await;
}

#[tokio::test]
async fn an_error_of_a_statement_does_not_cost_the_connection() {
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(5, limits());
    let before = pid(&pool, &route).await;
    for _ in 0..3 {
        let mut connection = pool.acquire(&route).await.expect("there is room");
        assert_eq!(connection.backend_pid(), before);
        sqlx::query("select 1 / 0")
            .execute(&mut connection)
            .await
            .expect_err("a division by zero");
        let one: i32 = sqlx::query_scalar("select 1")
            .fetch_one(&mut connection)
            .await
            .expect("it is answered");
        assert_eq!(one, 1);
        sqlx::query("select * from nowhere")
            .execute(&mut connection)
            .await
            .expect_err("no such table");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_nobody_waits_for_is_stopped_and_its_connection_closed() {
    // Given: room for one connection, and a query that takes a minute.
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(2, limits());
    let mut admin = world.admin().await;
    let mut connection = pool.acquire(&route).await.expect("there is room");
    let before = connection.backend_pid();
    let query = tokio::spawn(async move {
        sqlx::query("select pg_sleep(60)")
            .execute(&mut connection)
            .await
            .map(|_| ())
    });
    eventually("the query runs", async || is_active(&mut admin, before).await).await;

    // When: its caller goes away.
    query.abort();

    // Then: the next one gets another connection, and long before the minute is over.
    let after = pid(&pool, &route).await;
    assert_ne!(after, before);
    assert!(
        !is_there(&mut admin, before).await,
        "the place was free only when the process was gone"
    );
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.closing, stats.waiting), (0, 0, 0));
    admin.close().await.expect("the administrator can leave");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_stopped_however_early_its_caller_goes_away() {
    // A cancellation that overtakes its statement must not let it run.
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(6, limits());
    let mut admin = world.admin().await;
    for round in 0..40 {
        let mut connection = pool.acquire(&route).await.expect("there is room");
        let sleep = sqlx::query("select pg_sleep(60)").execute(&mut connection);
        let _ = tokio::time::timeout(Duration::from_micros(round * 50), sleep).await;
    }
    eventually("nothing is on its way out", async || pool.stats().closing == 0).await;
    let active: i64 = sqlx::query_scalar(
        "select count(*) from pg_stat_activity where application_name like 'tenantry/%' and state = 'active'",
    )
    .fetch_one(&mut admin)
    .await
    .expect("the administrator can ask");
    assert_eq!(active, 0);
    admin.close().await.expect("the administrator can leave");
    world.end().await;
}

#[tokio::test]
async fn an_open_transaction_or_a_result_half_read_is_never_handed_out() {
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(3, limits());

    let mut connection = pool.acquire(&route).await.expect("there is room");
    let before = connection.backend_pid();
    connection.execute("begin").await.expect("it runs");
    drop(connection);
    let after = pid(&pool, &route).await;
    assert_ne!(after, before, "a transaction was open");

    let mut connection = pool.acquire(&route).await.expect("there is room");
    assert_eq!(connection.backend_pid(), after);
    let mut rows = sqlx::query("select * from generate_series(1, 100000)").fetch(&mut connection);
    rows.next()
        .await
        .expect("there is a row")
        .expect("it is a good one");
    drop(rows);
    drop(connection);
    assert_ne!(
        pid(&pool, &route).await,
        after,
        "the rest of the result was on its way"
    );

    // But what was drained by the next statement is done with.
    let mut connection = pool.acquire(&route).await.expect("there is room");
    let before = connection.backend_pid();
    let mut rows = sqlx::query("select * from generate_series(1, 1000)").fetch(&mut connection);
    rows.next()
        .await
        .expect("there is a row")
        .expect("it is a good one");
    drop(rows);
    connection.execute("select 1").await.expect("it runs");
    drop(connection);
    assert_eq!(pid(&pool, &route).await, before);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_gives_the_place_back() {
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(2, limits());
    for _ in 0..3 {
        let (own, route) = (pool.clone(), Arc::clone(&route));
        let panicking = tokio::spawn(async move {
            let mut connection = own.acquire(&route).await.expect("there is room");
            connection.execute("begin").await.expect("it runs");
            panic!("a mistake in a handler");
        });
        assert!(panicking.await.is_err_and(|error| error.is_panic()));
    }
    pool.acquire(&route).await.expect("there is room");
    world.end().await;
}
