//! The parts of the [schedule](super): identities, states, lanes. Refuses to decide anything.

use std::{collections::VecDeque, time::Instant};

use crate::ids::{Generation, TenantUuid};

/// One generation of one tenant: what an idle connection is kept under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) struct Key {
    pub(in super::super) tenant: TenantUuid,
    pub(in super::super) generation: Generation,
}

/// A connection, from the decision to open it until its backend is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) struct ConnectionId(pub(super) u64);

/// A caller that waits. Later ones have greater numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in super::super) struct WaiterId(pub(super) u64);

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum CloseReason {
    /// Another tenant, or another generation of the same, needs the place.
    Room,
    /// Nobody has used it for as long as idle connections are kept.
    Idle,
    /// Its generation is over.
    Retired,
    /// Its session may hold settings of the last use.
    Tainted,
    /// It was given back in the middle of a statement or transaction.
    Abandoned,
    /// The server or the network broke it.
    Broken,
    /// It was idle while another connection to this server broke.
    Suspect,
    /// It could not be opened, or led to the wrong database.
    NotOpened,
    /// The pool shuts down, or somebody asked for all idle connections to be closed.
    Cleared,
}

impl CloseReason {
    /// The reason as a metric's label.
    pub(in super::super) const fn as_str(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Idle => "idle",
            Self::Retired => "retired",
            Self::Tainted => "tainted",
            Self::Abandoned => "abandoned",
            Self::Broken => "broken",
            Self::Suspect => "suspect",
            Self::NotOpened => "not_opened",
            Self::Cleared => "cleared",
        }
    }
}

/// What is to be done in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Action {
    /// Hand an open connection to a waiter.
    Grant {
        connection: ConnectionId,
        waiter: WaiterId,
    },
    /// Open a connection in the way that this waiter's route says; then `opened` or
    /// `open_failed`.
    Open {
        connection: ConnectionId,
        waiter: WaiterId,
    },
    /// Close a connection and tell `closed` when its backend is gone.
    Close {
        connection: ConnectionId,
        reason: CloseReason,
    },
}

/// Connections by state, and callers that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Counts {
    pub(in super::super) opening: usize,
    pub(in super::super) in_use: usize,
    pub(in super::super) idle: usize,
    pub(in super::super) closing: usize,
    pub(in super::super) waiting: usize,
}

impl Counts {
    /// Places that are taken.
    pub(in super::super) fn open(&self) -> usize {
        self.opening + self.in_use + self.idle + self.closing
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Opening,
    InUse,
    Idle { stamp: u64, since: Instant },
    Closing,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) key: Key,
    pub(super) state: State,
    /// When it was opened; absent before.
    pub(super) opened: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) waiters: VecDeque<WaiterId>,
    /// The last used is last.
    pub(super) idle: Vec<ConnectionId>,
    pub(super) opening: usize,
    /// When its last turn began or ended, or it began to wait.
    pub(super) turn: u64,
    /// Its entry in the schedule's list of needy lanes and how many places it could use.
    pub(super) listed: Option<(Rank, usize)>,
}

impl Lane {
    /// Connections that are wanted and not on their way.
    pub(super) fn missing(&self) -> usize {
        self.waiters.len().saturating_sub(self.opening)
    }
}

#[derive(Debug)]
pub(super) struct Tenant {
    /// Connections that are opening, in use or idle.
    pub(super) held: usize,
    pub(super) closing: usize,
    /// Connections of lower generations are not kept.
    pub(super) retired_below: Generation,
}

/// The order in which lanes get free places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) held: usize,
    pub(super) turn: u64,
    pub(super) key: Key,
}
