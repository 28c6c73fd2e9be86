//! What a node's pool is told when it starts. Refuses to know where the numbers come from.

use std::{fmt, time::Duration};

use sqlx::postgres::PgConnectOptions;

/// A PostgreSQL server and how much of it this instance may use.
#[derive(Clone)]
pub struct NodeSettings {
    /// Name of the node in metrics and log lines.
    pub name: String,
    /// Address and TLS of the server, and the credentials of an administrator who may read `pg_stat_activity` and cancel
    /// the statements of tenants' roles (a superuser, or a member of `pg_signal_backend`).
    pub admin: PgConnectOptions,
    /// Connections that this instance may have open on the server at any moment, all of them counted, the pool's own
    /// administrative one too. At least 2: with less there is no room for a tenant.
    pub max_connections: u32,
    /// Limits that all tenants share.
    pub limits: PoolLimits,
}

impl fmt::Debug for NodeSettings {
    /// Leaves the connect options out: their own `Debug` shows the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeSettings")
            .field("name", &self.name)
            .field("host", &self.admin.get_host())
            .field("port", &self.admin.get_port())
            .field("max_connections", &self.max_connections)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Limits for each tenant and each connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Connections of one tenant at any moment.
    pub max_connections_per_tenant: u32,
    /// How long a connection stays open that nobody uses.
    pub idle_timeout: Duration,
    /// How long a caller waits for a connection, the time to open one included.
    pub acquire_timeout: Duration,
    /// How long one attempt to open a connection may take, the proof that it reached the right database included.
    pub connect_timeout: Duration,
    /// `statement_timeout` of tenants' connections.
    pub statement_timeout: Duration,
    /// `idle_in_transaction_session_timeout` of tenants' connections.
    pub idle_in_transaction_timeout: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            max_connections_per_tenant: 10,
            idle_timeout: Duration::from_secs(10),
            acquire_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(2),
            statement_timeout: Duration::from_secs(30),
            idle_in_transaction_timeout: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_shown_for_debugging_hides_its_password() {
        let settings = NodeSettings {
            name: "main".into(),
            admin: PgConnectOptions::new_without_pgpass().password("hunter2"),
            max_connections: 10,
            limits: PoolLimits::default(),
        };
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
}
