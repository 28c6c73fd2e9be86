//! The pool's metrics: names, meanings, handles. No tenant is ever a label.

use std::{sync::Arc, time::Duration};

use metrics::{Counter, Gauge, Histogram, SharedString, Unit};

use super::{PoolStats, schedule::CloseReason};

const CONNECTIONS: &str = "tenantry_pool_connections";
const WAITING: &str = "tenantry_pool_waiting";
const ACQUIRE: &str = "tenantry_pool_acquire_seconds";
const OPENED: &str = "tenantry_pool_opened_total";
const CLOSED: &str = "tenantry_pool_closed_total";
const TIMEOUTS: &str = "tenantry_pool_timeouts_total";
const WRONG_DATABASE: &str = "tenantry_pool_wrong_database_total";

/// One node's handles. They belong to the recorder that is installed when the pool starts.
pub(super) struct NodeMetrics {
    node: SharedString,
    connections: [Gauge; 5],
    waiting: Gauge,
    acquire: Histogram,
    opened: Counter,
    timeouts: Counter,
    wrong_database: Counter,
}

impl NodeMetrics {
    pub(super) fn new(node: &Arc<str>) -> Self {
        describe();
        let node = SharedString::from(Arc::clone(node));
        let connections = ["opening", "in_use", "idle", "closing", "administrative"]
            .map(|state| metrics::gauge!(CONNECTIONS, "node" => node.clone(), "state" => state));
        Self {
            connections,
            waiting: metrics::gauge!(WAITING, "node" => node.clone()),
            acquire: metrics::histogram!(ACQUIRE, "node" => node.clone()),
            opened: metrics::counter!(OPENED, "node" => node.clone()),
            timeouts: metrics::counter!(TIMEOUTS, "node" => node.clone()),
            wrong_database: metrics::counter!(WRONG_DATABASE, "node" => node.clone()),
            node,
        }
    }

    pub(super) fn show(&self, stats: PoolStats) {
        let by_state = [
            stats.opening,
            stats.in_use,
            stats.idle,
            stats.closing,
            stats.administrative,
        ];
        for (gauge, count) in self.connections.iter().zip(by_state) {
            gauge.set(f64::from(count));
        }
        self.waiting.set(f64::from(stats.waiting));
    }

    pub(super) fn acquired(&self, waited: Duration) {
        self.acquire.record(waited);
    }

    pub(super) fn opened(&self) {
        self.opened.increment(1);
    }

    pub(super) fn timed_out(&self) {
        self.timeouts.increment(1);
    }

    pub(super) fn reached_wrong_database(&self) {
        self.wrong_database.increment(1);
    }

    pub(super) fn closed(&self, reason: CloseReason) {
        metrics::counter!(CLOSED, "node" => self.node.clone(), "reason" => reason.as_str()).increment(1);
    }
}

/// Describes the metrics to the recorder that is installed.
fn describe() {
    metrics::describe_gauge!(
        CONNECTIONS,
        "Connections of this instance to the server, by what they are doing."
    );
    metrics::describe_gauge!(WAITING, "Callers that wait for a connection.");
    metrics::describe_histogram!(
        ACQUIRE,
        Unit::Seconds,
        "Time from asking for a connection to having it, successes only."
    );
    metrics::describe_counter!(OPENED, "Connections that were opened and proved.");
    metrics::describe_counter!(CLOSED, "Connections that were closed, by reason.");
    metrics::describe_counter!(TIMEOUTS, "Callers that got no connection in time.");
    metrics::describe_counter!(
        WRONG_DATABASE,
        "Connections that led to another database than the tenant's and were closed unused."
    );
}
