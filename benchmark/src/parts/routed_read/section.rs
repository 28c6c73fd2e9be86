//! The routed read's section of the report.

use super::{CALLERS, Data};
use crate::{
    report::{Claim, Section, Table, count, median_of, show},
    stats::{paired_ratio, summarise},
};

/// What the report says.
pub fn section(data: &Data) -> Section {
    Section {
        title: "Reading from a replica with a position",
        method: format!(
            "*Choice*: the node for a `recent` read of a caller with a position, from two replicas that have both replayed it; a \
             sample is the mean over 20,000. *Requests*: an HTTP service with one handler, which reads ten rows; once by a plain \
             sqlx pool of that database on the replica (which does not test its connections before use), and once by name, \
             route, the caller's position (signed, in a header) and the choice of a node. {CALLERS} callers on kept-alive \
             connections, in the same process as both services, on servers that do not wait for the disk. Blocks of 4,000 \
             requests alternate, and ratios are of neighbouring blocks."
        ),
        tables: vec![Table {
            caption: "Requests per second.".to_owned(),
            columns: vec!["service", "per second", "against the plain pool"],
            rows: vec![
                vec!["plain pool".to_owned(), median_of(&data.plain, ""), String::new()],
                vec![
                    "route, position, replica".to_owned(),
                    median_of(&data.routed, ""),
                    paired_ratio(&data.routed, &data.plain)
                        .map_or_else(String::new, |ratio| show(&ratio, "×")),
                ],
            ],
        }],
        claims: claims(data),
    }
}

fn claims(data: &Data) -> Vec<Claim> {
    let choice = summarise(&data.choice_ns);
    let ratio = paired_ratio(&data.routed, &data.plain);
    vec![
        Claim {
            what: "Choice of the node for a read with a position".to_owned(),
            target: "< 1,000 ns".to_owned(),
            measured: median_of(&data.choice_ns, "ns"),
            met: choice.is_some_and(|choice| choice.median < 1_000.0),
        },
        Claim {
            what: "Throughput of a routed read against the same handler on a plain pool".to_owned(),
            target: "≥ 0.95 ×".to_owned(),
            measured: ratio
                .as_ref()
                .map_or_else(|| "–".to_owned(), |ratio| show(ratio, "×")),
            met: ratio.is_some_and(|ratio| ratio.median >= 0.95),
        },
        Claim {
            what: "Routed reads with a reached position that a replica served".to_owned(),
            target: "all".to_owned(),
            measured: format!("{} of {}", count(data.by_replica), count(data.routed_requests)),
            met: data.by_replica == data.routed_requests,
        },
    ]
}
