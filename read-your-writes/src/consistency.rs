//! How fresh a read has to be. Named at every call site; nothing picks for the caller.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How fresh a read has to be, and so which servers may answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consistency {
    /// The primary. For reads whose staleness is a fault that the layer cannot detect: webhook handlers, payments,
    /// credentials and permissions.
    Strict,
    /// A replica that has replayed the caller's last write, else the primary. For what a user does and sees; the sensible
    /// choice when in doubt.
    Recent,
    /// A replica within the staleness limit. For reports, audit logs, lists past the first page.
    Eventual,
}

impl Consistency {
    /// The level as it appears in metrics, logs and documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Recent => "recent",
            Self::Eventual => "eventual",
        }
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
