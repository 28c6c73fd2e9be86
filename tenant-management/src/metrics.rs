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
        "tenantry_authentication_attempts_total",
        "Attempts to get in that are in the audit trail, by what became of them."
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
    describe_counter!(
        "tenantry_routing_refreshes_total",
        "Rounds that brought changes from the catalog, by what prompted them: own change, word of another's, renewal of the \
         lease, timer. Many by renewal or timer: word does not get through."
    );
    describe_counter!(
        "tenantry_routing_repairs_total",
        "Times that the whole table differed from the catalog and was read anew."
    );
    describe_counter!(
        "tenantry_events_received_total",
        "Word of new catalog revisions that this instance has heard."
    );
    describe_gauge!(
        "tenantry_events_connected",
        "1 when this instance hears of changes at once, 0 when only renewing its lease finds them."
    );
    describe_counter!(
        "tenantry_events_published_total",
        "Word of new catalog revisions that has gone out, with a broker when it has confirmed it; several changes can go in one."
    );
    describe_counter!(
        "tenantry_events_publish_failures_total",
        "Attempts to tell of a new catalog revision that failed."
    );
    describe_counter!(
        "tenantry_instance_leases_lost_total",
        "Times that this instance found its lease ended: it was frozen, or cut off from the catalog."
    );
    describe_gauge!(
        "tenantry_catalog_last_contact_timestamp_seconds",
        Unit::Seconds,
        "When the catalog last answered this instance, in seconds since 1970."
    );
    describe_gauge!(
        "tenantry_orphans",
        "Databases, roles and rows of a cluster that do not fit together."
    );
}
