//! One PostgreSQL server: how to reach it, and everything that can be done to it.
//!
//! Refuses to know the other nodes, except for the port of the primary that a replica follows.

mod life;
mod replication;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{Connection, Executor};
use tokio::time::timeout;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::SandboxError;
use crate::logfile;
use crate::port::ReservedPort;
use crate::process::Postmaster;
use crate::proxy::Proxy;
use crate::settings::Settings;

/// How much of the log an error carries.
const LOG_LINES_IN_ERRORS: usize = 30;

/// How long a statement of our own may take: a frozen server does not even refuse.
const STATEMENT_LIMIT: Duration = Duration::from_secs(75);

/// What all nodes of a cluster have in common.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) binaries: Binaries,
    pub(crate) account: Account,
    pub(crate) settings: Settings,
    /// The cluster's folder.
    pub(crate) root: PathBuf,
    /// The superuser's password.
    pub(crate) password: SecretString,
    /// The cluster has ended: nobody would stop a server that is started now.
    pub(crate) closed: AtomicBool,
}

impl Common {
    /// The file with the password, for PostgreSQL's own programs.
    pub(crate) fn passfile(&self) -> PathBuf {
        self.root.join("pgpass")
    }
}

/// One server of a [`Cluster`](crate::Cluster).
///
/// A node is a handle: clones speak of the same server, and do not keep the cluster alive.
#[derive(Clone, Debug)]
pub struct Node {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    data: PathBuf,
    log: PathBuf,
    port: ReservedPort,
    common: Arc<Common>,
    /// The port of the primary that this node follows, if it is a replica.
    follows: Mutex<Option<u16>>,
    process: Mutex<Option<Postmaster>>,
}

impl Node {
    pub(crate) fn new(common: Arc<Common>, name: &str, port: ReservedPort) -> Self {
        let (data, log) = (common.root.join(name), common.root.join(format!("{name}.log")));
        let (follows, process) = (Mutex::default(), Mutex::default());
        Self {
            inner: Arc::new(Inner {
                name: name.to_owned(),
                data,
                log,
                port,
                common,
                follows,
                process,
            }),
        }
    }

    /// `primary`, `replica-1`, `replica-2` and so on. A name stays with its node: after a failover the
    /// primary may be called `replica-1`. It is also the server's `cluster_name`.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Always `127.0.0.1`.
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// The port, which stays the same as long as the cluster lives, whether the server runs or not.
    pub fn port(&self) -> u16 {
        self.inner.port.number()
    }

    /// The superuser's URL for a database. It contains the password.
    pub fn url(&self, database: &str) -> String {
        self.url_at(self.port(), database)
    }

    /// The same for another port, that of a proxy.
    pub(crate) fn url_at(&self, port: u16, database: &str) -> String {
        url(self.password().expose_secret(), port, database)
    }

    /// The superuser's way into a database, for sqlx.
    pub fn connect_options(&self, database: &str) -> PgConnectOptions {
        self.connect_options_with(self.password(), database)
    }

    /// The same with another password.
    pub(crate) fn connect_options_with(&self, password: &SecretString, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host(self.host())
            .port(self.port())
            .username("postgres")
            .password(password.expose_secret())
            .database(database)
            .ssl_mode(PgSslMode::Disable)
    }

    /// The server's log.
    pub fn log_path(&self) -> &Path {
        &self.inner.log
    }

    /// The last lines of the server's log.
    pub fn log_tail(&self, lines: usize) -> String {
        logfile::tail(&self.inner.log, lines)
    }

    /// A new proxy in front of this server.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub async fn proxy(&self) -> Result<Proxy, SandboxError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port()));
        Proxy::start(self.clone(), self.name(), address)
    }

    pub(crate) fn password(&self) -> &SecretString {
        &self.inner.common.password
    }

    /// The data folder.
    pub(crate) fn data(&self) -> &Path {
        &self.inner.data
    }

    /// A connection as superuser to the maintenance database.
    pub(crate) async fn connect(&self) -> Result<PgConnection, SandboxError> {
        let options = self.connect_options("postgres");
        let connected = timeout(STATEMENT_LIMIT, PgConnection::connect_with(&options)).await;
        let connected = connected.map_err(|_| self.timed_out("an answer of", STATEMENT_LIMIT))?;
        connected.map_err(|error| self.sql("connect", error))
    }

    /// Runs one statement that `doing` describes.
    pub(crate) async fn execute(
        &self,
        doing: &'static str,
        statement: &'static str,
    ) -> Result<(), SandboxError> {
        let mut connection = self.connect().await?;
        let executed = timeout(STATEMENT_LIMIT, connection.execute(statement)).await;
        let executed = executed.map_err(|_| self.timed_out("an answer of", STATEMENT_LIMIT))?;
        executed.map(drop).map_err(|error| self.sql(doing, error))
    }

    pub(crate) fn sql(&self, doing: &'static str, source: sqlx::Error) -> SandboxError {
        SandboxError::Sql {
            node: self.name().to_owned(),
            doing,
            source: Box::new(source),
        }
    }

    pub(crate) fn timed_out(&self, what: &str, limit: Duration) -> SandboxError {
        SandboxError::TimedOut {
            what: format!("{what} {}", self.name()),
            limit,
            hint: format!("The end of its log:\n{}", self.log_tail(LOG_LINES_IN_ERRORS)),
        }
    }
}

fn url(password: &str, port: u16, database: &str) -> String {
    let mut url = format!("postgres://postgres:{password}@127.0.0.1:{port}/");
    for byte in database.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_name_is_encoded_in_a_url() {
        assert_eq!(
            url("pw", 5432, "t_1f"),
            "postgres://postgres:pw@127.0.0.1:5432/t_1f"
        );
        assert_eq!(
            url("pw", 5432, "a/b ?"),
            "postgres://postgres:pw@127.0.0.1:5432/a%2Fb%20%3F"
        );
    }
}
