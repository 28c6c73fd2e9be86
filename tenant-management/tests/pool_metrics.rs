//! The pool's metrics have the names that are documented, say what happened, and never name a tenant.

mod pool_support;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, atomic::AtomicU64, atomic::Ordering},
};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use pool_support::{LIMIT, World, eventually};
use sqlx::Executor;
use tenant_management::pool::PoolLimits;

/// Keeps all values in memory, under names such as `x{node="main"}`.
#[derive(Clone, Default)]
struct Memory {
    values: Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>,
}

struct Samples(Arc<AtomicU64>);

impl HistogramFn for Samples {
    fn record(&self, _: f64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Memory {
    fn value(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::clone(
            self.values
                .lock()
                .expect("no test panics with it")
                .entry(name)
                .or_default(),
        )
    }

    fn read(&self, name: &str) -> Option<u64> {
        self.values
            .lock()
            .expect("no test panics with it")
            .get(name)
            .map(|value| value.load(Ordering::Relaxed))
    }
}

impl Recorder for Memory {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.value(key))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.value(key))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Samples(self.value(key))))
    }
}

#[tokio::test]
async fn what_happens_in_the_pool_is_counted() {
    let memory = Memory::default();
    metrics::set_global_recorder(memory.clone()).expect("no other test is in this binary");
    let world = World::start().await;
    let [acme, globex] = [world.tenant("acme").await, world.tenant("globex").await];
    let limits = PoolLimits {
        connect_timeout: LIMIT,
        acquire_timeout: LIMIT,
        ..PoolLimits::default()
    };
    let pool = world.pool(2, limits);

    // Given: one connection that makes room, and one that is tainted.
    drop(pool.acquire(&acme).await.expect("its turn comes"));
    let mut connection = pool.acquire(&globex).await.expect("its turn comes");
    let gauge = |state: &str| memory.read(&format!("tenantry_pool_connections{{node=main,state={state}}}"));
    assert_eq!(gauge("in_use").map(f64::from_bits), Some(1.0));
    connection
        .execute("set statement_timeout = 1")
        .await
        .expect("it runs");
    drop(connection);
    eventually("all is closed", async || {
        gauge("closing").map(f64::from_bits) == Some(0.0)
    })
    .await;

    // Then.
    for (name, value) in [
        ("tenantry_pool_opened_total{node=main}", 2),
        ("tenantry_pool_closed_total{node=main,reason=room}", 1),
        ("tenantry_pool_closed_total{node=main,reason=tainted}", 1),
        ("tenantry_pool_acquire_seconds{node=main}", 2),
        ("tenantry_pool_timeouts_total{node=main}", 0),
        ("tenantry_pool_wrong_database_total{node=main}", 0),
    ] {
        assert_eq!(memory.read(name), Some(value), "{name}");
    }
    assert_eq!(
        memory
            .read("tenantry_pool_waiting{node=main}")
            .map(f64::from_bits),
        Some(0.0)
    );
    let names: Vec<String> = memory
        .values
        .lock()
        .expect("no test panics with it")
        .keys()
        .cloned()
        .collect();
    assert!(
        names
            .iter()
            .all(|name| !name.contains("acme") && !name.contains(&acme.uuid.physical_name())),
        "{names:?}"
    );
    world.end().await;
}
