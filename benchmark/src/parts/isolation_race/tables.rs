//! The two kinds of table that are compared.
//!
//! [`RebuiltInPlace`] and a [`Configuration`] with a fallback are **what not to do**: they are the fault that others
//! shipped, kept here so that the measurement can be seen to notice it.

use std::{collections::HashMap, sync::Arc};

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tenant_management::{
    Revision, Route, TenantId,
    routing::table::{RouteUpdate, RoutingTable, TableUpdate},
};

/// How the table changes while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Replacement {
    /// The service's own: the next table is made aside and put in place of the current one.
    Atomic,
    /// What not to do: emptied, and filled again row by row.
    InPlace,
}

/// One way to find a tenant's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// How the table changes.
    pub replacement: Replacement,
    /// What not to do: whether the first tenant's route is used when the table has none.
    pub fallback: bool,
}

impl Configuration {
    /// All four.
    pub const ALL: [Self; 4] = [
        Self {
            replacement: Replacement::InPlace,
            fallback: true,
        },
        Self {
            replacement: Replacement::InPlace,
            fallback: false,
        },
        Self {
            replacement: Replacement::Atomic,
            fallback: true,
        },
        Self {
            replacement: Replacement::Atomic,
            fallback: false,
        },
    ];
    /// The service's own.
    pub const OURS: Self = Self {
        replacement: Replacement::Atomic,
        fallback: false,
    };
}

/// A table that readers ask and a writer replaces.
#[derive(Debug)]
pub struct Table {
    rows: Rows,
    fallback: Option<Arc<Route>>,
}

#[derive(Debug)]
enum Rows {
    Atomic(RoutingTable),
    InPlace(RebuiltInPlace),
}

impl Table {
    /// A table with all rows.
    pub fn new(configuration: Configuration, routes: &[Arc<Route>]) -> Self {
        let rows = match configuration.replacement {
            Replacement::Atomic => Rows::Atomic(RoutingTable::new()),
            Replacement::InPlace => Rows::InPlace(RebuiltInPlace::default()),
        };
        let fallback = routes.first().filter(|_| configuration.fallback).cloned();
        let table = Self { rows, fallback };
        table.replace_all(routes);
        table
    }

    /// A tenant's route, or whatever takes its place.
    pub fn find(&self, tenant: &TenantId) -> Option<Arc<Route>> {
        let found = match &self.rows {
            Rows::Atomic(table) => table.get(tenant),
            Rows::InPlace(table) => table.rows.read().get(tenant).cloned(),
        };
        found.or_else(|| self.fallback.clone())
    }

    /// Replaces all rows by `routes`, which have grown by a revision.
    pub fn replace_all(&self, routes: &[Arc<Route>]) {
        match &self.rows {
            Rows::Atomic(table) => table.apply(TableUpdate {
                routes: routes
                    .iter()
                    .map(|route| RouteUpdate {
                        route: Arc::clone(route),
                        domains: vec![],
                    })
                    .collect(),
                complete_to: routes.iter().map(|route| route.revision).max(),
                ..TableUpdate::default()
            }),
            Rows::InPlace(table) => table.rebuild(routes),
        }
    }
}

/// What not to do: a map that is emptied and filled again while it is read. Each single step is guarded by a lock, so that
/// there is no data race; and yet readers see a table that nobody ever meant.
#[derive(Debug, Default)]
pub struct RebuiltInPlace {
    rows: RwLock<HashMap<TenantId, Arc<Route>>>,
}

impl RebuiltInPlace {
    fn rebuild(&self, routes: &[Arc<Route>]) {
        self.rows.write().clear();
        for route in routes {
            self.rows.write().insert(route.tenant, Arc::clone(route));
        }
    }
}

/// The same routes at another revision, each in memory of its own.
pub fn at_revision(routes: &[Arc<Route>], revision: i64) -> Vec<Arc<Route>> {
    routes
        .iter()
        .map(|route| {
            Arc::new(Route {
                revision: Revision(revision),
                ..Route::clone(route)
            })
        })
        .collect()
}
