//! From the name in a request to a route: the table first, then one look-up in the catalog.
//!
//! Concurrent misses of one name share a look-up; names that are nowhere are remembered for a moment, and forgotten as soon
//! as the table has a newer revision; and all look-ups together are bounded in number and rate, so that somebody who
//! guesses names cannot load the catalog.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use moka::future::Cache;
use tokio::sync::Semaphore;

use super::table::{RoutingTable, TableUpdate};
use crate::{
    catalog::{Catalog, CatalogError, changes::RouteName},
    control::ApiKey,
    ids::{Revision, TenantUuid},
    route::Route,
    tenant_id::TenantId,
};

/// How long a name that is nowhere is remembered at most. A newer revision makes it forgotten at once.
const ABSENT_FOR: Duration = Duration::from_secs(5);
/// How many absent names are remembered at most.
const ABSENT_NAMES: u64 = 10_000;
/// Look-ups that may be under way at once.
const PARALLEL_LOOK_UPS: usize = 4;
/// Look-ups per second, and at once after a quiet time.
const LOOK_UPS_PER_SECOND: NonZeroU32 = NonZeroU32::new(200).expect("not zero");
/// Look-ups that found something older than the table are tried again this often.
const TRIES: usize = 3;

/// Why there is no route.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The catalog has no such tenant.
    #[error("there is no such tenant")]
    Unknown,
    /// Whether there is such a tenant cannot be found out at the moment.
    #[error("whether this tenant exists cannot be found out at the moment")]
    Unavailable(#[source] Option<Arc<CatalogError>>),
}

/// What a look-up is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Wanted {
    Route(RouteName),
    ApiKey(Box<str>),
}

/// How a shared look-up ends when it does not end with "absent".
#[derive(Clone, Debug)]
enum Outcome {
    /// It is in the table now.
    Found,
    /// The rate of look-ups is used up.
    TooMany,
    Failed(Arc<CatalogError>),
}

/// Answers requests for routes and API keys.
#[derive(Debug)]
pub(crate) struct Resolver {
    table: Arc<RoutingTable>,
    catalog: Catalog,
    /// Keyed by the table's revision too: what was absent at an older revision is not looked at again.
    absent: Cache<(Wanted, Revision), ()>,
    parallel: Semaphore,
    rate: DefaultDirectRateLimiter,
}

impl Resolver {
    pub(crate) fn new(table: Arc<RoutingTable>, catalog: Catalog) -> Self {
        Self {
            table,
            catalog,
            absent: Cache::builder()
                .max_capacity(ABSENT_NAMES)
                .time_to_live(ABSENT_FOR)
                .build(),
            parallel: Semaphore::new(PARALLEL_LOOK_UPS),
            rate: RateLimiter::direct(Quota::per_second(LOOK_UPS_PER_SECOND)),
        }
    }

    /// The route of the tenant with this public name.
    pub(crate) async fn by_name(&self, tenant: &TenantId) -> Result<Arc<Route>, ResolveError> {
        let find = || self.table.get(tenant);
        self.find(find, || Wanted::Route(RouteName::Slug(*tenant))).await
    }

    /// The route of the tenant with this identity.
    pub(crate) async fn by_uuid(&self, uuid: TenantUuid) -> Result<Arc<Route>, ResolveError> {
        let find = || self.table.get_by_uuid(uuid);
        self.find(find, || Wanted::Route(RouteName::Uuid(uuid))).await
    }

    /// The route of the tenant that this host name, in lower case, was registered for.
    pub(crate) async fn by_domain(&self, domain: &str) -> Result<Arc<Route>, ResolveError> {
        let find = || self.table.get_by_domain(domain);
        self.find(find, || Wanted::Route(RouteName::Domain(domain.to_owned())))
            .await
    }

    /// The API key with this id, revoked or not.
    pub(crate) async fn api_key(&self, id: &str) -> Result<Arc<ApiKey>, ResolveError> {
        let find = || self.table.api_key(id);
        self.find(find, || Wanted::ApiKey(id.into())).await
    }

    async fn find<T>(
        &self,
        find: impl Fn() -> Option<T>,
        wanted: impl FnOnce() -> Wanted,
    ) -> Result<T, ResolveError> {
        match find() {
            Some(found) => Ok(found),
            // Rare and large: in a box, it does not make the future of every request large.
            None => Box::pin(self.find_in_catalog(find, wanted())).await,
        }
    }

    async fn find_in_catalog<T>(
        &self,
        find: impl Fn() -> Option<T>,
        wanted: Wanted,
    ) -> Result<T, ResolveError> {
        for _ in 0..TRIES {
            let key = (wanted.clone(), self.table.revision());
            match self.absent.try_get_with(key, self.look_up(&wanted)).await {
                Ok(()) => {
                    metrics::counter!("tenantry_routing_unknown_total").increment(1);
                    return Err(ResolveError::Unknown);
                }
                Err(outcome) => match Outcome::clone(&outcome) {
                    Outcome::TooMany => return Err(ResolveError::Unavailable(None)),
                    Outcome::Failed(error) => return Err(ResolveError::Unavailable(Some(error))),
                    Outcome::Found => {
                        if let Some(found) = find() {
                            return Ok(found);
                        }
                    }
                },
            }
        }
        // Found each time, and each time the table moved on before it could take it in: it keeps being changed.
        Err(ResolveError::Unavailable(None))
    }

    /// Asks the catalog. `Ok` means absent and is what the cache remembers.
    async fn look_up(&self, wanted: &Wanted) -> Result<(), Outcome> {
        let _turn = self
            .parallel
            .acquire()
            .await
            .expect("the semaphore is never closed");
        self.rate.check().map_err(|_| Outcome::TooMany)?;
        metrics::counter!("tenantry_routing_look_ups_total").increment(1);
        let failed = |error: CatalogError| Outcome::Failed(Arc::new(error));
        let mut update = TableUpdate::default();
        let seen_at = match wanted {
            Wanted::Route(name) => {
                let (found, seen_at) = self.catalog.look_up_route(name).await.map_err(failed)?;
                let routed = found.filter(|found| found.route.state.is_routed());
                update.routes.extend(routed.map(Into::into));
                seen_at
            }
            Wanted::ApiKey(id) => {
                let (found, seen_at) = self.catalog.api_key(id).await.map_err(failed)?;
                update.api_keys.extend(found);
                seen_at
            }
        };
        if update.routes.is_empty() && update.api_keys.is_empty() {
            return Ok(());
        }
        self.table.apply_look_up(update, seen_at);
        Err(Outcome::Found)
    }
}
