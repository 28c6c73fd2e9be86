//! The race itself: readers ask for tenants' data, a writer replaces the table as fast as it can, and each answer says which
//! database it came from.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tenant_management::{
    PoolLimits, Route, Session, Tenancy, TenantDb, TenantId, TenantUuid,
    data::{Consistency, DataError, context},
};

use super::tables::{Configuration, Table, at_revision};
use crate::world::{Wishes, World, create_tenant};

/// Tenants that are asked for.
pub const TENANTS: usize = 4;
/// Readers at once.
pub const READERS: usize = 16;

/// How a request reaches its tenant's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// A handle that was made from the route.
    Handle,
    /// A repository that knows no tenant and finds it in the request's context.
    Routed,
}

/// Which database answered, as the database itself says.
#[derive(Debug, sqlx::FromRow)]
struct Marker {
    database: String,
    tenant: String,
}

const ASK: &str = "select current_database()::text as database, current_setting('tenantry.tenant') as tenant";

/// How the requests of one race ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Answered by the tenant's own database.
    pub right: u64,
    /// Answered by another tenant's.
    pub wrong: u64,
    /// Not answered, because there was no route.
    pub missing: u64,
    /// Not answered for another reason.
    pub failed: u64,
    /// What the first of those said.
    pub first_failure: Option<String>,
    /// Times that the table was replaced meanwhile.
    pub replacements: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Tenants on a server, and an instance that reaches them.
#[derive(Debug)]
pub struct Course {
    tenancy: Tenancy,
    routes: Vec<Arc<Route>>,
    _world: World,
}

impl Course {
    /// Sets up [`TENANTS`] tenants.
    ///
    /// # Errors
    ///
    /// When a server or a tenant cannot be had.
    pub async fn set_up() -> anyhow::Result<Self> {
        let world = World::start(false).await?;
        let tenancy = world
            .instance(&Wishes {
                pools: patient(),
                ..Wishes::new("race")
            })
            .await?;
        let mut routes = Vec::new();
        for _ in 0..TENANTS {
            routes.push(tenancy.resolve(&create_tenant(&tenancy).await?.id).await?);
        }
        Ok(Self {
            tenancy,
            routes,
            _world: world,
        })
    }

    /// Runs so many requests, while the writer rests for `rest` between two replacements.
    pub async fn race(
        &self,
        configuration: Configuration,
        access: Access,
        requests: u64,
        rest: Duration,
    ) -> Tally {
        let started = Instant::now();
        let table = Arc::new(Table::new(configuration, &self.routes));
        let writer = Writer::start(Arc::clone(&table), self.routes.clone(), rest);
        let left = Arc::new(AtomicU64::new(requests));
        let readers: Vec<_> = (0..READERS)
            .map(|first| {
                let reader = Reader {
                    tenancy: self.tenancy.clone(),
                    table: Arc::clone(&table),
                    tenants: self
                        .routes
                        .iter()
                        .map(|route| (route.tenant, route.uuid))
                        .collect(),
                    access,
                };
                tokio::spawn(reader.run(first, Arc::clone(&left)))
            })
            .collect();
        let mut tally = Tally::default();
        for reader in readers {
            tally.add(reader.await.expect("a reader does not panic"));
        }
        tally.replacements = writer.stop();
        tally.seconds = (started.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        tally
    }
}

/// Limits that a busy machine does not reach: the race is about which answer comes, not about when.
fn patient() -> PoolLimits {
    PoolLimits {
        acquire_timeout: Duration::from_secs(60),
        connect_timeout: Duration::from_secs(30),
        ..PoolLimits::default()
    }
}

struct Reader {
    tenancy: Tenancy,
    table: Arc<Table>,
    tenants: Vec<(TenantId, TenantUuid)>,
    access: Access,
}

impl Reader {
    /// Serves requests, for one tenant after the other, until none are left.
    async fn run(self, first: usize, left: Arc<AtomicU64>) -> Tally {
        let mut tally = Tally::default();
        let mut next = first;
        while left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
        {
            let (tenant, uuid) = &self.tenants[next % self.tenants.len()];
            next += 1;
            let Some(route) = self.table.find(tenant) else {
                tally.missing += 1;
                // A request that fails ends; the thread turns to another.
                tokio::task::yield_now().await;
                continue;
            };
            match self.ask(route).await {
                Ok(marker) if marker.is_of(*uuid) => tally.right += 1,
                Ok(_) => tally.wrong += 1,
                Err(error) => {
                    tally.failed += 1;
                    tally.first_failure.get_or_insert_with(|| error.to_string());
                }
            }
        }
        tally
    }

    async fn ask(&self, route: Arc<Route>) -> anyhow::Result<Marker> {
        let db = self.tenancy.db(route, Session::default())?;
        match self.access {
            Access::Handle => Ok(marker_of(&db).await?),
            Access::Routed => context::scope(db, Markers.find()).await,
        }
    }
}

/// A repository that knows no tenant.
struct Markers;

impl Markers {
    async fn find(&self) -> anyhow::Result<Marker> {
        Ok(marker_of(&context::current()?).await?)
    }
}

async fn marker_of(db: &TenantDb) -> Result<Marker, DataError> {
    db.read(Consistency::Strict, |mut connection| async move {
        Ok(sqlx::query_as(ASK).fetch_one(&mut *connection).await?)
    })
    .await
}

impl Marker {
    fn is_of(&self, uuid: TenantUuid) -> bool {
        self.database == uuid.physical_name() && self.tenant == uuid.to_string()
    }
}

impl Tally {
    /// All requests.
    pub fn requests(&self) -> u64 {
        self.right + self.wrong + self.missing + self.failed
    }

    fn add(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.missing += other.missing;
        self.failed += other.failed;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }
}

/// A thread that replaces the table again and again.
struct Writer {
    ended: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<u64>,
}

impl Writer {
    fn start(table: Arc<Table>, routes: Vec<Arc<Route>>, rest: Duration) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut replacements = 0;
            for revision in (routes.iter().map(|route| route.revision.0).max().unwrap_or(0) + 1).. {
                if end.load(Ordering::Relaxed) {
                    break;
                }
                table.replace_all(&at_revision(&routes, revision));
                replacements += 1;
                if !rest.is_zero() {
                    std::thread::sleep(rest);
                }
            }
            replacements
        });
        Self { ended, thread }
    }

    fn stop(self) -> u64 {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().expect("the writer does not panic")
    }
}
