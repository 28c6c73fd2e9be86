//! What an instance has read about somebody, and believes until it has reason not to.
//!
//! An entry counts while it is young and no change about identities has been heard of since it was read. When the catalog cannot
//! be asked, an older entry counts too, up to a bound (invariants I3 and I11): so long can somebody who was thrown out still be
//! let in by an instance that has been cut off. Refuses to know what is believed.

use std::{
    fmt,
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use moka::sync::Cache;

use crate::{catalog::CatalogError, ids::Revision, instances::Presence, routing::table::RoutingTable};

/// Most entries; the ones that were not asked for lately go first.
const ENTRIES: u64 = 100_000;
/// How old an entry may be when the catalog can be asked. Changes are heard of sooner: this is for what nobody says.
const YOUNG: Duration = Duration::from_secs(10);

/// After how long without contact the catalog is taken to be away. Contact is made every second.
const SILENT: Duration = Duration::from_secs(3);

/// What has been read, by its key.
pub(crate) struct Believed<K, V> {
    entries: Cache<K, Entry<V>>,
    table: Arc<RoutingTable>,
    presence: Arc<Presence>,
    /// How old an entry may be when the catalog cannot be asked.
    bound: Duration,
}

struct Entry<V> {
    value: Arc<V>,
    /// The catalog's revision when it was read, or an earlier one.
    seen_at: Revision,
    read: Instant,
}

impl<V> Clone for Entry<V> {
    fn clone(&self) -> Self {
        Self {
            value: Arc::clone(&self.value),
            ..*self
        }
    }
}

impl<K: Hash + Eq + Send + Sync + 'static, V: Send + Sync + 'static> Believed<K, V> {
    pub(crate) fn new(presence: Arc<Presence>, bound: Duration) -> Self {
        Self {
            entries: Cache::builder()
                .max_capacity(ENTRIES)
                .time_to_live(bound.max(YOUNG))
                .build(),
            table: Arc::clone(&presence.table),
            presence,
            bound,
        }
    }

    /// What is known under the key, asking the catalog by `read` when what is at hand does not count: it is not young, or not
    /// `good` any more. Absence is never believed: it is asked for each time.
    pub(crate) async fn get(
        &self,
        key: K,
        good: impl Fn(&V) -> bool,
        read: impl Future<Output = Result<(Option<V>, Revision), CatalogError>>,
    ) -> Result<Option<Arc<V>>, CatalogError> {
        let known = self
            .entries
            .get(&key)
            .filter(|entry| entry.seen_at >= self.table.identity_revision());
        if let Some(entry) = known
            .as_ref()
            .filter(|entry| entry.read.elapsed() < YOUNG && good(&entry.value))
        {
            return Ok(Some(Arc::clone(&entry.value)));
        }
        // Whoever has not heard of the catalog for a while would only wait for it.
        let silent = self.presence.cut_off_for() > SILENT;
        if let Some(entry) = known
            .as_ref()
            .filter(|entry| silent && entry.read.elapsed() < self.bound)
        {
            return Ok(Some(Arc::clone(&entry.value)));
        }
        match read.await {
            Ok((Some(value), seen_at)) => {
                let value = Arc::new(value);
                let entry = Entry {
                    value: Arc::clone(&value),
                    seen_at,
                    read: Instant::now(),
                };
                self.entries.insert(key, entry);
                Ok(Some(value))
            }
            Ok((None, _)) => {
                self.entries.invalidate(&key);
                Ok(None)
            }
            Err(error @ CatalogError::Unreachable(_)) => {
                let known = known.filter(|entry| entry.read.elapsed() < self.bound);
                known.map(|entry| Some(entry.value)).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }
}

impl<K, V> fmt::Debug for Believed<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Believed")
            .field("bound", &self.bound)
            .finish_non_exhaustive()
    }
}
