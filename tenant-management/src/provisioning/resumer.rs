//! Takes over operations whose owner is gone, and tries failed ones again when their time has come.

use std::{sync::Arc, time::Duration};

use super::Provisioner;
use crate::catalog::CatalogError;

/// How often to look for something to take over.
pub(crate) const LOOK: Duration = Duration::from_secs(1);
/// Operations taken over in one round at most; the rest is for the next, or for another instance.
const AT_ONCE: usize = 4;

impl Provisioner {
    /// One round: takes over what is due, waits for it, and answers how many operations that were.
    pub(crate) async fn resume_due(self: &Arc<Self>) -> Result<usize, CatalogError> {
        let mut outcomes = Vec::new();
        while outcomes.len() < AT_ONCE {
            let Some(lease) = self.catalog.claim_operation(None, self.worker).await? else {
                break;
            };
            tracing::info!(
                tenant.id = %lease.tenant, operation.id = %lease.operation, operation.attempts = lease.attempts,
                "Taking over the creation of a tenant."
            );
            outcomes.push(self.spawn_work(lease));
        }
        let taken = outcomes.len();
        futures::future::join_all(outcomes).await;
        Ok(taken)
    }
}
