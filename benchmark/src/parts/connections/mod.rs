//! Many tenants over few connections (invariant I7), and what the change of tenant costs.

mod section;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tenant_management::{
    Route, Session, Tenancy,
    data::{Consistency, DataError},
};

pub use self::section::section;
use super::Extent;
use crate::world::{Wishes, World, create_tenant};

/// Tenants in all.
pub const TENANTS: usize = 200;
/// Callers of the comparison, each of whom stays with a tenant of their own: there are connections enough for them.
pub const STEADY: usize = 12;
/// Connections that the instance may have open on the server, those of provisioning among them.
pub const BUDGET: u32 = 20;
/// Callers at once.
pub const CALLERS: usize = 16;

/// Counts what the ceiling is about: what the instance has open on the server, other than to its catalog.
const COUNT: &str = "
    select count(*) from pg_stat_activity
    where application_name like 'tenantry/%' and application_name <> 'tenantry/catalog'";

/// What was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Data {
    /// All tenants in turn: nearly every request needs a connection that is not there.
    pub many: Vec<Block>,
    /// Each caller stays with one tenant: no request needs a connection that is not there.
    pub steady: Vec<Block>,
    /// The most connections that the server had at any look.
    pub most_connections: i64,
    /// How often was looked.
    pub looks: u64,
}

/// Requests one after the other by all callers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Block {
    /// How many.
    pub requests: u64,
    /// How many failed.
    pub errors: u64,
    /// What the first of those said.
    pub first_error: Option<String>,
    /// Requests in each second.
    pub per_second: f64,
    /// Half took no longer.
    pub p50_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// Measures.
///
/// # Errors
///
/// When a server or a tenant cannot be had.
pub async fn measure(extent: Extent) -> anyhow::Result<Data> {
    let world = World::start(false).await?;
    let tenancy = world
        .instance(&Wishes {
            max_connections: BUDGET,
            ..Wishes::new("connections")
        })
        .await?;
    let mut routes = Vec::new();
    for _ in 0..extent.of(TENANTS, TENANTS / 4) {
        routes.push(tenancy.resolve(&create_tenant(&tenancy).await?.id).await?);
    }
    eprintln!("{} tenants are there", routes.len());
    let mut data = Data::default();
    let ended = Arc::new(AtomicBool::new(false));
    let looking = tokio::spawn(look(world.admin("postgres").await?, Arc::clone(&ended)));
    let requests = extent.of(2_000, 400);
    for _ in 0..extent.of(10, 2) {
        data.many.push(block(&tenancy, &routes, CALLERS, requests).await);
        data.steady
            .push(block(&tenancy, &routes[..STEADY], STEADY, requests).await);
    }
    ended.store(true, Ordering::Relaxed);
    (data.most_connections, data.looks) = looking.await??;
    tenancy.shut_down(Duration::from_secs(5)).await;
    Ok(data)
}

/// Counts connections on the server until the end, as often as the server answers.
async fn look(mut admin: sqlx::PgConnection, ended: Arc<AtomicBool>) -> sqlx::Result<(i64, u64)> {
    let (mut most, mut looks) = (0, 0);
    while !ended.load(Ordering::Relaxed) {
        let now: i64 = sqlx::query_scalar(COUNT).fetch_one(&mut admin).await?;
        most = most.max(now);
        looks += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok((most, looks))
}

/// So many requests for one tenant after the other. When there are as many callers as tenants, each stays with one.
async fn block(tenancy: &Tenancy, routes: &[Arc<Route>], callers: usize, requests: usize) -> Block {
    let started = Instant::now();
    let callers = (0..callers).map(|caller| {
        let mine: Vec<_> = routes
            .iter()
            .cycle()
            .take(requests)
            .skip(caller)
            .step_by(callers)
            .cloned()
            .collect();
        tokio::spawn(call(tenancy.clone(), mine))
    });
    let mut times = Histogram::<u64>::new(3).expect("three digits are possible");
    let mut failures = Vec::new();
    for caller in futures::future::join_all(callers).await {
        let (mine, failed) = caller.expect("a caller does not panic");
        times.add(mine).expect("both have the same range");
        failures.extend(failed);
    }
    let milliseconds = |microseconds: u64| Duration::from_micros(microseconds).as_secs_f64() * 1_000.0;
    let requests = requests as u64;
    Block {
        requests,
        errors: failures.len() as u64,
        first_error: failures.into_iter().next(),
        per_second: (crate::stats::as_float(requests) / started.elapsed().as_secs_f64()).round(),
        p50_ms: milliseconds(times.value_at_quantile(0.5)),
        p99_ms: milliseconds(times.value_at_quantile(0.99)),
        max_ms: milliseconds(times.max()),
    }
}

/// One request for each route. Answers how long they took in microseconds, and what those that failed said.
async fn call(tenancy: Tenancy, routes: Vec<Arc<Route>>) -> (Histogram<u64>, Vec<String>) {
    let mut times = Histogram::new(3).expect("three digits are possible");
    let mut failures = Vec::new();
    for route in routes {
        let started = Instant::now();
        let outcome = ask(&tenancy, route).await;
        let microseconds = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        times.record(microseconds).expect("the histogram grows");
        failures.extend(outcome.err().map(|error| error.to_string()));
    }
    (times, failures)
}

async fn ask(tenancy: &Tenancy, route: Arc<Route>) -> anyhow::Result<i64> {
    let db = tenancy.db(route, Session::default())?;
    let answer = db.read(Consistency::Strict, |mut connection| async move {
        Ok::<_, DataError>(
            sqlx::query_scalar("select count(*) from invoices")
                .fetch_one(&mut *connection)
                .await?,
        )
    });
    Ok(answer.await?)
}
