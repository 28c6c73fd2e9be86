//! What a cluster is to be like, before it is started.
//!
//! Owns the choices and their defaults. Refuses to know how any of them is carried out.

use std::path::PathBuf;

use crate::binaries::Binaries;
use crate::cluster::Cluster;
use crate::error::SandboxError;

/// Describes a [`Cluster`]; made by [`Cluster::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is started before `start`"]
pub struct ClusterBuilder {
    pub(crate) binaries: Option<Binaries>,
    pub(crate) replicas: usize,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) first_port: Option<u16>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) durable: bool,
}

impl ClusterBuilder {
    /// The PostgreSQL to run. Otherwise [`Binaries::find`] chooses.
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = Some(binaries);
        self
    }

    /// How many streaming replicas there are. None by default.
    pub fn replicas(mut self, count: usize) -> Self {
        self.replicas = count;
        self
    }

    /// Keeps the data in this folder and starts with it the next time. Otherwise a temporary folder is
    /// used, which is removed in the end.
    ///
    /// The folder may be new, empty, or left by an earlier start, even one that was killed. Replicas
    /// that are more than [`replicas`](Self::replicas) says are removed; missing ones are made.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// Gives the primary this port, `replica-1` the next, and so on. Otherwise the kernel chooses, and
    /// a kept folder remembers what it chose.
    pub fn ports(mut self, start: impl Into<Option<u16>>) -> Self {
        self.first_port = start.into();
        self
    }

    /// Sets a parameter of `postgresql.conf` on all nodes. The last one of a name wins.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Whether data survives a crash of the *machine*. Off by default, which makes tests fast;
    /// switch it on for data that is kept, and for measurements. The servers' own crashes, as by
    /// [`Node::kill`](crate::Node::kill), are survived in any case.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Starts the cluster, and returns when all nodes answer queries.
    ///
    /// # Errors
    ///
    /// When there is no usable PostgreSQL, the folder or a port cannot be had, or a server does not
    /// start. Nothing is left running then.
    pub async fn start(self) -> Result<Cluster, SandboxError> {
        Cluster::start(self).await
    }
}
