//! Bringing a cluster up: the first time, and again on data that was kept.
//!
//! Owns the order of the steps. Whatever fails, the cluster made so far is dropped, and its guardian
//! cleans up.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::future::try_join_all;
use postgres_protocol::password::scram_sha_256;
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::builder::ClusterBuilder;
use crate::cluster::Cluster;
use crate::error::{Doing, SandboxError};
use crate::folder::Root;
use crate::guardian::Orders;
use crate::node::{Common, Node};
use crate::settings::Settings;
use crate::state::{Role, SavedNode, State};
use crate::template::Template;
use crate::{logfile, secret};

const PRIMARY: &str = "primary";

impl Cluster {
    pub(crate) async fn start(plan: ClusterBuilder) -> Result<Self, SandboxError> {
        let account = Account::for_servers()?;
        let binaries = plan.binaries.map_or_else(Binaries::find, Ok)?;
        let (root, state) = match &plan.data_dir {
            None => (Root::temporary(&account).await?, None),
            Some(path) => {
                let root = Root::kept(path, &account).await?;
                let state = recall(&root, &binaries)?;
                (root, Some(state))
            }
        };
        let orders = if state.is_some() {
            Orders::Keep
        } else {
            Orders::Remove
        };
        let guardian = root.guard(orders)?;
        let password = state
            .as_ref()
            .map_or_else(secret::password, |state| state.password.clone());
        let common = Arc::new(Common {
            binaries,
            account,
            settings: Settings {
                durable: plan.durable,
                temporary: plan.data_dir.is_none(),
                chosen: plan.settings,
            },
            root: root.path().to_owned(),
            password,
            closed: AtomicBool::new(false),
        });
        let passfile = format!("127.0.0.1:*:*:postgres:{}\n", common.password.expose_secret());
        common
            .account
            .write_private(&common.passfile(), &passfile)
            .doing(|| format!("write {}", common.passfile().display()))?;

        let mut cluster = Self {
            common,
            root,
            guardian: Some(guardian),
            state,
            first_port: plan.first_port,
            nodes: Vec::new(),
            replicas: 0,
        };
        let saved = cluster
            .state
            .as_ref()
            .map_or_else(Vec::new, |state| state.nodes.clone());
        if saved.is_empty() {
            cluster.make_primary().await?;
        } else {
            cluster.resume(saved, plan.replicas).await?;
        }
        let missing = plan.replicas.saturating_sub(cluster.replicas);
        cluster.add_replicas(missing).await?;
        Ok(cluster)
    }

    /// Makes the first node, from a copy of the template.
    async fn make_primary(&mut self) -> Result<(), SandboxError> {
        let Common {
            account,
            binaries,
            settings,
            ..
        } = &*self.common;
        let node = self.new_node(PRIMARY, None)?;
        if node.data().exists() {
            // Left by a first start that was interrupted.
            fs::remove_dir_all(node.data()).doing(|| format!("remove {}", node.data().display()))?;
        }
        let template = Template::obtain(account, binaries).await?;
        template
            .copy(account, binaries, node.data(), settings.durable)
            .await?;
        node.launch().await?;
        self.nodes.push(node);
        replace_password(self.primary(), &template.password).await?;
        self.save()
    }

    /// Starts the nodes of a kept folder, with at most so many replicas.
    async fn resume(&mut self, mut saved: Vec<SavedNode>, replicas: usize) -> Result<(), SandboxError> {
        saved.sort_by_key(|node| node.role);
        let count = saved.iter().filter(|node| node.role == Role::Replica).count();
        for node in &saved {
            logfile::make_room(&self.root.path().join(format!("{}.log", node.name)));
            self.nodes.push(self.new_node(&node.name, Some(node.port))?);
        }
        self.replicas = count.min(replicas);
        self.primary().start().await?;

        let surplus: Vec<_> = self.nodes.drain(1 + self.replicas..1 + count).collect();
        self.save()?;
        self.remove_unused(&surplus)?;
        let (primary, replicas) = (self.primary(), self.replicas());
        primary.keep_slots_of(replicas).await?;
        try_join_all(replicas.iter().map(|replica| async move {
            if replica.data().exists() {
                replica.follow(primary.port());
            } else {
                // It was being made anew when it was interrupted.
                replica.become_replica_of(primary).await?;
            }
            replica.start().await
        }))
        .await?;
        Ok(())
    }

    /// Removes the folders of replicas that are not wanted any more, or were never finished.
    fn remove_unused(&self, surplus: &[Node]) -> Result<(), SandboxError> {
        let root = self.root.path();
        let entries = fs::read_dir(root).doing(|| format!("read {}", root.display()))?;
        let folders = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir());
        let unfinished = folders.filter(|path| path.extension().is_some_and(|suffix| suffix == "partial"));
        for folder in surplus
            .iter()
            .map(|node| node.data().to_owned())
            .chain(unfinished)
        {
            if folder.exists() {
                fs::remove_dir_all(&folder).doing(|| format!("remove {}", folder.display()))?;
            }
        }
        Ok(())
    }
}

/// What a folder that is kept remembers. A new one begins to remember now, so that it is known as
/// ours from the first moment on.
fn recall(root: &Root, binaries: &Binaries) -> Result<State, SandboxError> {
    let Some(state) = State::load(root.path())? else {
        let state = State::new(root.created, &secret::password());
        state.save(root.path())?;
        return Ok(state);
    };
    for node in &state.nodes {
        let path = root.path().join(&node.name);
        // A replica may be missing: it is made anew.
        let Ok(version) = fs::read_to_string(path.join("PG_VERSION")) else {
            continue;
        };
        let found = version.trim().to_owned();
        let expected = binaries.version().major;
        if found != expected.to_string() {
            return Err(SandboxError::WrongVersion {
                path,
                found,
                expected,
            });
        }
    }
    Ok(state)
}

/// Gives the superuser of a new node its own password, in the form in which the server stores it: the
/// statement may end up in a log.
async fn replace_password(node: &Node, old: &SecretString) -> Result<(), SandboxError> {
    let failed = |error| node.sql("replace the password", error);
    let options = node.connect_options_with(old, "postgres");
    let mut connection = PgConnection::connect_with(&options).await.map_err(failed)?;
    let verifier = scram_sha_256(node.password().expose_secret().as_bytes());
    let statement = format!("alter role postgres password '{verifier}'");
    // The verifier consists of letters, digits and `+/=$:-` only.
    connection
        .execute(AssertSqlSafe(statement))
        .await
        .map_err(failed)?;
    connection.close().await.map_err(failed)
}
