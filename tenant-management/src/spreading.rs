//! From a change in the catalog to all instances: the own table first, then a bounded wait for the others.

use std::{sync::Arc, time::Duration};

use crate::{
    control::{Changed, Propagation},
    error::ControlError,
    ids::Revision,
    instances::Presence,
    routing::follower::{Follower, Prompt},
};

/// Brings changes to all instances. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Spreading {
    pub(crate) follower: Arc<Follower>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) wait_for_instances: Duration,
}

impl Spreading {
    /// Brings the own table to `revision`, then waits for the others.
    pub(crate) async fn propagate(&self, revision: Revision) -> Result<Propagation, ControlError> {
        self.follower.catch_up_to(revision, Prompt::Own).await?;
        Ok(self.presence.wait_for(revision, self.wait_for_instances).await?)
    }

    /// The answer to a command whose change has this revision; zero when there was nothing to change.
    pub(crate) async fn spread<T>(&self, value: T, revision: Revision) -> Result<Changed<T>, ControlError> {
        Ok(Changed {
            value,
            newly: revision > Revision::default(),
            propagation: self.propagate(revision).await?,
        })
    }
}
