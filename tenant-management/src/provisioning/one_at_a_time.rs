//! Lets callers who want the same tenant from this instance take turns: the first does the work, and each of the others
//! finds it done with one look, instead of all of them looking again and again. What other instances do is not its business.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::tenant_id::TenantId;

/// Turns by tenant. Names that nobody waits for take no memory for long.
#[derive(Debug, Default)]
pub(crate) struct OneAtATime {
    turns: Mutex<HashMap<TenantId, Weak<AsyncMutex<()>>>>,
}

impl OneAtATime {
    /// Waits for the caller's turn, first come, first served. The turn lasts until the guard is dropped.
    pub(super) async fn turn(&self, tenant: &TenantId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock();
            if let Some(turn) = turns.get(tenant).and_then(Weak::upgrade) {
                turn
            } else {
                turns.retain(|_, turn| turn.strong_count() > 0);
                let turn = Arc::new(AsyncMutex::new(()));
                turns.insert(*tenant, Arc::downgrade(&turn));
                turn
            }
        };
        turn.lock_owned().await
    }
}
