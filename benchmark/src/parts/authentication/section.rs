//! The authentication's section of the report.

use super::{CALLERS, Data};
use crate::{
    report::{Claim, Section, Table, median_of, show},
    stats::paired_ratio,
};

/// What the report says.
pub fn section(data: &Data) -> Section {
    let ratio = paired_ratio(&data.by_key, &data.open);
    let shown = || {
        ratio
            .as_ref()
            .map_or_else(|| "–".to_owned(), |ratio| show(ratio, "×"))
    };
    Section {
        title: "Authentication",
        method: format!(
            "An HTTP service with two routes to the same read of ten rows: one resolves a fixed tenant and asks nobody who they \
             are; the other is for whoever has an API key, below the layer that counts requests (its form and checksum, its \
             hash, revocation, expiry and tenant, whatever the request names, the tenant's state, the role, the tenant's rate \
             and its requests at work, the note of the key's last use). Both get the same requests. {CALLERS} callers on \
             kept-alive connections, in the same process as the service, on a server that does not wait for the disk. Blocks \
             of 4,000 requests alternate, and ratios are of neighbouring blocks."
        ),
        tables: vec![Table {
            caption: "Reads per second.".to_owned(),
            columns: vec!["route", "per second", "against anybody's"],
            rows: vec![
                vec!["for anybody".to_owned(), median_of(&data.open, ""), String::new()],
                vec!["with an API key".to_owned(), median_of(&data.by_key, ""), shown()],
            ],
        }],
        claims: vec![Claim {
            what: "Throughput of a read with an API key against the same read without authentication"
                .to_owned(),
            target: "≥ 0.9 ×".to_owned(),
            measured: shown(),
            met: ratio.as_ref().is_some_and(|ratio| ratio.median >= 0.9),
        }],
    }
}
