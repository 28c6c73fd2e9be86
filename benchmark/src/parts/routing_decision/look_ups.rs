//! Look-ups by name: of a few names over and over, and of all names in an order of chance, alone and while a thread replaces
//! rows as fast as it can. In turns.

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

use serde::{Deserialize, Serialize};
use tenant_management::{
    TenantId,
    routing::table::{RoutingTable, TableUpdate},
};

use super::{TENANTS, fleet::Fleet};
use crate::{memory, parts::Extent, stats::as_float};

/// Names that are looked up over and over.
pub const HOT: usize = 64;
/// Look-ups behind one sample.
pub const BLOCK: usize = 20_000;

/// Nanoseconds for each look-up, one sample for each block.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Data {
    /// Few names, nobody writes.
    pub hot_ns: Vec<f64>,
    /// All names, nobody writes.
    pub random_ns: Vec<f64>,
    /// Few names, and a writer.
    pub hot_with_writer_ns: Vec<f64>,
    /// All names, and a writer.
    pub random_with_writer_ns: Vec<f64>,
    /// Changes that the writer made in each second.
    pub changes_per_second: Vec<f64>,
    /// Look-ups that were watched for allocations.
    pub watched_look_ups: u64,
    /// Bytes that they allocated.
    pub bytes_allocated: u64,
}

/// Measures.
pub fn measure(extent: Extent) -> Data {
    let rounds = extent.of(100, 10);
    eprintln!("look-ups: {rounds} rounds");
    let fleet = Fleet::of(TENANTS);
    let table = fleet.table();
    let random = fleet.shuffled_names();
    let hot: Vec<TenantId> = random
        .iter()
        .cycle()
        .take(HOT)
        .copied()
        .cycle()
        .take(BLOCK)
        .collect();
    let mut data = Data::default();
    watch_allocations(&table, &[&hot, &random], &mut data);
    let writer = Writer::default();
    std::thread::scope(|scope| {
        let handle = scope.spawn(|| writer.run(&table, &fleet));
        let mut blocks = random.chunks_exact(BLOCK).cycle();
        let mut next = || blocks.next().expect("it begins again");
        for _ in 0..rounds {
            data.hot_ns.push(block(&table, &hot));
            data.random_ns.push(block(&table, next()));
            let changes = writer.changes.load(Ordering::Relaxed);
            writer.resume(handle.thread());
            let started = Instant::now();
            data.hot_with_writer_ns.push(block(&table, &hot));
            data.random_with_writer_ns.push(block(&table, next()));
            let made = writer.changes.load(Ordering::Relaxed) - changes;
            data.changes_per_second
                .push((as_float(made) / started.elapsed().as_secs_f64()).round());
            writer.pause();
        }
        writer.ended.store(true, Ordering::Relaxed);
        handle.thread().unpark();
    });
    data
}

/// Nanoseconds for each look-up.
fn block(table: &RoutingTable, names: &[TenantId]) -> f64 {
    let started = Instant::now();
    for name in names {
        black_box(table.get(black_box(name)));
    }
    let nanoseconds = as_float(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    (nanoseconds / as_float(names.len() as u64) * 10.0).round() / 10.0
}

fn watch_allocations(table: &RoutingTable, sets: &[&[TenantId]], data: &mut Data) {
    for names in sets {
        let before = memory::bytes_ever_allocated();
        for name in *names {
            black_box(table.get(black_box(name))).expect("the table knows all names");
        }
        data.bytes_allocated += (memory::bytes_ever_allocated() - before) as u64;
        data.watched_look_ups += names.len() as u64;
    }
}

/// A thread that replaces rows, one in each change, whenever it is not paused.
#[derive(Debug, Default)]
struct Writer {
    writing: AtomicBool,
    ended: AtomicBool,
    changes: AtomicU64,
}

impl Writer {
    fn run(&self, table: &RoutingTable, fleet: &Fleet) {
        let mut revision = 1;
        // A stride that has no divisor in common with the number of tenants visits them all, near ones far apart in time.
        let order = (0..fleet.len()).cycle().step_by(7_919);
        for index in order {
            while !self.writing.load(Ordering::Relaxed) {
                if self.ended.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::park();
            }
            revision += 1;
            table.apply(TableUpdate {
                routes: vec![fleet.row(index, revision)],
                ..TableUpdate::default()
            });
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns when the first change has been made.
    fn resume(&self, thread: &std::thread::Thread) {
        let before = self.changes.load(Ordering::Relaxed);
        self.writing.store(true, Ordering::Relaxed);
        thread.unpark();
        while self.changes.load(Ordering::Relaxed) == before {
            std::hint::spin_loop();
        }
    }

    /// Returns when the last change has been made.
    fn pause(&self) {
        self.writing.store(false, Ordering::Relaxed);
        let mut seen = self.changes.load(Ordering::Relaxed);
        loop {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let now = self.changes.load(Ordering::Relaxed);
            if now == seen {
                return;
            }
            seen = now;
        }
    }
}
