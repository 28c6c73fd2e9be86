//! What the routing table's and the provisioning's metrics mean. No tenant is ever a label.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Tells the recorder, if there is one, what the numbers mean.
pub(crate) fn describe() {
    describe_gauge!(
        "tenantry_routing_tenants",
        "Tenants in this instance's routing table."
    );
    describe_gauge!(
        "tenantry_routing_revision",
        "The catalog revision that this instance has applied."
    );
    describe_counter!(
        "tenantry_routing_rows_total",
        "Changed rows that this instance has read from the catalog."
    );
    describe_histogram!(
        "tenantry_routing_refresh_seconds",
        Unit::Seconds,
        "Time to read changes from the catalog and to publish them."
    );
    describe_counter!(
        "tenantry_routing_look_ups_total",
        "Look-ups in the catalog for names the table did not know."
    );
    describe_counter!(
        "tenantry_routing_unknown_total",
        "Requests for names that are in neither table nor catalog."
    );
    describe_counter!(
        "tenantry_provisioning_total",
        "Tenants that began, by path: with a spare, or on the spot."
    );
    describe_counter!(
        "tenantry_provisioning_failures_total",
        "Attempts to create a tenant that failed."
    );
    describe_gauge!(
        "tenantry_orphans",
        "Databases, roles and rows of a cluster that do not fit together."
    );
}
