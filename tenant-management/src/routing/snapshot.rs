//! What a routing table says at one moment, and how the next moment is made of it: persistent maps, so that a copy with a few
//! other rows costs those rows.
//!
//! Refuses to know who reads it and when it is replaced.

use std::{
    borrow::Borrow,
    hash::{Hash, Hasher},
    sync::Arc,
};

use imbl::{GenericHashMap, shared_ptr::DefaultSharedPtr};

use super::{
    digest::Digest,
    table::{RouteUpdate, TableUpdate},
};
use crate::{
    control::ApiKey,
    ids::{Revision, TenantUuid},
    route::Route,
    tenant_id::TenantId,
};

type Map<K, V> = GenericHashMap<K, V, foldhash::fast::RandomState, DefaultSharedPtr>;

/// What the table said at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// Nothing that changed up to this revision is missing.
    pub(super) revision: Revision,
    /// The last change that was about somebody's identity.
    pub(super) identity: Revision,
    pub(super) routes: Map<ByName, ()>,
    pub(super) names: Map<TenantUuid, TenantId>,
    pub(super) domains: Map<Arc<str>, TenantId>,
    domains_of: Map<TenantUuid, Arc<[Arc<str>]>>,
    pub(super) api_keys: Map<Arc<str>, Arc<ApiKey>>,
}

/// A route as an entry that is found by its tenant's name. The name lies in the route itself, so that a look-up touches no
/// memory that its caller would not read anyway.
#[derive(Clone, Debug)]
pub(super) struct ByName(pub(super) Arc<Route>);

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.tenant == other.0.tenant
    }
}

impl Eq for ByName {}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.tenant.hash(state);
    }
}

impl Borrow<TenantId> for ByName {
    fn borrow(&self) -> &TenantId {
        &self.0.tenant
    }
}

impl Snapshot {
    /// A digest of all rows, the revision, and that of the newest row.
    pub(super) fn digest(&self) -> (Digest, Revision, Revision) {
        let (mut digest, mut newest) = (Digest::default(), self.revision);
        for uuid in self.names.keys() {
            let route = self.names.get(uuid).and_then(|name| self.route(name));
            // A name that leads to another tenant, or nowhere, is a row that the catalog does not have.
            let route = route.filter(|route| route.uuid == *uuid);
            match route {
                Some(route) => {
                    newest = newest.max(route.revision);
                    digest.add_tenant(route);
                }
                None => digest.tenants.rows -= 1,
            }
        }
        // Entries that no identity leads to.
        digest.tenants.rows += i64::try_from(self.routes.len()).unwrap_or(i64::MAX)
            - i64::try_from(self.names.len()).unwrap_or(i64::MAX);
        for (domain, name) in &self.domains {
            let tenant = self.route(name).map(|route| route.uuid);
            digest.add_domain(domain, tenant.unwrap_or(TenantUuid(uuid::Uuid::nil())));
        }
        for key in self.api_keys.values() {
            newest = newest.max(key.revision);
            digest.add_api_key(key);
        }
        (digest, self.revision, newest)
    }

    pub(super) fn route(&self, tenant: &TenantId) -> Option<&Arc<Route>> {
        self.routes.get_key_value(tenant).map(|(entry, ())| &entry.0)
    }

    pub(super) fn update(&mut self, update: TableUpdate) {
        for update in update.routes {
            self.update_route(update);
        }
        for key in update.api_keys {
            self.update_api_key(key);
        }
        self.identity = self.identity.max(update.identity);
        if let Some(revision) = update.complete_to {
            self.revision = self.revision.max(revision);
        }
    }

    fn insert_route(&mut self, route: Arc<Route>) {
        // Replaces the entry of an equal name with the key that it came with, which is what differs; a test says so.
        self.routes.insert(ByName(route), ());
    }

    fn update_route(&mut self, RouteUpdate { route, domains }: RouteUpdate) {
        let known = self.names.get(&route.uuid).and_then(|name| self.route(name));
        if known.is_some_and(|known| known.revision > route.revision) {
            return;
        }
        let only_the_route = known.is_some_and(|known| known.tenant == route.tenant)
            && domains.is_empty()
            && !self.domains_of.contains_key(&route.uuid);
        if only_the_route && route.state.is_routed() {
            return self.insert_route(route);
        }
        self.remove_route(route.uuid);
        if !route.state.is_routed() {
            return;
        }
        if !domains.is_empty() {
            let domains: Arc<[Arc<str>]> = domains.into_iter().map(Into::into).collect();
            for domain in domains.iter() {
                self.domains.insert(Arc::clone(domain), route.tenant);
            }
            self.domains_of.insert(route.uuid, domains);
        }
        self.names.insert(route.uuid, route.tenant);
        self.insert_route(route);
    }

    fn remove_route(&mut self, uuid: TenantUuid) {
        let Some(name) = self.names.remove(&uuid) else {
            return;
        };
        // The name may belong to a newer tenant by now.
        if self.route(&name).is_some_and(|route| route.uuid == uuid) {
            self.routes.remove(&name);
        }
        for domain in self
            .domains_of
            .remove(&uuid)
            .iter()
            .flat_map(|domains| domains.iter())
        {
            if self.domains.get(domain) == Some(&name) {
                self.domains.remove(domain);
            }
        }
    }

    fn update_api_key(&mut self, key: ApiKey) {
        if self
            .api_keys
            .get(key.id.as_str())
            .is_some_and(|known| known.revision > key.revision)
        {
            return;
        }
        self.api_keys.insert(key.id.as_str().into(), Arc::new(key));
    }
}
