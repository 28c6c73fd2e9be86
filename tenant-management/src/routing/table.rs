//! The routing table: an immutable snapshot behind one atomic pointer.
//!
//! A reader sees the table before a change or after it, never between (invariant I2): a published snapshot cannot be
//! changed, and the next one shares all but the changed rows with it, so that a change costs what changed and not what is
//! there. Refuses to know where rows come from.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::{digest::Digest, snapshot::Snapshot};
use crate::{
    control::ApiKey,
    ids::{Revision, TenantUuid},
    route::Route,
    tenant_id::TenantId,
};

/// The routing table of one instance. Look-ups take no lock and never wait for a change.
#[derive(Debug, Default)]
pub struct RoutingTable {
    current: ArcSwap<Snapshot>,
    /// Held by whoever makes the next snapshot out of the current one; readers never see it.
    changing: Mutex<()>,
}

/// One tenant's row in a change: what the catalog says about it now.
#[derive(Clone, Debug)]
pub struct RouteUpdate {
    /// The route. One in a state that routing does not know ([`crate::state::TenantState::is_routed`]) removes the tenant.
    pub route: Arc<Route>,
    /// Host names that mean the tenant.
    pub domains: Vec<String>,
}

/// Rows that change together. Readers see all of them or none.
#[derive(Clone, Debug, Default)]
pub struct TableUpdate {
    /// Tenants.
    pub routes: Vec<RouteUpdate>,
    /// API keys, revoked ones included.
    pub api_keys: Vec<ApiKey>,
    /// The last change that ended or altered what may be believed about somebody; zero when it is not known.
    pub identity: Revision,
    /// With these rows, nothing up to this revision is missing.
    pub complete_to: Option<Revision>,
}

impl RoutingTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// The route of a tenant. `None`: the table does not know the name, and nothing else is offered instead.
    pub fn get(&self, tenant: &TenantId) -> Option<Arc<Route>> {
        self.current.load().route(tenant).cloned()
    }

    /// The route of the tenant with this identity.
    pub fn get_by_uuid(&self, uuid: TenantUuid) -> Option<Arc<Route>> {
        let snapshot = self.current.load();
        snapshot.route(snapshot.names.get(&uuid)?).cloned()
    }

    /// The route of the tenant that a registered host name (in lower case) means.
    pub fn get_by_domain(&self, domain: &str) -> Option<Arc<Route>> {
        let snapshot = self.current.load();
        snapshot.route(snapshot.domains.get(domain)?).cloned()
    }

    /// The API key with this id, revoked or not.
    pub fn api_key(&self, id: &str) -> Option<Arc<ApiKey>> {
        self.current.load().api_keys.get(id).cloned()
    }

    /// The revision up to which nothing is missing.
    pub fn revision(&self) -> Revision {
        self.current.load().revision
    }

    /// The last known change that ended or altered what may be believed about somebody: whatever was read before it has to
    /// be read again.
    pub fn identity_revision(&self) -> Revision {
        self.current.load().identity
    }

    /// Tenants in the table.
    pub fn len(&self) -> usize {
        self.current.load().routes.len()
    }

    /// Whether there are no tenants in the table.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Publishes the table after `update`. A row never replaces a newer one of the same tenant or key.
    pub fn apply(&self, update: TableUpdate) {
        let _alone = self.changing.lock();
        let mut next = Snapshot::clone(&self.current.load());
        next.update(update);
        self.current.store(Arc::new(next));
    }

    /// Publishes a table of these rows and no others. For a repair by somebody who has read everything and lets nobody else
    /// [apply](Self::apply) changes meanwhile: unlike a change, it may take the table back to an older revision.
    pub(crate) fn replace(&self, update: TableUpdate) {
        let _alone = self.changing.lock();
        let mut next = Snapshot::default();
        next.update(update);
        self.current.store(Arc::new(next));
    }

    /// A digest of all rows, the table's revision, and that of its newest row: look-ups bring rows that are newer. Takes as
    /// long as there are rows.
    pub(crate) fn digest(&self) -> (Digest, Revision, Revision) {
        self.current.load_full().digest()
    }

    /// Adds what a look-up found in the catalog when the catalog was at `seen_at`. Answers whether it was believed: a
    /// look-up that read before the table's own revision may tell of a tenant that has been removed since.
    pub fn apply_look_up(&self, update: TableUpdate, seen_at: Revision) -> bool {
        let _alone = self.changing.lock();
        let current = self.current.load();
        if seen_at < current.revision {
            return false;
        }
        let mut next = Snapshot::clone(&current);
        next.update(update);
        self.current.store(Arc::new(next));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::{ClusterName, Generation},
        state::TenantState,
    };

    fn update(
        name: &str,
        uuid: TenantUuid,
        revision: i64,
        state: TenantState,
        domains: &[&str],
    ) -> RouteUpdate {
        RouteUpdate {
            route: Arc::new(Route {
                tenant: TenantId::parse_new(name).unwrap(),
                uuid,
                state,
                cluster: ClusterName::parse("main").unwrap(),
                generation: Generation(1),
                revision: Revision(revision),
                password: vec![].into(),
            }),
            domains: domains.iter().map(ToString::to_string).collect(),
        }
    }

    fn apply(table: &RoutingTable, update: RouteUpdate) {
        table.apply(TableUpdate {
            routes: vec![update],
            ..TableUpdate::default()
        });
    }

    fn acme() -> TenantId {
        TenantId::parse_new("acme").unwrap()
    }

    #[test]
    fn what_is_not_there_has_no_route() {
        let table = RoutingTable::new();
        apply(
            &table,
            update(
                "globex",
                TenantUuid::generate(),
                1,
                TenantState::Created,
                &["globex.example"],
            ),
        );

        assert_eq!(table.get(&acme()), None);
        assert_eq!(table.get_by_uuid(TenantUuid::generate()), None);
        assert_eq!(table.get_by_domain("acme.example"), None);
    }

    #[test]
    fn an_older_row_never_replaces_a_newer_one() {
        let (table, uuid) = (RoutingTable::new(), TenantUuid::generate());
        apply(&table, update("acme", uuid, 2, TenantState::Suspended, &[]));
        apply(&table, update("acme", uuid, 1, TenantState::Created, &[]));

        assert_eq!(table.get(&acme()).unwrap().state, TenantState::Suspended);
    }

    #[test]
    fn a_newer_row_replaces_an_older_one() {
        let (table, uuid) = (RoutingTable::new(), TenantUuid::generate());
        for revision in 1..100 {
            apply(&table, update("acme", uuid, revision, TenantState::Created, &[]));
            assert_eq!(table.get(&acme()).unwrap().revision, Revision(revision));
            assert_eq!(table.get_by_uuid(uuid).unwrap().revision, Revision(revision));
        }
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_look_up_from_before_a_removal_does_not_bring_the_tenant_back() {
        let (table, uuid) = (RoutingTable::new(), TenantUuid::generate());
        table.apply(TableUpdate {
            routes: vec![update("acme", uuid, 3, TenantState::Purged, &[])],
            complete_to: Some(Revision(3)),
            ..TableUpdate::default()
        });
        let found = TableUpdate {
            routes: vec![update("acme", uuid, 2, TenantState::Created, &[])],
            ..TableUpdate::default()
        };

        assert!(!table.apply_look_up(found.clone(), Revision(2)));
        assert_eq!(table.get(&acme()), None);
        assert!(table.apply_look_up(found, Revision(3)));
    }

    #[test]
    fn a_removed_tenant_takes_its_domains_along_and_leaves_its_successor_alone() {
        let (table, old, new) = (
            RoutingTable::new(),
            TenantUuid::generate(),
            TenantUuid::generate(),
        );
        apply(
            &table,
            update(
                "acme",
                old,
                1,
                TenantState::Created,
                &["acme.example", "old.example"],
            ),
        );
        apply(&table, update("acme", old, 2, TenantState::Purged, &[]));
        assert_eq!(table.get_by_domain("old.example"), None);

        apply(
            &table,
            update("acme", new, 3, TenantState::Created, &["acme.example"]),
        );
        apply(&table, update("acme", old, 2, TenantState::Purged, &[]));
        assert_eq!(table.get(&acme()).unwrap().uuid, new);
        assert_eq!(table.get_by_domain("acme.example").unwrap().uuid, new);
        assert_eq!(table.get_by_uuid(old), None);
    }

    #[test]
    fn readers_see_rows_that_change_together_together() {
        let table = Arc::new(RoutingTable::new());
        let uuids: Vec<_> = (0..8).map(|_| TenantUuid::generate()).collect();
        let rows = |revision: i64| TableUpdate {
            routes: uuids
                .iter()
                .enumerate()
                .map(|(index, uuid)| update(&format!("t{index}"), *uuid, revision, TenantState::Created, &[]))
                .collect(),
            ..TableUpdate::default()
        };
        table.apply(rows(1));
        let reader = {
            let table = Arc::clone(&table);
            std::thread::spawn(move || {
                for _ in 0..100_000 {
                    let snapshot = table.current.load();
                    let revisions: Vec<_> = snapshot.routes.keys().map(|entry| entry.0.revision).collect();
                    assert!(
                        revisions.len() == 8 && revisions.iter().all(|revision| *revision == revisions[0])
                    );
                }
            })
        };
        for revision in 2..5_000 {
            table.apply(rows(revision));
        }
        reader.join().unwrap();
    }
}
