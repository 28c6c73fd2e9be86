//! I7: open connections to a server never exceed the budget, whatever the number of tenants, and a tenant that is idle
//! holds none.

mod pool_support;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use pool_support::{LIMIT, World, backends, eventually};
use sqlx::Connection;
use tenant_management::pool::PoolLimits;
use tokio_util::sync::CancellationToken;

const TENANTS: usize = 200;
const BUDGET: u32 = 20;
/// First fewer callers than places, then more, so that each place is always either in use or changing hands.
const CALLERS: [usize; 2] = [16, 40];

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_tenants_fit_into_twenty_connections() {
    // Given: many more tenants than connections, and an observer who asks the server as fast as it can.
    let world = World::start().await;
    let routes = world.tenants(TENANTS).await;
    let limits = PoolLimits {
        idle_timeout: Duration::from_secs(1),
        acquire_timeout: LIMIT * 6,
        connect_timeout: LIMIT * 3,
        ..PoolLimits::default()
    };
    let pool = world.pool(BUDGET, limits);
    let stop = CancellationToken::new();
    let mut observer = world.admin().await;
    let observing = tokio::spawn({
        let stop = stop.clone();
        async move {
            let (mut most, mut samples) = (0, 0_u64);
            while !stop.is_cancelled() {
                most = most.max(backends(&mut observer).await);
                samples += 1;
            }
            (most, samples, observer)
        }
    });

    // When: callers go round all tenants.
    let next = AtomicUsize::new(0);
    let caller = async |until: Instant, at_least: usize| {
        while Instant::now() < until || next.load(Ordering::Relaxed) < at_least {
            let route = &routes[next.fetch_add(1, Ordering::Relaxed) % TENANTS];
            let mut connection = pool.acquire(route).await.expect("every tenant gets its turn");
            let tenant: String = sqlx::query_scalar("select current_setting('tenantry.tenant')")
                .fetch_one(&mut connection)
                .await
                .expect("a query is answered");
            assert_eq!(tenant, route.uuid.to_string());
        }
    };
    for (phase, callers) in CALLERS.into_iter().enumerate() {
        let until = Instant::now() + Duration::from_secs(4);
        let at_least = (phase + 1) * TENANTS / CALLERS.len();
        futures::future::join_all((0..callers).map(|_| caller(until, at_least))).await;
    }

    // Then: never more than the budget, and in the end nothing.
    let calls = next.load(Ordering::Relaxed);
    assert!(calls >= TENANTS);
    stop.cancel();
    let (most, samples, mut observer) = observing.await.expect("the observer does not panic");
    println!("{calls} calls, {samples} samples, at most {most} connections");
    assert!(samples > 100, "{samples} samples say little");
    assert!(most <= i64::from(BUDGET), "{most} connections were open");
    assert!(
        most > i64::from(BUDGET) / 2,
        "at most {most} connections: the test did not come near the budget"
    );
    eventually("idle connections are closed", async || {
        backends(&mut observer).await == 0
    })
    .await;
    eventually("the pool has seen it", async || pool.stats().open == 0).await;
    observer.close().await.expect("the observer can leave");
    world.end().await;
}
