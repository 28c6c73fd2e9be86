//! A tenant with many waiters does not delay one with few.

mod pool_support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pool_support::{LIMIT, World, eventually};
use tenant_management::{
    Route,
    pool::{NodePool, PoolLimits},
};
use tokio::task::JoinSet;

fn patient() -> PoolLimits {
    PoolLimits {
        acquire_timeout: LIMIT * 5,
        connect_timeout: LIMIT,
        ..PoolLimits::default()
    }
}

/// Starts `count` slow queries at once; each that ends is counted.
fn slow_queries(pool: &NodePool, route: &Arc<Route>, count: usize) -> (JoinSet<()>, Arc<AtomicUsize>) {
    let ended = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (pool, route, ended) = (pool.clone(), Arc::clone(route), Arc::clone(&ended));
        tasks.spawn(async move {
            let mut connection = pool.acquire(&route).await.expect("its turn comes");
            sqlx::query("select pg_sleep(0.1)")
                .execute(&mut connection)
                .await
                .expect("it is answered");
            drop(connection);
            ended.fetch_add(1, Ordering::SeqCst);
        });
    }
    (tasks, ended)
}

async fn quick_query(pool: &NodePool, route: &Arc<Route>) {
    let mut connection = pool.acquire(route).await.expect("its turn comes");
    let one: i32 = sqlx::query_scalar("select 1")
        .fetch_one(&mut connection)
        .await
        .expect("it is answered");
    assert_eq!(one, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_slow_queries_do_not_delay_another_tenants() {
    // Given: three places, all taken by a tenant with a hundred slow queries.
    let world = World::start().await;
    let (greedy, modest) = (world.tenant("greedy").await, world.tenant("modest").await);
    let pool = world.pool(4, patient());
    let (mut slow, ended) = slow_queries(&pool, &greedy, 100);
    eventually("the slow queries run", async || ended.load(Ordering::SeqCst) > 3).await;
    assert_eq!(pool.stats().in_use, 3);
    assert!(pool.stats().waiting > 50);

    // When: another tenant asks, several times.
    let mut delays = Vec::new();
    for _ in 0..5 {
        let before = ended.load(Ordering::SeqCst);
        quick_query(&pool, &modest).await;
        delays.push(ended.load(Ordering::SeqCst) - before);
    }

    // Then: each time only a few of the slow ones came first, and not the queue of them.
    assert!(
        delays.iter().all(|delay| *delay <= 12),
        "slow queries that ended in the meantime: {delays:?}"
    );
    assert!(pool.stats().waiting > 20, "the slow ones still wait");
    slow.abort_all();
    while slow.join_next().await.is_some() {}
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_at_its_ceiling_leaves_room_for_others() {
    // Given: room for ten, and a tenant that may have four and wants a hundred.
    let world = World::start().await;
    let (greedy, modest) = (world.tenant("greedy").await, world.tenant("modest").await);
    let pool = world.pool(
        11,
        PoolLimits {
            max_connections_per_tenant: 4,
            ..patient()
        },
    );
    let (mut slow, ended) = slow_queries(&pool, &greedy, 100);
    eventually("the slow queries run", async || ended.load(Ordering::SeqCst) > 4).await;
    assert_eq!(pool.stats().in_use, 4);

    // When: another tenant asks.
    quick_query(&pool, &modest).await;

    // Then: nothing was closed for it.
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.idle, stats.closing), (4, 1, 0));
    slow.abort_all();
    while slow.join_next().await.is_some() {}
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_of_one_tenant_are_served_in_the_order_they_came() {
    // Given: one place, and it is taken.
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let pool = world.pool(
        2,
        PoolLimits {
            idle_timeout: Duration::from_secs(60),
            ..patient()
        },
    );
    let first = pool.acquire(&route).await.expect("there is room");

    // When: ten callers come one after the other.
    let (order, mut served) = tokio::sync::mpsc::unbounded_channel();
    let mut callers = JoinSet::new();
    for number in 0..10 {
        let (own_pool, route, order) = (pool.clone(), Arc::clone(&route), order.clone());
        callers.spawn(async move {
            let connection = own_pool.acquire(&route).await.expect("its turn comes");
            order.send(number).expect("the test listens");
            drop(connection);
        });
        eventually("the caller waits", async || pool.stats().waiting == number + 1).await;
    }
    drop(first);
    while callers.join_next().await.is_some() {}

    // Then.
    let mut numbers = Vec::new();
    while let Ok(number) = served.try_recv() {
        numbers.push(number);
    }
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    world.end().await;
}
