//! The provisioning section of the report.

use super::{Data, Level};
use crate::{
    report::{Claim, Section, Table, median_of, number, show},
    stats::{paired_ratio, summarise},
};

/// Milliseconds within which a tenant is created when a spare is ready.
const SPARE_TARGET: f64 = 15.0;
/// How much longer a creation on the spot may take than the bare copy.
const RATIO_TARGET: f64 = 1.5;

/// What the report says.
pub fn section(data: &Data) -> Section {
    Section {
        title: "Provisioning",
        method: "A server that waits for the disk at each commit, with the catalog on it too. The clock runs from the call of \
                 `create_tenant` until its answer: the tenant is in service, and all live instances (one) have applied its \
                 revision. *With a spare*: one is ready for each creation. *Without*: an instance that keeps none makes role, \
                 database, grants and mark on the spot, and verifies them. *Bare*: `create database … template …` of the \
                 same template on an open connection, and nothing else. *Commit*: a transaction that inserts one row, for \
                 comparison. The arms take turns within each round, forward and backward; the stock is filled again before \
                 the next arm, and nothing is dropped as long as a level lasts. Ratios are of pairs from the same round (several at \
                 once: the quickest with the quickest, and so on). The service makes two databases at the same time on a server; \
                 the bare arm sends all at once."
            .to_owned(),
        tables: data.levels.iter().map(table).collect(),
        claims: claims(data),
    }
}

fn table(level: &Level) -> Table {
    let row = |what: &str, samples: &[f64]| {
        let summary = summarise(samples);
        let ratio = paired_ratio(samples, &level.bare_ms).filter(|_| samples.len() == level.bare_ms.len());
        vec![
            what.to_owned(),
            median_of(samples, "ms"),
            summary.map_or_else(String::new, |summary| number(summary.p95)),
            summary.map_or_else(String::new, |summary| number(summary.max)),
            ratio.map_or_else(String::new, |ratio| show(&ratio, "×")),
        ]
    };
    Table {
        caption: format!("{} at once.", level.at_once),
        columns: vec![
            "what",
            "median",
            "95th percentile (ms)",
            "longest (ms)",
            "against bare",
        ],
        rows: vec![
            row("with a spare", &level.with_spare_ms),
            row("without a spare", &level.without_spare_ms),
            row("bare copy", &level.bare_ms),
            row("commit", &level.commit_ms),
        ],
    }
}

fn claims(data: &Data) -> Vec<Claim> {
    let Some(level) = data.levels.iter().find(|level| level.at_once == 1) else {
        return vec![];
    };
    let ratio = paired_ratio(&level.without_spare_ms, &level.bare_ms);
    vec![
        Claim {
            what: "A tenant is created, with a spare ready".to_owned(),
            target: format!("median ≤ {SPARE_TARGET} ms"),
            measured: median_of(&level.with_spare_ms, "ms"),
            met: summarise(&level.with_spare_ms).is_some_and(|summary| summary.median <= SPARE_TARGET),
        },
        Claim {
            what: "A tenant is created without a spare, against the bare copy of the template".to_owned(),
            target: format!("≤ {RATIO_TARGET} ×"),
            measured: ratio.as_ref().map_or_else(String::new, |ratio| show(ratio, "×")),
            met: ratio.is_some_and(|ratio| ratio.median <= RATIO_TARGET),
        },
    ]
}
