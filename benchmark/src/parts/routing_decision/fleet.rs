//! Rows of the routing table for any number of tenants, each with memory of its own, as an instance gets them when it reads
//! the catalog.

use std::sync::Arc;

use chrono::DateTime;
use rand::{SeedableRng, rngs::SmallRng, seq::SliceRandom};
use tenant_management::{
    ApiKey, ClusterName, Generation, Revision, Role, Route, TenantId, TenantState, TenantUuid,
    routing::table::{RouteUpdate, RoutingTable, TableUpdate},
};

/// Bytes of a sealed password of 32 characters: key id, nonce, ciphertext, tag.
const SEALED: usize = 4 + 24 + 32 + 16;

/// Tenants that a table knows.
#[derive(Debug)]
pub struct Fleet {
    uuids: Vec<TenantUuid>,
}

impl Fleet {
    /// So many tenants.
    pub fn of(tenants: usize) -> Self {
        Self {
            uuids: (0..tenants).map(|_| TenantUuid::generate()).collect(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.uuids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.uuids.is_empty()
    }

    /// A tenant's name, in a copy of its own like one parsed from a request.
    pub fn name(&self, index: usize) -> TenantId {
        TenantId::parse_new(&name(index)).expect("letters, digits and single hyphens")
    }

    /// The names of all tenants in an order of chance, the same in each run. The copies lie one behind the other in memory,
    /// so that reading them costs what reading a request costs, and only the table is read at random.
    pub fn shuffled_names(&self) -> Vec<TenantId> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.shuffle(&mut SmallRng::seed_from_u64(1));
        order.into_iter().map(|index| self.name(index)).collect()
    }

    /// A tenant's row.
    pub fn row(&self, index: usize, revision: i64) -> RouteUpdate {
        let route = Route {
            tenant: self.name(index),
            uuid: self.uuids[index],
            state: TenantState::Created,
            cluster: ClusterName::parse("main").expect("letters"),
            generation: Generation(1),
            revision: Revision(revision),
            password: vec![0x5a; SEALED].into(),
        };
        RouteUpdate {
            route: Arc::new(route),
            domains: vec![],
        }
    }

    /// An API key of a tenant.
    pub fn api_key(&self, index: usize) -> ApiKey {
        ApiKey {
            id: format!("k{index:015}"),
            tenant: self.uuids[index],
            name: "billing export".to_owned(),
            role: Role::Member,
            secret_sha256: [0x5a; 32],
            created_at: DateTime::UNIX_EPOCH,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
            revision: Revision(1),
        }
    }

    /// A table of all tenants, from one full read.
    pub fn table(&self) -> RoutingTable {
        let table = RoutingTable::new();
        table.apply(TableUpdate {
            routes: (0..self.len()).map(|index| self.row(index, 1)).collect(),
            complete_to: Some(Revision(1)),
            ..TableUpdate::default()
        });
        table
    }
}

/// A host name that a tenant has registered.
pub fn domain(index: usize) -> String {
    format!("app.{}.example", name(index))
}

/// About as long as companies' names are.
fn name(index: usize) -> String {
    const FIRST: [&str; 8] = [
        "acme",
        "globex",
        "initech",
        "umbrella",
        "stark",
        "wayne",
        "tyrell",
        "cyberdyne",
    ];
    format!("{}-{index:06}", FIRST[index % FIRST.len()])
}
