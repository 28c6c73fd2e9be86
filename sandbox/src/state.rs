//! What a kept folder remembers between two starts.
//!
//! The file is written after what it speaks of is complete, so that a start which was interrupted is
//! begun again instead of trusted. Refuses to know how nodes are made.

use std::fs;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

use crate::error::{Doing, SandboxError};
use crate::folder::write_private;

/// The memory of a cluster.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// Whether the folder itself was made here, and may be removed.
    pub(crate) created_here: bool,
    /// The superuser's password. The file can be read by nobody else.
    #[serde(serialize_with = "reveal")]
    pub(crate) password: SecretString,
    /// Nodes that are complete. None: the first start did not get to its end.
    pub(crate) nodes: Vec<SavedNode>,
}

/// One node of a kept cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedNode {
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) role: Role,
}

/// What a node is to its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Takes writes.
    Primary,
    /// Follows the primary.
    Replica,
    /// Was the primary before a failover.
    Former,
}

impl State {
    /// A memory without nodes.
    pub(crate) fn new(created_here: bool, password: &SecretString) -> Self {
        Self {
            created_here,
            password: password.clone(),
            nodes: Vec::new(),
        }
    }

    /// Whether a folder has a memory.
    pub(crate) fn is_in(root: &Path) -> bool {
        file(root).exists()
    }

    /// Reads the memory of a folder; `None` when nothing was ever begun in it.
    pub(crate) fn load(root: &Path) -> Result<Option<Self>, SandboxError> {
        if !Self::is_in(root) {
            return Ok(None);
        }
        let path = file(root);
        let text = fs::read_to_string(&path).doing(|| format!("read {}", path.display()))?;
        serde_json::from_str(&text)
            .map(Some)
            .doing(|| format!("understand {}", path.display()))
    }

    /// Replaces the memory of a folder.
    pub(crate) fn save(&self, root: &Path) -> Result<(), SandboxError> {
        let path = file(root);
        let partial = path.with_extension("partial");
        let text = serde_json::to_string_pretty(self).expect("strings and numbers always serialise");
        write_private(&partial, text.as_bytes())
            .and_then(|()| fs::rename(&partial, &path))
            .doing(|| format!("write {}", path.display()))
    }
}

fn reveal<S: Serializer>(password: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(password.expose_secret())
}

fn file(root: &Path) -> PathBuf {
    root.join("cluster.json")
}
