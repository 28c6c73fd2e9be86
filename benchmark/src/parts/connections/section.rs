//! The connections' section of the report.

use super::{BUDGET, Block, CALLERS, Data, STEADY, TENANTS};
use crate::report::{Claim, Section, Table, count, median_of};

/// What the report says.
pub fn section(data: &Data) -> Section {
    Section {
        title: "Many tenants over few connections",
        method: format!(
            "{TENANTS} tenants on one server (which does not wait for the disk), an instance that may have {BUDGET} connections \
             open there (provisioning keeps some of them for itself), {CALLERS} callers that ask for one tenant after the \
             other, one statement each. With all tenants in turn nearly every request has to close another tenant's connection \
             and open its own, with a password handshake and the proof that it leads to the right database; the comparison has \
             {STEADY} callers who each stay with a tenant of their own, whose connection is found open. Blocks of either \
             alternate; a sample is a block's percentile. Meanwhile another connection counts those of the instance in \
             `pg_stat_activity` every few milliseconds."
        ),
        tables: vec![Table {
            caption: "Requests as the caller sees them.".to_owned(),
            columns: vec![
                "tenants",
                "requests",
                "errors",
                "median",
                "99th percentile",
                "longest (ms)",
                "per second",
            ],
            rows: vec![
                row(&format!("{TENANTS}, {CALLERS} callers in turn"), &data.many),
                row(&format!("{STEADY}, a caller each"), &data.steady),
            ],
        }],
        claims: claims(data),
    }
}

fn row(tenants: &str, blocks: &[Block]) -> Vec<String> {
    let all = |value: fn(&Block) -> f64| blocks.iter().map(value).collect::<Vec<_>>();
    vec![
        tenants.to_owned(),
        count(blocks.iter().map(|block| block.requests).sum()),
        errors(blocks),
        median_of(&all(|block| block.p50_ms), "ms"),
        median_of(&all(|block| block.p99_ms), "ms"),
        format!("{:.1}", all(|block| block.max_ms).into_iter().fold(0.0, f64::max)),
        median_of(&all(|block| block.per_second), ""),
    ]
}

fn errors(blocks: &[Block]) -> String {
    let errors = count(blocks.iter().map(|block| block.errors).sum());
    let first = blocks.iter().find_map(|block| block.first_error.as_deref());
    first.map_or_else(|| errors.clone(), |first| format!("{errors} (first: {first})"))
}

fn claims(data: &Data) -> Vec<Claim> {
    let blocks = || data.many.iter().chain(&data.steady);
    let (failed, requests) = blocks().fold((0, 0), |(failed, requests), block| {
        (failed + block.errors, requests + block.requests)
    });
    vec![
        Claim {
            what: format!("Connections to a server with {TENANTS} tenants in use"),
            target: format!("≤ {BUDGET}"),
            measured: format!("at most {} in {} looks", data.most_connections, count(data.looks)),
            met: data.most_connections <= i64::from(BUDGET),
        },
        Claim {
            what: "Requests that failed meanwhile".to_owned(),
            target: "0".to_owned(),
            measured: format!("{} of {}", count(failed), count(requests)),
            met: failed == 0,
        },
    ]
}
