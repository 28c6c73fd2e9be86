//! One changed row in tables of different size, in turns: it must cost the same whatever the size.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tenant_management::routing::table::{RouteUpdate, TableUpdate};

use super::fleet::Fleet;
use crate::{memory, parts::Extent, stats::as_float};

/// Changes behind one sample.
pub const BLOCK: usize = 2_000;
/// Rows that are changed over and over when the processor's caches are to be left out of it.
pub const SAME: usize = 64;

/// The sizes that are compared.
pub const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
    /// One entry for each of [`SIZES`].
    pub sizes: Vec<OfSize>,
}

/// Changes in a table of one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OfSize {
    /// Tenants in the table.
    pub tenants: usize,
    /// Nanoseconds for each change, of rows all over the table.
    pub anywhere_ns: Vec<f64>,
    /// Nanoseconds for each change, of the same few rows.
    pub same_rows_ns: Vec<f64>,
    /// Bytes that were allocated for each change of rows all over the table, those freed again included.
    pub bytes_allocated: f64,
}

/// Measures.
pub fn measure(extent: Extent) -> Data {
    let rounds = extent.of(60, 6);
    eprintln!("changes: {rounds} rounds");
    let tables: Vec<_> = SIZES
        .map(Fleet::of)
        .into_iter()
        .map(|fleet| (fleet.table(), fleet))
        .collect();
    let mut sizes: Vec<OfSize> = SIZES
        .map(|tenants| OfSize {
            tenants,
            ..OfSize::default()
        })
        .into_iter()
        .collect();
    let mut revision = 1;
    for round in 0..rounds {
        for ((table, fleet), measured) in tables.iter().zip(&mut sizes) {
            revision += 1;
            let anywhere = rows(fleet, fleet.len(), round, revision);
            let allocated = memory::bytes_ever_allocated();
            measured
                .anywhere_ns
                .push(block(anywhere, |update| table.apply(update)));
            measured.bytes_allocated =
                as_float((memory::bytes_ever_allocated() - allocated) as u64) / as_float(BLOCK as u64);
            revision += 1;
            let same = rows(fleet, SAME, round, revision);
            measured
                .same_rows_ns
                .push(block(same, |update| table.apply(update)));
        }
    }
    Data { sizes }
}

/// Rows out of the first `among`, far apart.
fn rows(fleet: &Fleet, among: usize, round: usize, revision: i64) -> Vec<TableUpdate> {
    let row =
        |number: usize| -> RouteUpdate { fleet.row((round * BLOCK + number) * 7_919 % among, revision) };
    (0..BLOCK)
        .map(|number| TableUpdate {
            routes: vec![row(number)],
            ..TableUpdate::default()
        })
        .collect()
}

/// Nanoseconds for each.
fn block(updates: Vec<TableUpdate>, apply: impl Fn(TableUpdate)) -> f64 {
    let number = as_float(updates.len() as u64);
    let started = Instant::now();
    updates.into_iter().for_each(apply);
    let nanoseconds = as_float(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    (nanoseconds / number).round()
}
