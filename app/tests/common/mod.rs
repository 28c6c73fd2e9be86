//! A service for tests: an instance in this process, on a real cluster, with a catalog of its own.
//!
//! The cluster is shared by all tests of a process; each [`TestApp`] has its own catalog database on it, so that none sees
//! another's tenants. The cluster ends with the process.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test file uses a part"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod answer;
mod slow_body;

use std::{
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

pub use answer::{Answer, Responses};
use app::{
    config::Config,
    serve::{self, Service},
};
use reqwest::{Client, Method, RequestBuilder};
use sandbox::{Cluster, Proxy};
use serde_json::{Value, json};
pub use slow_body::slow_body;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tempfile::TempDir;

/// The operator's token of every [`TestApp`].
pub const OPERATOR_TOKEN: &str = "operator-token-of-the-tests";
const MASTER_KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// The cluster of this process. It lives on a runtime of its own, since each test's runtime ends with the test.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let start = || {
            let runtime = Box::leak(Box::new(
                tokio::runtime::Runtime::new().expect("a runtime starts"),
            ));
            let settings = Cluster::builder()
                .setting("max_connections", "400")
                .setting("log_statement", "all");
            runtime.block_on(settings.start()).expect("a cluster starts")
        };
        std::thread::spawn(start)
            .join()
            .expect("the cluster's thread does not panic")
    })
}

/// What a test wants different.
#[derive(Clone, Debug, Default)]
pub struct TestAppBuilder {
    overrides: Vec<(String, String)>,
    more: String,
    servers: Option<Servers>,
}

/// Where a service's databases are.
#[derive(Clone, Debug)]
struct Servers {
    primary: String,
    replicas: Vec<String>,
}

impl TestAppBuilder {
    /// With tenants' databases on these servers instead of the shared one. The catalog stays there.
    pub fn servers(mut self, cluster: &Cluster) -> Self {
        self.servers = Some(Servers {
            primary: cluster.primary().url("postgres"),
            replicas: cluster
                .replicas()
                .iter()
                .map(|node| node.url("postgres"))
                .collect(),
        });
        self
    }

    /// A setting, such as `("http.body_timeout", "300ms")`.
    pub fn set(mut self, key: &str, value: &str) -> Self {
        let variable = format!("TENANTRY__{}", key.to_uppercase().replace('.', "__"));
        self.overrides.push((variable, value.to_owned()));
        self
    }

    /// More settings, as a configuration file has them.
    pub fn more(mut self, settings: &str) -> Self {
        self.more.push_str(settings);
        self
    }

    pub async fn start(self) -> TestApp {
        let catalog = new_catalog().await;
        TestApp::on(catalog, self).await
    }

    /// With the catalog behind a proxy that leads to the primary.
    pub async fn start_with_catalog_behind(mut self, proxy: &Proxy) -> TestApp {
        let catalog = new_catalog().await;
        self.overrides
            .push(("TENANTRY__CATALOG__URL".to_owned(), proxy.url(&catalog)));
        TestApp::on(catalog, self).await
    }
}

/// A database for the catalog of one test, on the shared server.
pub async fn new_catalog() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("catalog_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut admin = PgConnection::connect_with(&cluster().primary().connect_options("postgres"))
        .await
        .unwrap();
    admin
        .execute(AssertSqlSafe(format!("create database {name}")))
        .await
        .unwrap();
    name
}

/// A running service and a client for it.
pub struct TestApp {
    pub service: Service,
    pub client: Client,
    pub catalog: String,
    wishes: TestAppBuilder,
    folder: TempDir,
}

impl TestApp {
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    pub fn builder() -> TestAppBuilder {
        TestAppBuilder::default()
    }

    async fn on(catalog: String, wishes: TestAppBuilder) -> Self {
        let config = wishes.config(&catalog);
        let service = serve::start(config).await.expect("the service starts");
        // No redirects and no reuse of connections, so that each request stands for itself.
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0);
        Self {
            service,
            client: client.build().unwrap(),
            catalog,
            wishes,
            folder: TempDir::new().unwrap(),
        }
    }

    /// Another instance on the same catalog.
    pub async fn another_instance(&self) -> Self {
        Self::on(self.catalog.clone(), self.wishes.clone()).await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.service.address())
    }

    /// A request without a credential.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path))
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    /// A request as the operator, below `/control/v1`.
    pub fn control(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, &format!("/control/v1{path}"))
            .bearer_auth(OPERATOR_TOKEN)
    }

    pub async fn create(&self, tenant: &Value) -> Answer {
        self.control(Method::POST, "/tenants").json(tenant).answer().await
    }

    /// A tenant in service.
    pub async fn tenant(&self, id: &str) -> Value {
        self.create(&json!({ "id": id })).await.expect(201)
    }

    /// The secret of a new API key.
    pub async fn key(&self, tenant: &str, role: &str) -> String {
        let request = self.control(Method::POST, &format!("/tenants/{tenant}/api-keys"));
        let key = request
            .json(&json!({"name": "test", "role": role}))
            .answer()
            .await
            .expect(201);
        key["secret"]
            .as_str()
            .expect("a new key has its secret")
            .to_owned()
    }

    /// A request with an API key, below `/v1`.
    pub fn v1(&self, method: Method, path: &str, key: &str) -> RequestBuilder {
        self.request(method, &format!("/v1{path}")).bearer_auth(key)
    }

    pub async fn whoami(&self, key: &str) -> Answer {
        self.v1(Method::GET, "/whoami", key).answer().await
    }

    /// A number out of the catalog.
    pub async fn count(&self, query: &'static str) -> i64 {
        let mut connection = self.catalog_connection().await;
        sqlx::query_scalar(query)
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }

    /// A configuration file for another instance, in a process of its own.
    pub fn config_file(&self) -> PathBuf {
        let file = self.folder.path().join("tenantry.toml");
        self.wishes.write(&file, &self.catalog);
        file
    }

    pub async fn catalog_connection(&self) -> PgConnection {
        PgConnection::connect_with(&cluster().primary().connect_options(&self.catalog))
            .await
            .unwrap()
    }
}

/// Settings for an instance on this catalog.
pub fn config(catalog: &str, overrides: &[(String, String)]) -> Config {
    let wishes = TestAppBuilder {
        overrides: overrides.to_vec(),
        ..TestAppBuilder::default()
    };
    wishes.config(catalog)
}

impl TestAppBuilder {
    fn config(&self, catalog: &str) -> Config {
        let file = tempfile::NamedTempFile::new().unwrap();
        self.write(file.path(), catalog);
        let overrides = self.overrides.iter().cloned();
        Config::load_with(file.path(), overrides).unwrap_or_else(|error| panic!("{error}"))
    }

    fn write(&self, file: &Path, catalog: &str) {
        let shared = cluster().primary();
        let servers = self.servers.clone().unwrap_or_else(|| Servers {
            primary: shared.url("postgres"),
            replicas: Vec::new(),
        });
        let text = format!(
            r#"
            [http]
            listen = "127.0.0.1:0"
            shutdown_delay = "0s"
            shutdown_grace = "5s"
            [catalog]
            url = "{}"
            [security]
            master_key = "{MASTER_KEY}"
            operator_token = "{OPERATOR_TOKEN}"
            [[clusters]]
            name = "main"
            region = "eu"
            primary = "{}"
            replicas = {:?}
            max_connections = 20
            [limits]
            # Storms are about other things.
            requests_per_second = 0
            concurrent_requests = 0
            [provisioning]
            spares = 0
            wait_for_instances = "1s"
            {}
            "#,
            shared.url(catalog),
            servers.primary,
            servers.replicas,
            self.more,
        );
        std::fs::write(file, text).unwrap();
    }
}

/// Asks again and again until the answer is yes.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !ask().await {
        assert!(Instant::now() < deadline, "{what}: not within 30 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
