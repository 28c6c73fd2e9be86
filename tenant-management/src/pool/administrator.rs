//! The pool's own connection to its node: asks which processes are still there, and stops what runs on abandoned ones.
//!
//! Owns that one connection, which is part of the node's budget, and when it may be opened again. Refuses to know
//! tenants, and decides nothing.

use std::time::{Duration, Instant};

use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};

use super::{connect::without_logging, connection::Backend};

/// How long one exchange with the server may take, and a new connection to it. Longer than what the server itself allows a
/// statement, so that a busy server answers with an error, and only one that is out of reach does not answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// What the server allows a statement.
const STATEMENT_TIMEOUT: &str = "2s";
/// How long a healthy server takes, and more, to end a process whose connection was closed.
const FAREWELL: Duration = Duration::from_millis(100);

/// A process on the server, and the database it serves when that was asked about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Present {
    pub(super) pid: i32,
    /// In microseconds since 1970 by the server's clock. Hidden from an administrator without `pg_read_all_stats`.
    pub(super) started: Option<i64>,
    pub(super) database: Option<String>,
}

/// How to stop what runs on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The statement.
    Cancel,
    /// The process.
    Terminate,
}

/// The administrator cannot ask for now.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("the connection was lost a moment ago")]
    Pausing,
    #[error("no answer within {PATIENCE:?}")]
    Timeout,
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
}

/// The pool's own connection, opened when it is needed.
pub(super) struct Administrator {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
    /// Before this moment the process of the last connection may still be there, so that another would be one too many.
    not_before: Instant,
    /// How long that is after the connection was lost without a word from the server.
    silence: Duration,
}

impl Administrator {
    /// An administrator who waits for `silence` after a connection that was lost without a word.
    pub(super) fn new(options: PgConnectOptions, silence: Duration) -> Self {
        let options = without_logging(options)
            .application_name("tenantry pool")
            .options([
                ("statement_timeout", STATEMENT_TIMEOUT),
                ("default_transaction_read_only", "on"),
            ]);
        Self {
            options,
            connection: None,
            not_before: Instant::now(),
            silence,
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Those of `pids` that are there, and all processes in `databases`.
    pub(super) async fn present(
        &mut self,
        pids: &[i32],
        databases: &[&str],
    ) -> Result<Vec<Present>, AskError> {
        let question = async |connection: &mut PgConnection| {
            // Without the names of databases it is a scan of shared memory alone.
            if databases.is_empty() {
                let sql = "
                    select pid, (extract(epoch from backend_start) * 1000000)::int8 as started
                    from pg_stat_activity
                    where pid = any($1)";
                let rows: Vec<(i32, Option<i64>)> =
                    sqlx::query_as(sql).bind(pids).fetch_all(connection).await?;
                let present = |(pid, started)| Present {
                    pid,
                    started,
                    database: None,
                };
                return Ok(rows.into_iter().map(present).collect());
            }
            let sql = "
                select pid, (extract(epoch from backend_start) * 1000000)::int8 as started, datname::text as database
                from pg_stat_activity
                where pid = any($1) or datname = any($2)";
            let rows: Vec<(i32, Option<i64>, Option<String>)> = sqlx::query_as(sql)
                .bind(pids)
                .bind(databases)
                .fetch_all(connection)
                .await?;
            let present = |(pid, started, database)| Present {
                pid,
                started,
                database,
            };
            Ok(rows.into_iter().map(present).collect())
        };
        let connection = self.connected().await?;
        let answer = tokio::time::timeout(PATIENCE, question(connection)).await;
        self.judge(answer).await
    }

    /// Stops what runs on these processes, as far as they are still the same.
    pub(super) async fn stop(&mut self, backends: &[Backend], how: Stop) -> Result<(), AskError> {
        let sql = "
            select case when $3 then pg_terminate_backend(activity.pid) else pg_cancel_backend(activity.pid) end
            from unnest($1::int4[], $2::int8[]) as abandoned (pid, started)
            join pg_stat_activity as activity
                on activity.pid = abandoned.pid
                and coalesce((extract(epoch from backend_start) * 1000000)::int8, abandoned.started)
                    = abandoned.started";
        let pids: Vec<i32> = backends.iter().map(|backend| backend.pid).collect();
        let started: Vec<i64> = backends.iter().map(|backend| backend.started).collect();
        let connection = self.connected().await?;
        let order = sqlx::query(sql)
            .bind(pids)
            .bind(started)
            .bind(how == Stop::Terminate)
            .execute(connection);
        let answer = tokio::time::timeout(PATIENCE, order).await;
        self.judge(answer).await.map(|_| ())
    }

    /// Closes the connection, if there is one.
    pub(super) async fn disconnect(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.not_before = Instant::now() + FAREWELL;
            // The socket is closed in any case; a farewell that does not arrive changes nothing.
            let _ = tokio::time::timeout(PATIENCE, connection.close()).await;
        }
    }

    async fn connected(&mut self) -> Result<&mut PgConnection, AskError> {
        if self.connection.is_none() {
            if Instant::now() < self.not_before {
                return Err(AskError::Pausing);
            }
            let connecting = tokio::time::timeout(PATIENCE, self.options.connect()).await;
            match connecting {
                Ok(Ok(connection)) => self.connection = Some(connection),
                Ok(Err(error)) => {
                    self.not_before = Instant::now() + self.pause_after(&error);
                    return Err(error.into());
                }
                Err(_) => {
                    self.not_before = Instant::now() + self.silence;
                    return Err(AskError::Timeout);
                }
            }
        }
        Ok(self.connection.as_mut().expect("the connection was opened above"))
    }

    /// Keeps the connection after an answer, an error of a statement included, and gives it up otherwise.
    async fn judge<T>(
        &mut self,
        answer: Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed>,
    ) -> Result<T, AskError> {
        let error = match answer {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => {
                self.connection = None;
                self.not_before = Instant::now() + self.silence;
                return Err(AskError::Timeout);
            }
        };
        let alive = match &mut self.connection {
            Some(connection) => {
                matches!(error, sqlx::Error::Database(_)) && {
                    matches!(
                        tokio::time::timeout(PATIENCE, connection.ping()).await,
                        Ok(Ok(()))
                    )
                }
            }
            None => false,
        };
        if !alive {
            self.connection = None;
            self.not_before = Instant::now() + self.pause_after(&error);
        }
        Err(error.into())
    }

    /// A server that ends a session says so, or its socket does; the process is then gone in no time.
    fn pause_after(&self, error: &sqlx::Error) -> Duration {
        match error {
            sqlx::Error::Database(_) | sqlx::Error::Io(_) => FAREWELL,
            _ => self.silence,
        }
    }
}
