//! A cluster, a catalog, perhaps a broker, and instances on them.

use std::{
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use sandbox::{Broker, Cluster};
use sqlx::{Connection, Executor, PgConnection};

use crate::instance::{Instance, OPERATOR_TOKEN};

/// How long something may take on a slow machine with a lot to do.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// How word of changes travels in a test.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    Catalog,
    /// A broker at a URL; each test has an exchange of its own on it.
    Broker(String),
}

/// Servers, and a place for configurations and logs.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    /// `None`: the catalog is on the cluster.
    pub(crate) catalog_server: Option<Cluster>,
    pub(crate) spares: u32,
    folder: tempfile::TempDir,
    way: Way,
    started: AtomicU32,
}

/// The broker of this process. It lives on a runtime of its own, since each test's runtime ends with the test. Tests that do
/// something to their broker have one of their own.
pub(crate) fn shared_broker() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(|| {
        let start = || {
            let runtime = Box::leak(Box::new(
                tokio::runtime::Runtime::new().expect("a runtime starts"),
            ));
            runtime
                .block_on(Broker::builder().start())
                .expect("a broker starts")
        };
        std::thread::spawn(start)
            .join()
            .expect("the broker's thread does not panic")
    })
}

async fn server() -> Cluster {
    Cluster::builder()
        .setting("max_connections", "600")
        .start()
        .await
        .unwrap()
}

impl World {
    pub(crate) async fn new(way: Way) -> Self {
        let world = Self {
            cluster: server().await,
            catalog_server: None,
            spares: 2,
            folder: tempfile::tempdir().unwrap(),
            way,
            started: AtomicU32::new(0),
        };
        world.create_catalog().await;
        world
    }

    /// With a server for the catalog alone, so that it can go while tenants' databases stay.
    pub(crate) async fn with_catalog_apart(way: Way) -> Self {
        let mut world = Self::new(way).await;
        world.catalog_server = Some(server().await);
        world.create_catalog().await;
        world
    }

    async fn create_catalog(&self) {
        let node = self.catalog_server.as_ref().unwrap_or(&self.cluster).primary();
        let mut admin = PgConnection::connect_with(&node.connect_options("postgres"))
            .await
            .unwrap();
        admin.execute("create database catalog").await.unwrap();
    }

    pub(crate) async fn catalog(&self) -> PgConnection {
        let node = self.catalog_server.as_ref().unwrap_or(&self.cluster).primary();
        PgConnection::connect_with(&node.connect_options("catalog"))
            .await
            .unwrap()
    }

    /// A number out of the catalog.
    pub(crate) async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query)
            .fetch_one(&mut self.catalog().await)
            .await
            .unwrap()
    }

    /// Each instance has a file of its own: one that starts must not find one half written.
    fn config(&self, number: u32) -> PathBuf {
        let file = self.folder.path().join(format!("{number}.toml"));
        let catalog = self
            .catalog_server
            .as_ref()
            .unwrap_or(&self.cluster)
            .primary()
            .url("catalog");
        let broker = match &self.way {
            Way::Catalog => String::new(),
            Way::Broker(url) => format!(
                "[broker]\nurl = \"{url}\"\nexchange = \"{}\"",
                self.folder.path().display()
            ),
        };
        let text = format!(
            r#"
            [http]
            listen = "127.0.0.1:0"
            shutdown_delay = "1s"
            [catalog]
            url = "{catalog}"
            [security]
            master_key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
            operator_token = "{OPERATOR_TOKEN}"
            [limits]
            # Storms are about other things.
            requests_per_second = 0
            concurrent_requests = 0
            [provisioning]
            spares = {}
            wait_for_instances = "20s" # a busy machine may take its time; what is asked is whether all have applied it
            [[clusters]]
            name = "main"
            region = "eu"
            primary = "{}"
            max_connections = 20
            {broker}
            "#,
            self.spares,
            self.cluster.primary().url("postgres"),
        );
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Starts an instance without waiting for it.
    pub(crate) fn begin(&self, environment: &[(&str, &str)]) -> Instance {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let log = self.folder.path().join(format!("{number}.log"));
        Instance::start(&self.config(number), log, environment)
    }

    pub(crate) async fn instance(&self) -> Instance {
        let mut instance = self.begin(&[]);
        instance.answers().await;
        instance
    }

    /// Instances that have begun at the same moment, and hear of each other.
    pub(crate) async fn instances(&self, count: usize) -> Vec<Instance> {
        let mut instances: Vec<_> = (0..count).map(|_| self.begin(&[])).collect();
        for instance in &mut instances {
            instance.answers().await;
        }
        for instance in &instances {
            instance.hears().await;
        }
        instances
    }

    /// Rows of tenants that nobody asks for, with the revisions that their creation would have taken. The catalog has to be
    /// there already.
    pub(crate) async fn populate(&self, tenants: i32) {
        let mut catalog = self.catalog().await;
        let mut transaction = catalog.begin().await.unwrap();
        sqlx::query(
            "insert into tenants (uuid, slug, display_name, state, cluster, schema_version, password_sealed, request, revision)
            select gen_random_uuid(), 'present-' || n + (select revision from catalog_revision), 'Present', 'CREATED', 'main', 1, '\\x00', '{}',
                n + (select revision from catalog_revision)
            from generate_series(1, $1) n",
        )
        .bind(tenants)
        .execute(&mut *transaction)
        .await
        .unwrap();
        sqlx::query("update catalog_revision set revision = revision + $1")
            .bind(tenants)
            .execute(&mut *transaction)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
    }
}

/// Asks again and again until the answer is yes.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let deadline = Instant::now() + LIMIT;
    while !ask().await {
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A number out of the environment, for longer runs than a test's.
pub(crate) fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}
