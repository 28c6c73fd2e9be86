//! The routing table's section of the report.

use super::{Data, TENANTS, changes, look_ups, memory};
use crate::{
    report::{Claim, Section, Table, count, median_of, number, show},
    stats::{paired_ratio, summarise},
};

/// Nanoseconds that a look-up of one of a few names may take.
const HOT_TARGET: f64 = 100.0;
/// Nanoseconds that a look-up of any name may take.
const RANDOM_TARGET: f64 = 1_500.0;
/// How much more a change may cost among 100 times as many tenants.
const GROWTH_TARGET: f64 = 2.0;
/// Bytes that a tenant may weigh.
const WEIGHT_TARGET: f64 = 1_024.0;

/// What the report says.
pub fn section(data: &Data) -> Section {
    Section {
        title: "Routing table",
        method: method(),
        tables: vec![
            look_ups_table(&data.look_ups),
            changes_table(&data.changes),
            memory_table(&data.memory),
        ],
        claims: claims(data),
    }
}

fn method() -> String {
    format!(
        "The service's own `RoutingTable` with {} tenants, in this process and without a server. A sample is the mean over {} \
         look-ups (changes: {}), so that reading the clock does not count. Look-ups read a few names ({}) over and over, or \
         all names in an order of chance; with a writer, a second thread meanwhile changes one row after the other as fast as \
         it can. The four kinds are measured in turns. Changes are measured in turns over tables of three sizes; the rows are \
         made before the clock runs, and allocations are counted on the way, which costs some nanoseconds each. Memory is the \
         slope between {} and {} tenants, each filled in a new process that uses the service's allocator.",
        count(TENANTS as u64),
        count(look_ups::BLOCK as u64),
        count(changes::BLOCK as u64),
        look_ups::HOT,
        count(memory::SIZES[0] as u64),
        count(memory::SIZES[1] as u64),
    )
}

fn look_ups_table(data: &look_ups::Data) -> Table {
    let row = |what: &str, samples: &[f64]| {
        let p95 = summarise(samples).map_or_else(String::new, |summary| number(summary.p95));
        vec![what.to_owned(), median_of(samples, "ns"), p95]
    };
    Table {
        caption: format!(
            "Time for each look-up. The writer made {} changes a second. {} look-ups allocated {} bytes.",
            median_of(&data.changes_per_second, ""),
            count(data.watched_look_ups),
            count(data.bytes_allocated),
        ),
        columns: vec!["names", "median", "95th percentile of blocks (ns)"],
        rows: vec![
            row("a few", &data.hot_ns),
            row("all", &data.random_ns),
            row("a few, with a writer", &data.hot_with_writer_ns),
            row("all, with a writer", &data.random_with_writer_ns),
        ],
    }
}

fn changes_table(data: &changes::Data) -> Table {
    let smallest = &data.sizes[0];
    let rows = data.sizes.iter().map(|size| {
        let growth = |samples: &[f64], base: &[f64]| {
            paired_ratio(samples, base).map_or_else(String::new, |r| show(&r, "×"))
        };
        vec![
            count(size.tenants as u64),
            median_of(&size.anywhere_ns, "ns"),
            growth(&size.anywhere_ns, &smallest.anywhere_ns),
            median_of(&size.same_rows_ns, "ns"),
            growth(&size.same_rows_ns, &smallest.same_rows_ns),
            number(size.bytes_allocated),
        ]
    });
    Table {
        caption: format!(
            "Time for a change of one row: of rows all over the table, and of the same {} rows, which stay in the processor's \
             caches. Growth is against the smallest table, pair by pair.",
            changes::SAME
        ),
        columns: vec![
            "tenants",
            "anywhere",
            "growth",
            "same rows",
            "growth",
            "bytes allocated (anywhere)",
        ],
        rows: rows.collect(),
    }
}

fn memory_table(data: &memory::Data) -> Table {
    let rows = data.shapes.iter().map(|of| {
        let what = match of.shape {
            memory::Shape::Plain => "a name, from one full read",
            memory::Shape::WithDomainAndKey => "a domain and an API key, from one full read",
            memory::Shape::OneByOne => "a domain and an API key, added one by one",
        };
        vec![
            what.to_owned(),
            median_of(&of.heap_bytes, "B"),
            median_of(&of.resident_bytes, "B"),
        ]
    });
    Table {
        caption: "Memory for each tenant that nobody uses.".to_owned(),
        columns: vec!["what a tenant has", "heap", "resident"],
        rows: rows.collect(),
    }
}

fn claims(data: &Data) -> Vec<Claim> {
    let below = |what: &str, samples: &[f64], target: f64, unit: &str| Claim {
        what: what.to_owned(),
        target: format!("< {} {unit}", count(target as u64)),
        measured: median_of(samples, unit),
        met: summarise(samples).is_some_and(|summary| summary.high < target),
    };
    let look_ups = &data.look_ups;
    let grows = |what: &str, samples: fn(&changes::OfSize) -> &[f64]| {
        let sizes = &data.changes.sizes;
        let growth = sizes
            .last()
            .and_then(|largest| paired_ratio(samples(largest), samples(&sizes[0])));
        Claim {
            what: format!("Cost of a change among 100,000 tenants against 1,000, {what}"),
            target: format!("< {GROWTH_TARGET} ×"),
            measured: growth
                .as_ref()
                .map_or_else(String::new, |growth| show(growth, "×")),
            met: growth.is_some_and(|growth| growth.high < GROWTH_TARGET),
        }
    };
    let mut claims = vec![
        below(
            "Look-up of one of 64 names while rows change",
            &look_ups.hot_with_writer_ns,
            HOT_TARGET,
            "ns",
        ),
        below(
            "Look-up of any of 100,000 names while rows change",
            &look_ups.random_with_writer_ns,
            RANDOM_TARGET,
            "ns",
        ),
        Claim {
            what: "Allocations of a look-up".to_owned(),
            target: "0 bytes".to_owned(),
            measured: format!(
                "{} bytes in {}",
                look_ups.bytes_allocated,
                count(look_ups.watched_look_ups)
            ),
            met: look_ups.bytes_allocated == 0,
        },
        grows("of the same few rows", |size| &size.same_rows_ns),
        grows("of rows all over the table", |size| &size.anywhere_ns),
    ];
    claims.extend(
        data.memory
            .shapes
            .iter()
            .filter(|of| of.shape != memory::Shape::WithDomainAndKey)
            .map(|of| {
                let what = match of.shape {
                    memory::Shape::Plain => "Resident memory of an idle tenant",
                    memory::Shape::WithDomainAndKey | memory::Shape::OneByOne => {
                        "The same with a domain and an API key, added one by one"
                    }
                };
                below(what, &of.resident_bytes, WEIGHT_TARGET, "B")
            }),
    );
    claims
}
