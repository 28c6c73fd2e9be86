//! The whole of it in one handle: catalog, routing table, connections, provisioning and their background tasks.

use std::{sync::Arc, time::Duration};

use read_your_writes::{ReadSettings, Session};
use sqlx::postgres::PgConnectOptions;
use tokio::sync::Notify;

use crate::{
    audit::Trail,
    background::Background,
    believed::Believed,
    catalog::{Catalog, CatalogError, clusters::ClusterSettings},
    clusters::{ClusterDirectory, ClusterUse},
    control::{ApiKey, OperatorToken},
    control_plane::ControlPlane,
    data::TenantDb,
    events::{self, broker::BrokerSettings},
    ids::{InstanceId, TenantUuid},
    instances::{FollowSettings, Presence},
    migrate::{MigrateError, TenantMigrations},
    people::People,
    pool::PoolLimits,
    provisioning::{Provisioner, one_at_a_time::OneAtATime},
    route::Route,
    routing::{
        follower::{Follower, Prompt},
        resolver::{ResolveError, Resolver},
        table::RoutingTable,
    },
    secret::KeyRing,
    spreading::Spreading,
    tasks::TaskGroup,
    tenant_id::TenantId,
};

/// How long the catalog may take to say how it is. What is not essential must not make the whole look dead.
const PATIENCE: Duration = Duration::from_secs(1);

/// What an instance needs to know to start.
#[derive(Debug)]
pub struct TenancySettings {
    /// The control-plane database.
    pub catalog: PgConnectOptions,
    /// Connections to the catalog at most.
    pub catalog_max_connections: u32,
    /// Keys that seal secrets in the catalog.
    pub keys: KeyRing,
    /// Clusters to register when the catalog does not know them yet.
    pub clusters: Vec<ClusterSettings>,
    /// Whether [`Self::clusters`] also replace what the catalog knows about clusters of the same names.
    pub overwrite_clusters: bool,
    /// The migrations of tenants' databases.
    pub migrations: TenantMigrations,
    /// Limits of connection pools.
    pub pools: PoolLimits,
    /// How reads are spread over replicas.
    pub reads: ReadSettings,
    /// Databases to keep in stock on each cluster.
    pub spares: u32,
    /// How long a control-plane answer waits for other instances at most.
    pub wait_for_instances: Duration,
    /// How instances keep up with the catalog and with each other.
    pub follow: FollowSettings,
    /// The broker that carries word of changes; without one it is PostgreSQL's `NOTIFY` on the catalog.
    pub broker: Option<BrokerSettings>,
    /// Where other instances' operators find this one.
    pub instance_address: String,
    /// How long credentials are believed while the catalog cannot be asked: so long may an instance that is cut off let
    /// somebody in whose credential was revoked.
    pub credentials_believed_for: Duration,
}

/// Why an instance could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The catalog cannot be reached or brought up to date.
    #[error("the catalog could not be opened: {0}")]
    Migrate(#[from] MigrateError),
    /// The catalog did not answer as it should.
    #[error("the catalog could not be read: {0}")]
    Catalog(#[from] CatalogError),
}

/// The tenant's cluster is not known to this instance.
#[derive(Debug, thiserror::Error)]
#[error("this instance does not know the cluster {0} yet")]
pub struct UnknownCluster(pub crate::ids::ClusterName);

/// One part of an instance and why it is not ready, if it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartReadiness {
    /// Which part.
    pub part: &'static str,
    /// Whether the instance can serve without it.
    pub essential: bool,
    /// What is the matter with it.
    pub problem: Option<String>,
}

/// The tenancy of one running instance. Clones share everything.
#[derive(Clone, Debug)]
pub struct Tenancy {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    presence: Arc<Presence>,
    events: Arc<events::Health>,
    table: Arc<RoutingTable>,
    clusters: Arc<ClusterDirectory>,
    resolver: Resolver,
    control: ControlPlane,
    people: Arc<People>,
    operator_tokens: Believed<Box<str>, OperatorToken>,
    trail: Arc<Trail>,
    credentials_believed_for: Duration,
    catalog: Catalog,
    tasks: TaskGroup,
}

impl Tenancy {
    /// Opens the catalog and brings its schema up to date, registers clusters, reads all routes, and begins to follow the
    /// catalog. When this returns, the instance can serve.
    pub async fn start(settings: TenancySettings) -> Result<Self, StartError> {
        crate::metrics::describe();
        read_your_writes::metrics::describe();
        let tasks = TaskGroup::new();
        let catalog = Catalog::open(
            settings.catalog,
            settings.catalog_max_connections,
            settings.keys.clone(),
        )
        .await?;
        for cluster in &settings.clusters {
            catalog
                .register_cluster(cluster, settings.overwrite_clusters)
                .await?;
        }
        let clusters = Arc::new(ClusterDirectory::new(
            ClusterUse {
                limits: settings.pools,
                reads: settings.reads,
                keys: settings.keys,
            },
            tasks.clone(),
        ));
        let table = Arc::new(RoutingTable::new());
        let follower = Arc::new(Follower::new(
            catalog.clone(),
            Arc::clone(&table),
            Arc::clone(&clusters),
        ));
        let followed = follower.catch_up(Prompt::Start).await?;
        tracing::info!(
            routing.tenants = table.len(),
            routing.revision = followed.revision.0,
            "All routes have been read."
        );
        let presence = Presence::register(
            settings.instance_address,
            catalog.clone(),
            Arc::clone(&table),
            Arc::clone(&follower),
            settings.follow.lease,
        );
        let presence = Arc::new(presence.await?);
        let provisioner = Arc::new(Provisioner {
            catalog: catalog.clone(),
            clusters: Arc::clone(&clusters),
            migrations: settings.migrations,
            worker: Provisioner::worker(presence.id),
            tasks: tasks.clone(),
            spares_wanted: settings.spares,
            callers: OneAtATime::default(),
            stock_changed: Notify::new(),
        });
        let events = Arc::new(events::Health::default());
        let spreading = Spreading {
            follower: Arc::clone(&follower),
            presence: Arc::clone(&presence),
            wait_for_instances: settings.wait_for_instances,
        };
        let bound = settings.credentials_believed_for;
        let people = Arc::new(People::new(
            catalog.clone(),
            spreading.clone(),
            Believed::new(Arc::clone(&presence), bound),
        ));
        let trail = Arc::new(Trail::new(catalog.clone()));
        let background = Background {
            tasks: tasks.clone(),
            catalog: catalog.clone(),
            presence: Arc::clone(&presence),
            follower: Arc::clone(&follower),
            provisioner: Arc::clone(&provisioner),
            clusters: Arc::clone(&clusters),
            events: Arc::clone(&events),
            people: Arc::clone(&people),
            trail: Arc::clone(&trail),
        };
        background.start(settings.broker, &settings.follow);
        let control = ControlPlane {
            catalog: catalog.clone(),
            clusters: Arc::clone(&clusters),
            provisioner,
            spreading,
        };
        let resolver = Resolver::new(Arc::clone(&table), catalog.clone());
        Ok(Self {
            inner: Arc::new(Inner {
                presence: Arc::clone(&presence),
                events,
                table,
                clusters,
                resolver,
                control,
                people,
                operator_tokens: Believed::new(Arc::clone(&presence), bound),
                trail,
                credentials_believed_for: bound,
                catalog,
                tasks,
            }),
        })
    }

    /// This instance's identity.
    pub fn instance(&self) -> InstanceId {
        self.inner.presence.id
    }

    /// The routing table, as it is read by every request.
    pub fn table(&self) -> &RoutingTable {
        &self.inner.table
    }

    /// The route of a tenant, in whatever state it is: the caller refuses those that are not in service.
    pub async fn resolve(&self, tenant: &TenantId) -> Result<Arc<Route>, ResolveError> {
        self.inner.resolver.by_name(tenant).await
    }

    /// Like [`Self::resolve`], by identity.
    pub async fn resolve_uuid(&self, uuid: TenantUuid) -> Result<Arc<Route>, ResolveError> {
        self.inner.resolver.by_uuid(uuid).await
    }

    /// Like [`Self::resolve`], by a registered host name in lower case.
    pub async fn resolve_domain(&self, domain: &str) -> Result<Arc<Route>, ResolveError> {
        self.inner.resolver.by_domain(domain).await
    }

    /// An API key, revoked or not, by its public part.
    pub async fn api_key(&self, id: &str) -> Result<Arc<ApiKey>, ResolveError> {
        self.inner.resolver.api_key(id).await
    }

    /// An operator's token, revoked or not, by its public part.
    pub async fn operator_token(&self, id: &str) -> Result<Option<Arc<OperatorToken>>, CatalogError> {
        let read = self.inner.catalog.operator_token(id);
        self.inner.operator_tokens.get(id.into(), |_| true, read).await
    }

    /// Whether what this instance knows about credentials is recent enough to let anybody in: it has been in contact with the
    /// catalog, or was a bounded time ago.
    pub fn may_believe_credentials(&self) -> bool {
        self.inner.presence.cut_off_for() <= self.inner.credentials_believed_for
    }

    /// The right to reach a tenant's data, for a caller who has to see what the session says. Takes no connection.
    ///
    /// A request's session comes from the [`read_your_writes::PositionLayer`]; [`Session::default`] is for work that nobody
    /// waits for.
    pub fn db(&self, route: Arc<Route>, session: Session) -> Result<TenantDb, UnknownCluster> {
        let cluster = self
            .inner
            .clusters
            .get(&route.cluster)
            .ok_or_else(|| UnknownCluster(route.cluster.clone()))?;
        session.look_for_unknown_clusters(|name| self.inner.clusters.knows(name));
        Ok(TenantDb::on_cluster(route, cluster, session))
    }

    /// Commands and questions about tenants.
    pub fn control(&self) -> &ControlPlane {
        &self.inner.control
    }

    /// Commands and questions about people.
    pub fn people(&self) -> &People {
        &self.inner.people
    }

    /// What requests leave behind: attempts that failed, and when credentials were used.
    pub fn trail(&self) -> &Trail {
        &self.inner.trail
    }

    /// What is ready and what is not. The table has been read before [`Self::start`] returned; the catalog and word from other
    /// instances are not essential, because known tenants are served without them (invariant I11).
    pub async fn readiness(&self) -> Vec<PartReadiness> {
        // Only the catalog has to be asked over a network.
        let catalog = match tokio::time::timeout(PATIENCE, self.inner.catalog.ping()).await {
            Ok(answered) => answered.err().map(|error| error.to_string()),
            Err(_) => Some(format!("no answer within {PATIENCE:?}")),
        };
        let lease = self.inner.presence.lease_ended_for().map(|duration| {
            let seconds = duration.as_secs();
            format!("ended {seconds} s ago: other instances do not wait for this one, and it may not know of changes since")
        });
        let part = |part, essential, problem| PartReadiness {
            part,
            essential,
            problem,
        };
        vec![
            part("routing-table", true, None),
            part("catalog", false, catalog),
            part("lease", false, lease),
            part("events", false, self.inner.events.problem()),
        ]
    }

    /// Ends background tasks, gives back the instance's lease, and closes connections to the catalog.
    pub async fn shut_down(&self, limit: Duration) {
        self.inner.tasks.shut_down(limit).await;
        self.inner.clusters.stop().await;
        if let Err(error) = self.inner.trail.write_all().await {
            tracing::warn!(%error, "The last failed attempts could not be written into the audit trail.");
        }
        if let Err(error) = self.inner.catalog.remove_instance(self.inner.presence.id).await {
            tracing::warn!(%error, "The instance could not be signed off; its lease will end.");
        }
        self.inner.catalog.close().await;
    }
}
