//! What one caller has to see, for the time of a request or of a piece of background work.
//!
//! Owns the positions that reads have to reach and the record of who served them. Refuses to know how they travel: the
//! [layer](crate::PositionLayer) takes them from a request and gives them back with the response.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::{Position, Positions, metrics};

/// What one caller has to see. Clones are the same session, so that work which leaves a request carries its positions along:
/// give a clone to a task that is spawned.
///
/// [`Session::default`] has seen nothing: for work that nobody waits for.
#[derive(Clone, Debug, Default)]
pub struct Session {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    positions: Positions,
    /// Positions that need not be seen any more: all up to them is everywhere, or lost.
    withdrawn: Positions,
    /// Positions of clusters that are not known here: the tenant has moved, or the cluster is gone.
    unknown_cluster: bool,
    served: Vec<ServedBy>,
    staleness: Option<Duration>,
    wrote: bool,
    /// The response's headers have gone out.
    answered: bool,
}

/// Who has served a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// The primary.
    Primary,
    /// The replica of this name.
    Replica(Arc<str>),
}

impl ServedBy {
    /// As it stands in headers and log lines.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Primary => "primary",
            Self::Replica(name) => name,
        }
    }
}

/// What a session has come to, for a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// What the caller's next reads have to see.
    pub positions: Positions,
    /// Who served reads and writes, in the order of their first use.
    pub served: Vec<ServedBy>,
    /// How old what a replica has answered can be at most.
    pub staleness: Option<Duration>,
    /// Whether anything was written.
    pub wrote: bool,
    /// Positions that need not be seen any more: all up to them is everywhere, or lost.
    pub(crate) withdrawn: Positions,
}

impl Session {
    /// A session that has to see these positions.
    pub fn new(positions: Positions) -> Self {
        let state = State {
            positions,
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// What reads on this cluster have to see.
    pub fn position(&self, cluster: &str) -> Option<Position> {
        self.state.lock().positions.get(cluster)
    }

    /// Notes a commit. From here on reads of this session see it.
    pub fn wrote(&self, cluster: &Arc<str>, position: Position) {
        let mut state = self.state.lock();
        state.positions.raise(cluster, position);
        state.wrote = true;
        let answered = state.answered;
        drop(state);
        metrics::position("written");
        if answered {
            metrics::position("too_late");
            tracing::error!(
                db.cluster = &**cluster,
                "A write was committed after its response had begun; the client cannot be told how far to look."
            );
        }
    }

    /// Notes who served a read or write, and how old the data can be at most.
    pub fn served(&self, by: ServedBy, staleness: Option<Duration>) {
        let mut state = self.state.lock();
        if !state.served.contains(&by) {
            state.served.push(by);
        }
        state.staleness = state.staleness.max(staleness);
    }

    /// Looks for positions of clusters that `known` does not know. As long as the session has one, its reads go to the
    /// primary.
    pub fn look_for_unknown_clusters(&self, known: impl Fn(&str) -> bool) {
        let mut state = self.state.lock();
        let unknown = state.positions.iter().any(|(cluster, _)| !known(cluster));
        if unknown && !state.unknown_cluster {
            metrics::position("unknown_cluster");
        }
        state.unknown_cluster = unknown;
    }

    pub(crate) fn has_unknown_cluster(&self) -> bool {
        self.state.lock().unknown_cluster
    }

    /// Replaces the position that was `checked`, or drops it, unless it has grown meanwhile.
    pub(crate) fn replace(&self, cluster: &Arc<str>, checked: Position, by: Option<Position>) -> bool {
        let mut state = self.state.lock();
        let replaced = state.positions.replace(cluster, checked, by);
        if replaced {
            state.withdrawn.raise(cluster, checked);
        }
        replaced
    }

    /// What it has come to so far.
    pub fn summary(&self) -> Summary {
        let state = self.state.lock();
        Summary {
            positions: state.positions.clone(),
            served: state.served.clone(),
            staleness: state.staleness,
            wrote: state.wrote,
            withdrawn: state.withdrawn.clone(),
        }
    }

    /// What it has come to when the response's headers go out.
    pub(crate) fn finish(&self) -> Summary {
        self.state.lock().answered = true;
        self.summary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lsn, Timeline};

    #[test]
    fn a_clone_is_the_same_session() {
        let session = Session::default();
        let main: Arc<str> = "main".into();
        let position = Position::now(Timeline(1), Lsn::from_bytes(7));
        session.clone().wrote(&main, position);
        assert_eq!(session.position("main"), Some(position));
        assert!(session.summary().wrote);
    }

    #[test]
    fn who_served_is_told_once_each_and_the_oldest_data_counts() {
        let session = Session::default();
        let second = Duration::from_secs(1);
        session.served(ServedBy::Replica("replica-1".into()), Some(second));
        session.served(ServedBy::Primary, None);
        session.served(ServedBy::Replica("replica-1".into()), Some(second / 2));
        let summary = session.summary();
        let names: Vec<_> = summary.served.iter().map(ServedBy::as_str).collect();
        assert_eq!(names, ["replica-1", "primary"]);
        assert_eq!(summary.staleness, Some(second));
    }

    #[test]
    fn a_position_of_an_unknown_cluster_is_noticed() {
        let session = Session::default();
        session.wrote(&"gone".into(), Position::now(Timeline(1), Lsn::from_bytes(7)));
        session.look_for_unknown_clusters(|name| name == "gone");
        assert!(!session.has_unknown_cluster());
        session.look_for_unknown_clusters(|name| name == "main");
        assert!(session.has_unknown_cluster());
    }
}
