//! What a cluster's reads are told when they start. Refuses to know where the numbers come from.

use std::time::Duration;

/// How it is found out whether a replica has a caller's write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By places in the write-ahead log: exact.
    #[default]
    Lsn,
    /// By the time since the write: for servers without usable places in the log. Right as long as no replica is ever
    /// further behind than [`ReadSettings::window`].
    Window,
}

/// How reads of a cluster are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSettings {
    /// How it is found out whether a replica has a caller's write.
    pub mode: Mode,
    /// Time between two probes of a node.
    pub probe_interval: Duration,
    /// How long a probe may take. A node that hangs is found by this limit.
    pub probe_timeout: Duration,
    /// A replica whose data may be older is not chosen.
    pub max_staleness: Duration,
    /// A replica that is further behind, in bytes of log, is not chosen.
    pub max_lag_bytes: Option<u64>,
    /// How long a read waits for a replica to replay the caller's write before it goes to the primary.
    pub catch_up_wait: Duration,
    /// In mode [`Mode::Window`]: how long after a write the caller's reads go to the primary.
    pub window: Duration,
    /// Reads at a time that may go to the primary because no replica qualifies. Half of them for `eventual` reads at most.
    pub fallback_limit: u32,
    /// How long a `recent` read waits for its turn when so many are under way.
    pub fallback_wait: Duration,
    /// Good probes in a row after which a replica that had left comes back.
    pub good_probes: u32,
    /// How long the primary has to be silent before a promoted replica is taken for the primary.
    pub failover_after: Duration,
}

impl Default for ReadSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Lsn,
            probe_interval: Duration::from_millis(250),
            probe_timeout: Duration::from_millis(200),
            max_staleness: Duration::from_secs(2),
            max_lag_bytes: None,
            catch_up_wait: Duration::from_millis(10),
            window: Duration::from_secs(5),
            fallback_limit: 16,
            fallback_wait: Duration::from_millis(250),
            good_probes: 3,
            failover_after: Duration::from_secs(1),
        }
    }
}
