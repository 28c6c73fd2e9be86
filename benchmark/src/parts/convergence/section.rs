//! The convergence section of the report.

use super::{Cell, Data, Way};
use crate::{
    report::{Claim, Section, Table, median_of, number},
    stats::{rule_of_three, summarise},
};

/// How much longer a creation may take with ten thousand tenants than with none.
const GROWTH_TARGET: f64 = 1.5;

/// What the report says.
pub fn section(data: &Data) -> Section {
    Section {
        title: "Convergence",
        method: "Instances in one process, each with its own routing table, pools, lease and connections, on one catalog whose \
                 server waits for the disk at each commit. One creation after the other, each by the next instance, with a spare \
                 ready. The clock runs from the call to the answer, which waits until every live instance has applied the \
                 change. Then each instance is asked for the tenant for the first time, and reads from its database whose that \
                 is; then the tenant is suspended, and each instance is asked again."
            .to_owned(),
        tables: vec![times(data), answers(data)],
        claims: claims(data),
    }
}

fn way(way: Way) -> String {
    match way {
        Way::Notify => "NOTIFY",
        Way::Broker => "RabbitMQ",
    }
    .to_owned()
}

fn times(data: &Data) -> Table {
    let row = |cell: &Cell| {
        let summary = summarise(&cell.created_ms);
        vec![
            way(cell.way),
            cell.instances.to_string(),
            cell.present.to_string(),
            median_of(&cell.created_ms, "ms"),
            summary.map_or_else(String::new, |summary| number(summary.p95)),
            summary.map_or_else(String::new, |summary| number(summary.max)),
            median_of(&cell.suspended_ms, "ms"),
        ]
    };
    Table {
        caption: "From the call to the answer.".to_owned(),
        columns: vec![
            "word by",
            "instances",
            "tenants at the start",
            "created, median",
            "95th percentile (ms)",
            "longest (ms)",
            "suspended, median",
        ],
        rows: data.cells.iter().map(row).collect(),
    }
}

fn answers(data: &Data) -> Table {
    let row = |cell: &Cell| {
        vec![
            way(cell.way),
            cell.instances.to_string(),
            cell.present.to_string(),
            cell.asked.to_string(),
            cell.unknown.to_string(),
            cell.wrong.to_string(),
            cell.not_suspended.to_string(),
            cell.pending.to_string(),
        ]
    };
    Table {
        caption: "What instances answered after that.".to_owned(),
        columns: vec![
            "word by",
            "instances",
            "tenants at the start",
            "first requests",
            "tenant unknown",
            "another's database",
            "still in service after suspension",
            "suspensions answered before all had applied them",
        ],
        rows: data.cells.iter().map(row).collect(),
    }
}

fn claims(data: &Data) -> Vec<Claim> {
    let asked: u64 = data.cells.iter().map(|cell| cell.asked).sum();
    let failed: u64 = data
        .cells
        .iter()
        .map(|cell| cell.unknown + cell.wrong + cell.not_suspended)
        .sum();
    let median = |way: Way, present: u32| {
        let cells = data
            .cells
            .iter()
            .filter(|cell| cell.way == way && cell.present == present);
        let largest = cells.max_by_key(|cell| cell.instances)?;
        Some((summarise(&largest.created_ms)?.median, largest.instances))
    };
    let mut claims = vec![Claim {
        what: "From the answer on, every instance serves a new tenant, and none a suspended one".to_owned(),
        target: "0 failures".to_owned(),
        measured: format!(
            "{failed} of {asked} first requests (bound at 95 %: {:.1e})",
            rule_of_three(asked)
        ),
        met: failed == 0,
    }];
    for (one, name) in [(Way::Notify, "NOTIFY"), (Way::Broker, "RabbitMQ")] {
        let most = data
            .cells
            .iter()
            .map(|cell| cell.present)
            .max()
            .unwrap_or_default();
        let (Some((none, instances)), Some((many, _))) = (median(one, 0), median(one, most)) else {
            continue;
        };
        claims.push(Claim {
            what: format!(
                "A creation with {instances} instances and {most} tenants, against none, word by {name}"
            ),
            target: format!("≤ {GROWTH_TARGET} ×"),
            measured: format!(
                "{:.2} × ({} ms against {} ms)",
                many / none,
                number(many),
                number(none)
            ),
            met: many / none <= GROWTH_TARGET,
        });
    }
    claims
}
