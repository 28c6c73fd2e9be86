//! A real cluster, a catalog on it, and instances that share them.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use sandbox::Cluster;
use sqlx::{Connection, Executor, PgConnection, postgres::PgConnectOptions};
use tenant_management::{
    Actor, BrokerSettings, ClusterName, ClusterSettings, CreateTenant, FollowSettings, KeyRing, PoolLimits,
    ReadSettings, Tenancy, TenancySettings, TenantId, TenantMigrations,
};

/// A server with an empty catalog.
pub struct World {
    pub cluster: Cluster,
    pub catalog: PgConnectOptions,
}

/// What a test may want different in an instance.
#[derive(Clone)]
pub struct Wishes {
    pub spares: u32,
    pub migrations: TenantMigrations,
    pub clusters: Vec<ClusterSettings>,
    pub follow: FollowSettings,
    pub broker: Option<BrokerSettings>,
    pub wait_for_instances: Duration,
}

impl World {
    pub async fn start() -> Self {
        let cluster = Cluster::builder()
            .setting("max_connections", "200")
            .setting("log_statement", "all")
            .start()
            .await
            .expect("a cluster starts");
        let mut admin = PgConnection::connect_with(&cluster.primary().connect_options("postgres"))
            .await
            .unwrap();
        admin.execute("create database tenantry_catalog").await.unwrap();
        let catalog = cluster.primary().connect_options("tenantry_catalog");
        Self { cluster, catalog }
    }

    pub fn wishes(&self) -> Wishes {
        Wishes {
            spares: 0,
            migrations: migrations(),
            clusters: vec![self.cluster_settings("main", self.cluster.primary().url("postgres"))],
            follow: FollowSettings::default(),
            broker: None,
            wait_for_instances: Duration::from_millis(500),
        }
    }

    pub fn cluster_settings(&self, name: &str, url: String) -> ClusterSettings {
        ClusterSettings {
            name: ClusterName::parse(name).unwrap(),
            region: "eu".to_owned(),
            primary: url.into(),
            replicas: vec![],
            max_connections: 40,
        }
    }

    pub async fn instance(&self, wishes: Wishes) -> Tenancy {
        Tenancy::start(TenancySettings {
            catalog: self.catalog.clone(),
            catalog_max_connections: 10,
            keys: KeyRing::new(&STANDARD.encode([7; 32]).into(), []).unwrap(),
            clusters: wishes.clusters,
            overwrite_clusters: true,
            migrations: wishes.migrations,
            pools: PoolLimits::default(),
            reads: ReadSettings::default(),
            spares: wishes.spares,
            wait_for_instances: wishes.wait_for_instances,
            follow: wishes.follow,
            broker: wishes.broker,
            instance_address: "test".to_owned(),
            credentials_believed_for: Duration::from_secs(300),
        })
        .await
        .expect("an instance starts")
    }

    /// A connection as the administrator.
    pub async fn admin(&self, database: &str) -> PgConnection {
        PgConnection::connect_with(&self.cluster.primary().connect_options(database))
            .await
            .unwrap()
    }

    /// A number out of the catalog.
    pub async fn count(&self, query: &'static str) -> i64 {
        let mut connection = PgConnection::connect_with(&self.catalog).await.unwrap();
        sqlx::query_scalar(query)
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }

    /// Databases and roles on the cluster that have a tenant's form.
    pub async fn tenant_objects(&self) -> (i64, i64) {
        let mut admin = self.admin("postgres").await;
        sqlx::query_as(
            r"select (select count(*) from pg_database where datname like 't\_%'),
                     (select count(*) from pg_roles where rolname like 't\_%')",
        )
        .fetch_one(&mut admin)
        .await
        .unwrap()
    }
}

impl Wishes {
    /// Only word brings news: no timer does.
    pub fn without_timers(mut self) -> Self {
        let never = Duration::from_secs(3600);
        self.follow = FollowSettings {
            renew: never,
            lease: never,
            poll: never,
            compare: never,
        };
        // A busy machine may take its time.
        self.wait_for_instances = Duration::from_secs(20);
        self
    }

    /// Nothing brings news: no timer, and word goes to a broker that is not there.
    pub fn told_nothing(self) -> Self {
        let nowhere = "amqp://guest:guest@127.0.0.1:1/%2f";
        let broker = BrokerSettings::new(&nowhere.into(), "tenantry").unwrap();
        Self {
            wait_for_instances: self.wait_for_instances,
            ..self.without_timers().with_broker(broker)
        }
    }

    pub fn with_broker(mut self, broker: BrokerSettings) -> Self {
        self.broker = Some(broker);
        self
    }
}

/// A small schema of one table.
pub fn migrations() -> TenantMigrations {
    let sql = "create table notes (id bigint generated always as identity primary key, text text not null);";
    TenantMigrations::new(vec![refinery::Migration::unapplied("V1__notes", sql).unwrap()])
}

pub fn request(name: &str) -> CreateTenant {
    CreateTenant::new(TenantId::parse_new(name).unwrap())
}

pub fn operator() -> Actor {
    Actor::named("operator:test")
}

/// A name that no other call has answered.
pub fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("tenant-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Asks again and again until the answer is yes.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !ask().await {
        assert!(Instant::now() < deadline, "{what}: not within 30 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
