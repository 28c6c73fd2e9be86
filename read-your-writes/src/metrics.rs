//! The metrics of this crate: their names, and what they mean.

use metrics::{Unit, describe_counter, describe_gauge};

/// Reads by `consistency`, `served_by` (`primary` or `replica`) and `reason`.
pub const READS: &str = "tenantry_reads_total";
/// By `node`: how old a replica's data can be at most, in seconds.
pub const STALENESS: &str = "tenantry_replica_staleness_seconds";
/// By `node`: bytes of log between the primary and what a replica has replayed.
pub const LAG: &str = "tenantry_replica_lag_bytes";
/// By `node`: 1 when a replica may be chosen, else 0.
pub const ELIGIBLE: &str = "tenantry_replica_eligible";
/// What has become of callers' positions, by `outcome`.
pub const POSITIONS: &str = "tenantry_position_total";
/// By `cluster`: reads on the primary right now that replicas should have served.
pub const FALLBACK_IN_USE: &str = "tenantry_fallback_in_use";
/// By `cluster` and `consistency`: reads that were refused because too many had fallen back.
pub const FALLBACK_REFUSED: &str = "tenantry_fallback_refused_total";
/// By `node` and `outcome` (`answered` or `failed`).
pub const PROBES: &str = "tenantry_probes_total";
/// By `cluster`: how often another node was taken for the primary.
pub const FAILOVERS: &str = "tenantry_primary_changes_total";

/// Tells the recorder that is installed what the metrics mean.
pub fn describe() {
    describe_counter!(READS, "Reads by consistency, by who served them, and why");
    describe_gauge!(
        STALENESS,
        Unit::Seconds,
        "How old a replica's data can be at most"
    );
    describe_gauge!(
        LAG,
        Unit::Bytes,
        "Log between the primary and what a replica has replayed"
    );
    describe_gauge!(ELIGIBLE, "1 when a replica may be chosen for reads, else 0");
    describe_counter!(POSITIONS, "What has become of the positions that callers carry");
    describe_gauge!(
        FALLBACK_IN_USE,
        "Reads on the primary right now that replicas should have served"
    );
    describe_counter!(
        FALLBACK_REFUSED,
        "Reads refused because too many had fallen back to the primary"
    );
    describe_counter!(PROBES, "Probes of nodes");
    describe_counter!(FAILOVERS, "How often another node was taken for the primary");
}

/// Counts what has become of a position.
pub(crate) fn position(outcome: &'static str) {
    metrics::counter!(POSITIONS, "outcome" => outcome).increment(1);
}
