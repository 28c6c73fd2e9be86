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
    /// All levels, the strictest first.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Recent, Self::Eventual];

    /// The level as it appears in metrics, logs and documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Recent => "recent",
            Self::Eventual => "eventual",
        }
    }

    /// This level, and the caller's own writes count: for an [`Eventual`](Self::Eventual) read that would contradict what
    /// the caller has just chosen, such as a report after a change of its settings. `Strict` and `Recent` reads see the
    /// caller's writes anyway.
    pub const fn and_own_writes(self) -> ReadLevel {
        ReadLevel {
            consistency: self,
            own_writes: true,
        }
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a read asks for: a level, and whether the caller's own writes have to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadLevel {
    consistency: Consistency,
    own_writes: bool,
}

impl ReadLevel {
    /// The level.
    pub const fn consistency(self) -> Consistency {
        self.consistency
    }

    /// Whether the caller's own writes have to be seen.
    pub const fn sees_own_writes(self) -> bool {
        self.own_writes
    }
}

impl From<Consistency> for ReadLevel {
    fn from(consistency: Consistency) -> Self {
        Self {
            consistency,
            own_writes: consistency != Consistency::Eventual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_eventual_reads_may_miss_the_callers_writes() {
        for level in Consistency::ALL {
            assert_eq!(
                ReadLevel::from(level).sees_own_writes(),
                level != Consistency::Eventual
            );
            assert!(level.and_own_writes().sees_own_writes());
            assert_eq!(level.and_own_writes().consistency(), level);
        }
    }
}
