//! All replicas gone under load: writes go on, reads beyond the budget are refused, `eventual` ones first.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::json;

use crate::{
    client::{Carry, Client},
    world::World,
};

/// Callers that read without a pause, of each level.
const READERS: usize = 16;
/// Writes that are measured each time.
const WRITES: usize = 60;

#[derive(Default)]
struct Tally {
    served: AtomicU64,
    refused: AtomicU64,
}

async fn read_on(mut client: Client, path: &'static str, tally: Arc<Tally>, ending: Arc<AtomicBool>) {
    while !ending.load(Ordering::Relaxed) {
        let answer = client.get(path).await;
        match answer.status.as_u16() {
            200 => tally.served.fetch_add(1, Ordering::Relaxed),
            503 => {
                answer.problem(503, "overloaded");
                tokio::time::sleep(Duration::from_millis(20)).await;
                tally.refused.fetch_add(1, Ordering::Relaxed)
            }
            _ => panic!("{answer:?}"),
        };
    }
}

/// The median time of a write, each of which succeeds.
async fn median_write(client: &mut Client) -> Duration {
    let new = json!({ "customer": "Initech", "amount_cents": 1, "currency": "EUR" });
    let mut times = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let started = Instant::now();
        client
            .send(Method::POST, "/invoices", Some(&new))
            .await
            .expect(201);
        times.push(started.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
async fn when_all_replicas_are_gone_writes_go_on_and_reads_beyond_the_budget_are_refused() {
    let world = World::start().await;
    let world = world
        .set("reads.fallback_limit", "4")
        .set("reads.fallback_wait", "50ms")
        // What is measured is not how long a machine with too much to do takes to open a connection.
        .set("pools.connect_timeout", "30s")
        .set("pools.acquire_timeout", "30s");
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    instance.replicas_serve().await;
    // Until then reads of the new tenant fall back.
    world.cluster.wait_caught_up().await.unwrap();
    let ending = Arc::new(AtomicBool::new(false));
    let (recent, eventual) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
    let mut readers = Vec::new();
    for number in 0..2 * READERS {
        let (path, tally) = if number % 2 == 0 {
            ("/profile", &recent)
        } else {
            ("/audit-log", &eventual)
        };
        let client = instance.client(&key, Carry::Nothing);
        readers.push(tokio::spawn(read_on(
            client,
            path,
            Arc::clone(tally),
            Arc::clone(&ending),
        )));
    }
    let mut writer = instance.client(&key, Carry::Nothing);
    median_write(&mut writer).await;
    let counts = |tally: &Tally| {
        (
            tally.served.load(Ordering::Relaxed),
            tally.refused.load(Ordering::Relaxed),
        )
    };
    let warm = (counts(&recent).1, counts(&eventual).1);
    let before = median_write(&mut writer).await;
    assert_eq!(
        (counts(&recent).1, counts(&eventual).1),
        warm,
        "replicas carry the reads"
    );

    for replica in world.cluster.replicas() {
        replica.kill().await.unwrap();
    }
    instance.eligible(&["replica-1", "replica-2"], false).await;
    let (recent_before, eventual_before) = (counts(&recent), counts(&eventual));
    let after = median_write(&mut writer).await;
    ending.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    let share = |now: (u64, u64), before: (u64, u64)| {
        let (served, refused) = (now.0 - before.0, now.1 - before.1);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let share = refused as f64 / (served + refused) as f64;
        (share, served, refused)
    };
    let (recent, eventual) = (
        share(counts(&recent), recent_before),
        share(counts(&eventual), eventual_before),
    );
    println!(
        "a write took {before:?} before and {after:?} after; refused: recent {recent:?}, eventual {eventual:?}"
    );
    assert!(
        after <= before * 2,
        "a write took {before:?} before and {after:?} after"
    );
    assert!(
        eventual.2 > 0 && eventual.0 > recent.0,
        "recent {recent:?}, eventual {eventual:?}"
    );
    assert!(recent.1 > 0, "recent reads are served");
    let refused = instance
        .metric("tenantry_fallback_refused_total", &["consistency=\"eventual\""])
        .await;
    assert!(refused > 0.0);
}
