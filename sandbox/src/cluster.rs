//! A primary and its replicas, from the first start to the last trace.
//!
//! Owns which nodes there are, who is primary, and their common end. Refuses to know how a node's
//! process is run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::try_join_all;

use crate::binaries::Binaries;
use crate::builder::ClusterBuilder;
use crate::error::SandboxError;
use crate::folder::Root;
use crate::guardian::Guardian;
use crate::node::{Common, Node};
use crate::port::ReservedPort;
use crate::state::{Role, SavedNode, State};

/// A running PostgreSQL cluster: one primary and its streaming replicas.
///
/// Dropping it stops the servers and removes a temporary folder, which takes about a tenth of a second
/// and holds up the thread. The same happens when the process ends in any other way, even by `SIGKILL`.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) common: Arc<Common>,
    pub(crate) root: Root,
    /// `None` once the cluster has ended.
    pub(crate) guardian: Option<Guardian>,
    /// The folder is kept, and this is its memory.
    pub(crate) state: Option<State>,
    pub(crate) first_port: Option<u16>,
    /// The primary, then the replicas, then former primaries.
    pub(crate) nodes: Vec<Node>,
    /// How many of them are replicas.
    pub(crate) replicas: usize,
}

impl Cluster {
    /// Describes a new cluster: one primary on a free port, in a temporary folder.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// The node that takes writes.
    pub fn primary(&self) -> &Node {
        &self.nodes[0]
    }

    /// A replica; the first one has index 0 (and, before any failover, the name `replica-1`).
    ///
    /// # Panics
    ///
    /// When there are not that many.
    pub fn replica(&self, index: usize) -> &Node {
        let replicas = self.replicas();
        assert!(
            index < replicas.len(),
            "there is no replica {index}: the cluster has {}",
            replicas.len()
        );
        &replicas[index]
    }

    /// The nodes that follow the primary.
    pub fn replicas(&self) -> &[Node] {
        &self.nodes[1..=self.replicas]
    }

    /// All nodes: the primary, the replicas, then those that were primary before a failover.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The PostgreSQL that runs here.
    pub fn binaries(&self) -> &Binaries {
        &self.common.binaries
    }

    /// The folder with the data and the logs of all nodes.
    pub fn folder(&self) -> &Path {
        self.root.path()
    }

    /// Adds a replica, as a base backup of the primary, and starts it.
    ///
    /// # Errors
    ///
    /// When the primary does not run, or the replica does not start.
    pub async fn add_replica(&mut self) -> Result<&Node, SandboxError> {
        self.add_replicas(1).await?;
        Ok(self.replica(self.replicas - 1))
    }

    /// Adds replicas, all at the same time.
    pub(crate) async fn add_replicas(&mut self, count: usize) -> Result<(), SandboxError> {
        let numbers = self
            .nodes
            .iter()
            .filter_map(|node| node.name().strip_prefix("replica-")?.parse().ok());
        let last: usize = numbers.max().unwrap_or(0);
        let new = (last + 1..=last + count).map(|number| self.new_node(&format!("replica-{number}"), None));
        let new: Vec<_> = new.collect::<Result<_, _>>()?;
        let primary = self.primary();
        try_join_all(new.iter().map(|node| async move {
            node.become_replica_of(primary).await?;
            node.start().await
        }))
        .await?;
        self.nodes.splice(1 + self.replicas..1 + self.replicas, new);
        self.replicas += count;
        self.save()
    }

    /// Fails over to a replica: the primary, if it still runs, is stopped (killed, if it is frozen);
    /// the replica takes writes; the other replicas follow it, those that are stopped, frozen or paused
    /// as soon as they can. From then on [`primary`](Self::primary) is that node. The old one is the last
    /// of [`nodes`](Self::nodes) and is not started again by itself; who starts it has two primaries, as
    /// in real life.
    ///
    /// # Errors
    ///
    /// When there is no such replica, or a step fails.
    pub async fn promote(&mut self, index: usize) -> Result<(), SandboxError> {
        if index >= self.replicas {
            return Err(SandboxError::NoSuchReplica {
                index,
                count: self.replicas,
            });
        }
        let old = self.primary();
        if old.is_frozen() {
            old.kill().await?;
        } else {
            old.stop().await?;
        }
        self.replica(index).promote().await?;

        let new = self.nodes.remove(1 + index);
        let old = std::mem::replace(&mut self.nodes[0], new);
        self.nodes.push(old);
        self.replicas -= 1;
        self.save()?;
        let primary = self.primary();
        try_join_all(self.replicas().iter().map(|replica| replica.turn_to(primary))).await?;
        Ok(())
    }

    /// Waits until every running replica has replayed what the primary has confirmed so far. Frozen
    /// replicas count as running.
    ///
    /// # Errors
    ///
    /// When the primary does not answer, or a replica does not get there within 30 seconds.
    pub async fn wait_caught_up(&self) -> Result<(), SandboxError> {
        let lsn = self.primary().current_lsn().await?;
        let running = self.replicas().iter().filter(|replica| replica.is_running());
        try_join_all(running.map(|replica| replica.wait_for_replay(&lsn))).await?;
        Ok(())
    }

    /// Ends the cluster. With a folder that is kept, all nodes are stopped in an orderly way; a temporary
    /// folder is removed.
    ///
    /// # Errors
    ///
    /// When a server cannot be stopped in an orderly way; it is stopped nevertheless.
    pub async fn stop(mut self) -> Result<(), SandboxError> {
        let stopped = match self.state {
            // Nobody will ever start the data again.
            None => Ok(()),
            Some(_) => self.stop_nodes().await,
        };
        self.end().await;
        stopped
    }

    /// Stops all nodes and removes the folder with everything in it.
    ///
    /// # Errors
    ///
    /// [`SandboxError::NotCreatedHere`] when the folder existed before the cluster; the nodes are
    /// stopped then, and the folder stays.
    pub async fn delete(mut self) -> Result<(), SandboxError> {
        if self.state.as_ref().is_some_and(|state| !state.created_here) {
            let path = self.root.path().to_owned();
            self.stop().await?;
            return Err(SandboxError::NotCreatedHere { path });
        }
        if let Some(guardian) = &mut self.guardian {
            guardian.order_removal();
        }
        self.end().await;
        Ok(())
    }

    /// The primary first: before it ends, it sends everything to the replicas that are connected.
    async fn stop_nodes(&self) -> Result<(), SandboxError> {
        for node in &self.nodes {
            node.stop().await?;
        }
        Ok(())
    }

    /// Leaves the rest to the guardian, without keeping the runtime from its work.
    async fn end(&mut self) {
        self.common.closed.store(true, Ordering::Release);
        if let Some(guardian) = self.guardian.take() {
            let dismissed = tokio::task::spawn_blocking(move || drop(guardian)).await;
            dismissed.expect("dropping a guardian does not panic and is not cancelled");
        }
    }

    /// A node of this cluster, on a port that is its own from now on.
    pub(crate) fn new_node(&self, name: &str, remembered: Option<u16>) -> Result<Node, SandboxError> {
        let port = ReservedPort::for_node(self.first_port, name, remembered)?;
        Ok(Node::new(self.common.clone(), name, port))
    }

    /// Remembers the nodes, if the folder is kept.
    pub(crate) fn save(&mut self) -> Result<(), SandboxError> {
        let Some(state) = &mut self.state else {
            return Ok(());
        };
        let roles = std::iter::once(Role::Primary)
            .chain(std::iter::repeat_n(Role::Replica, self.replicas))
            .chain(std::iter::repeat(Role::Former));
        state.nodes = std::iter::zip(&self.nodes, roles)
            .map(|(node, role)| SavedNode {
                name: node.name().to_owned(),
                port: node.port(),
                role,
            })
            .collect();
        state.save(self.root.path())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.common.closed.store(true, Ordering::Release);
        drop(self.guardian.take());
        // Takes note of their end, so that no zombies stay in a process that lives on.
        for node in &self.nodes {
            node.is_running();
        }
    }
}
