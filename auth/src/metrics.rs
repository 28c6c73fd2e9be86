//! The names and meanings of what this crate measures.

use metrics::describe_counter;

/// Tells the recorder what the metrics mean. Call it once, when the recorder is there.
pub fn describe() {
    describe_counter!(
        "tenantry_tenant_requests_refused_total",
        "Requests that were refused because their tenant had sent too many, by the limit."
    );
    describe_counter!(
        "tenantry_issuer_key_fetches_total",
        "Attempts to fetch the keys of an issuer of tokens, by what became of them."
    );
}
