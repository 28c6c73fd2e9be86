//! How a node becomes a replica of another, stays close to it, and stops being one.
//!
//! Owns the SQL and the tools of streaming replication.

use std::fs;
use std::time::Duration;

use sqlx::{Decode, Postgres, Type};
use tokio::time::timeout;

use super::{Node, STATEMENT_LIMIT};
use crate::error::{Doing, SandboxError};
use crate::template::data_argument;
use crate::{tool, wait};

/// How long a replica may take to replay what it was waited for.
const REPLAY_LIMIT: Duration = Duration::from_secs(30);
/// How long a replica may take to stream from a new primary before it is made anew.
const FOLLOW_LIMIT: Duration = Duration::from_secs(10);
/// How long a question that was asked within a limit may take.
const GRACE: Duration = Duration::from_secs(2);

impl Node {
    /// Stops replaying; the replica goes on receiving, answers queries, and falls behind.
    ///
    /// # Errors
    ///
    /// When the node is not a running replica.
    pub async fn pause_replay(&self) -> Result<(), SandboxError> {
        self.execute("pause replay", "select pg_wal_replay_pause()")
            .await?;
        // The request is granted at the next record, or the next time replay finds none.
        let paused = "select pg_get_wal_replay_pause_state() = 'paused'";
        match self.comes_true(REPLAY_LIMIT, paused, None).await? {
            true => Ok(()),
            false => Err(self.timed_out("the pause of replay on", REPLAY_LIMIT)),
        }
    }

    /// Replays again, beginning with what was received meanwhile.
    ///
    /// # Errors
    ///
    /// When the node is not a running replica.
    pub async fn resume_replay(&self) -> Result<(), SandboxError> {
        self.execute("resume replay", "select pg_wal_replay_resume()")
            .await
    }

    /// Makes this replica a primary of its own, and waits until it takes writes. Nothing else is told:
    /// the old primary goes on if it runs. [`Cluster::promote`](crate::Cluster::promote) fails over.
    ///
    /// # Errors
    ///
    /// When the node is not a running replica, or the promotion takes longer than a minute.
    pub async fn promote(&self) -> Result<(), SandboxError> {
        self.execute("promote", "select pg_promote(wait => true, wait_seconds => 60)")
            .await?;
        *self.inner.follows.lock() = None;
        match self
            .comes_true(REPLAY_LIMIT, "select not pg_is_in_recovery()", None)
            .await?
        {
            true => Ok(()),
            false => Err(self.timed_out("the promotion of", REPLAY_LIMIT)),
        }
    }

    /// How far this node's log is safely on disk, as in `0/16B3748`. On a primary that is everything
    /// it has confirmed (with `synchronous_commit` off, confirmed commits may be missing).
    ///
    /// # Errors
    ///
    /// When the node is not a running primary.
    pub async fn current_lsn(&self) -> Result<String, SandboxError> {
        self.ask("read the position", "select pg_current_wal_flush_lsn()::text")
            .await
    }

    /// Waits until this replica has replayed up to `lsn`.
    ///
    /// # Errors
    ///
    /// When the node is not a running replica, or does not get there within 30 seconds.
    pub async fn wait_for_replay(&self, lsn: &str) -> Result<(), SandboxError> {
        let replayed = "select coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false)";
        match self.comes_true(REPLAY_LIMIT, replayed, Some(lsn)).await? {
            true => Ok(()),
            false => Err(self.timed_out(&format!("the replay of {lsn} on"), REPLAY_LIMIT)),
        }
    }

    /// Makes this stopped node a replica of `primary`: an empty folder becomes a base backup.
    pub(crate) async fn become_replica_of(&self, primary: &Node) -> Result<(), SandboxError> {
        let common = &self.inner.common;
        let partial = self.data().with_extension("partial");
        for leftover in [&partial, self.data()] {
            if leftover.exists() {
                fs::remove_dir_all(leftover).doing(|| format!("remove {}", leftover.display()))?;
            }
        }
        let folder = common.account.create_private_folder(&partial);
        folder.doing(|| format!("create {}", partial.display()))?;

        let slot = self.slot();
        primary.ensure_slot(&slot).await?;
        let mut backup = common.account.command(common.binaries.program("pg_basebackup"));
        backup.arg(data_argument(&partial));
        backup.args(["--host=127.0.0.1", "--username=postgres", "--no-password"]);
        backup.arg(format!("--port={}", primary.port()));
        backup
            .args(["--checkpoint=fast", "--wal-method=stream", "--slot"])
            .arg(&slot);
        if !common.settings.durable {
            backup.arg("--no-sync");
        }
        backup.env("PGPASSFILE", common.passfile());
        tool::run(backup).await?;

        common
            .account
            .write_private(&partial.join("standby.signal"), "")
            .and_then(|()| fs::rename(&partial, self.data()))
            .doing(|| format!("finish {}", self.data().display()))?;
        self.follow(primary.port());
        Ok(())
    }

    /// Makes a running replica follow another primary. When it cannot, because it has received what
    /// that primary never had, it is made anew.
    pub(crate) async fn turn_to(&self, primary: &Node) -> Result<(), SandboxError> {
        primary.ensure_slot(&self.slot()).await?;
        self.follow(primary.port());
        self.reload()?;
        let paused = "select pg_is_wal_replay_paused()";
        if !self.is_running() || self.is_frozen() || self.ask("look at replay", paused).await? {
            // It turns when it runs, or replays, again; not before.
            return Ok(());
        }
        // Asking for the timeline too: from before the failover the new primary has the same to send.
        let streams = "select exists (select from pg_stat_wal_receiver where status = 'streaming' \
                       and format('%s on timeline %s', sender_port, received_tli) = $1)";
        let source = format!("{} on timeline {}", primary.port(), primary.timeline().await?);
        if self.comes_true(FOLLOW_LIMIT, streams, Some(&source)).await? {
            return Ok(());
        }
        tracing::info!(
            db.node = self.name(),
            "A replica is ahead of its new primary, or too far behind, and is made anew."
        );
        self.stop().await?;
        self.become_replica_of(primary).await?;
        self.start().await
    }

    /// The timeline that this primary writes.
    async fn timeline(&self) -> Result<i32, SandboxError> {
        // The first eight hexadecimal digits of a log file's name.
        let timeline = "select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int";
        self.ask("read the timeline", timeline).await
    }

    /// From its next start, or reload, this node follows the primary at that port.
    pub(crate) fn follow(&self, port: u16) {
        *self.inner.follows.lock() = Some(port);
    }

    /// The name of the replication slot that a primary keeps for this node.
    pub(crate) fn slot(&self) -> String {
        self.name().replace('-', "_")
    }

    /// Makes this primary keep its log for the replica with that slot.
    async fn ensure_slot(&self, slot: &str) -> Result<(), SandboxError> {
        let mut connection = self.connect().await?;
        let statement = "select pg_create_physical_replication_slot($1, immediately_reserve => true) \
                         where not exists (select from pg_replication_slots where slot_name = $1)";
        let created = sqlx::query(statement).bind(slot).execute(&mut connection).await;
        created
            .map(drop)
            .map_err(|error| self.sql("create a replication slot", error))
    }

    /// Makes this primary forget all replicas but these: a slot that nobody uses keeps the log for ever.
    /// Slots that were not made here are left alone.
    pub(crate) async fn keep_slots_of(&self, replicas: &[Node]) -> Result<(), SandboxError> {
        let mut connection = self.connect().await?;
        let statement = "select pg_drop_replication_slot(slot_name) from pg_replication_slots \
                         where slot_name ~ '^replica_[0-9]+$' and slot_name <> all ($1)";
        let kept: Vec<_> = replicas.iter().map(Node::slot).collect();
        let dropped = sqlx::query(statement).bind(kept).execute(&mut connection).await;
        dropped
            .map(drop)
            .map_err(|error| self.sql("drop replication slots", error))
    }

    /// Asks for one value.
    async fn ask<T>(&self, doing: &'static str, question: &'static str) -> Result<T, SandboxError>
    where
        T: Send + Unpin + for<'r> Decode<'r, Postgres> + Type<Postgres>,
    {
        let mut connection = self.connect().await?;
        let answer = timeout(
            STATEMENT_LIMIT,
            sqlx::query_scalar(question).fetch_one(&mut connection),
        )
        .await;
        let answer = answer.map_err(|_| self.timed_out("an answer of", STATEMENT_LIMIT))?;
        answer.map_err(|error| self.sql(doing, error))
    }

    /// Asks a yes-or-no question until the answer is yes; false when `limit` has passed.
    async fn comes_true(
        &self,
        limit: Duration,
        question: &'static str,
        argument: Option<&str>,
    ) -> Result<bool, SandboxError> {
        let asking = async {
            let mut connection = self.connect().await?;
            let answer = wait::until_async(limit, async || {
                let question = sqlx::query_scalar::<_, bool>(question);
                let question = match argument {
                    Some(argument) => question.bind(argument),
                    None => question,
                };
                Ok(question.fetch_one(&mut connection).await?.then_some(()))
            });
            answer
                .await
                .map_err(|error| self.sql("look at replication", error))
        };
        // A frozen server gives no answer at all.
        match timeout(limit + GRACE, asking).await {
            Ok(answer) => Ok(answer?.is_some()),
            Err(_) => Ok(false),
        }
    }
}
