//! Invariant I8 against the real program: it is ended at once at every step of provisioning, started again, and asked again.
//! Each time there is one database, one role, and a tenant in service.
#![cfg(feature = "failpoints")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command},
    time::{Duration, Instant},
};

use sandbox::Cluster;
use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};
use tokio::sync::Semaphore;

const OPERATOR_TOKEN: &str = "operator-token-of-this-test-only";
const STEPS: [&str; 6] = [
    "create-role",
    "create-database",
    "assign",
    "verify",
    "label",
    "record",
];

/// Services of all cases that start at once: each start migrates a catalog and prepares a cluster. Waiting for leases to end
/// takes most of the time, and nothing else.
static STARTING: Semaphore = Semaphore::const_new(2);

/// One service with a catalog of its own on a cluster that all cases share.
struct Service {
    url: String,
    config: PathBuf,
    log: PathBuf,
    process: Option<Child>,
    client: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Service {
    async fn new(cluster: &Cluster, case: &str, spares: u32) -> Self {
        let mut admin = PgConnection::connect_with(&cluster.primary().connect_options("postgres"))
            .await
            .unwrap();
        let catalog = format!("catalog_{}", case.replace([':', '-'], "_"));
        admin
            .execute(sqlx::AssertSqlSafe(format!("create database {catalog}")))
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("tenantry.toml");
        let text = format!(
            r#"
            [http]
            listen = "127.0.0.1:0"
            [catalog]
            url = "{}"
            [security]
            master_key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
            operator_token = "{OPERATOR_TOKEN}"
            [provisioning]
            spares = {spares}
            [[clusters]]
            name = "main"
            region = "eu"
            primary = "{}"
            max_connections = 20
            "#,
            cluster.primary().url(&catalog),
            cluster.primary().url("postgres"),
        );
        std::fs::write(&config, text).unwrap();
        Self {
            url: String::new(),
            config,
            log: folder.path().join("service.log"),
            process: None,
            client: reqwest::Client::new(),
            _folder: folder,
        }
    }

    fn start(&mut self, crash_point: Option<&str>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenantry"));
        let log = File::create(&self.log).unwrap();
        command
            .arg("serve")
            .arg("--config")
            .arg(&self.config)
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        if let Some(point) = crash_point {
            command.env("FAILPOINTS", format!("{point}=return"));
        }
        self.process = Some(command.spawn().unwrap());
    }

    async fn start_until_ready(&mut self, crash_point: Option<&str>) {
        let _starting = STARTING.acquire().await.unwrap();
        self.start(crash_point);
        let deadline = Instant::now() + Duration::from_secs(60);
        // It takes a free port by itself, so that no two cases can meet at one, and says in its log which.
        let address = loop {
            if let Some((_, address)) = self.log().rsplit_once("\"http.address\":\"") {
                break address.split('"').next().unwrap_or_default().to_owned();
            }
            assert!(
                Instant::now() < deadline,
                "the service is not ready\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        self.url = format!("http://{address}");
    }

    /// Waits until the process has ended by itself.
    async fn crashed(&mut self, case: &str) {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            // It stays in its place until it has ended, so that a test that fails elsewhere ends it.
            let process = self.process.as_mut().expect("it was started");
            if let Some(status) = process.try_wait().unwrap() {
                self.process = None;
                assert!(!status.success(), "{case}: ended by its crash point");
                return;
            }
            if Instant::now() >= deadline {
                panic!("{case}: the crash point was not reached\n{}", self.log());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks until there is an answer other than "not possible now", which a loaded machine may give. An error: the service
    /// has ended.
    async fn create(&self) -> Result<(u16, Value), reqwest::Error> {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let request = self
                .client
                .post(format!("{}/control/v1/tenants", self.url))
                .bearer_auth(OPERATOR_TOKEN);
            let response = request
                .json(&json!({ "id": "acme" }))
                .timeout(Duration::from_secs(60))
                .send()
                .await?;
            let status = response.status().as_u16();
            if status != 503 || Instant::now() >= deadline {
                return Ok((status, response.json().await?));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    async fn get(&self, path: &str) -> Value {
        let request = self
            .client
            .get(format!("{}{path}", self.url))
            .bearer_auth(OPERATOR_TOKEN);
        request.send().await.unwrap().json().await.unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_survives_a_crash_at_every_step() {
    let cluster = Cluster::builder()
        .setting("max_connections", "400")
        .start()
        .await
        .unwrap();
    let mut cases: Vec<(String, u32)> = STEPS
        .iter()
        .map(|step| (format!("create-tenant::before-{step}"), 0))
        .collect();
    cases.push(("create-tenant::after-birth".to_owned(), 0));
    cases.push(("create-tenant::after-record".to_owned(), 0));
    let without_spare = cases.len();
    cases.push(("create-tenant::before-label".to_owned(), 1));
    cases.push(("create-tenant::before-record".to_owned(), 1));

    let uuids = futures::future::join_all(cases.iter().enumerate().map(|(index, (point, spares))| {
        let (cluster, case) = (&cluster, format!("{point}-{index}"));
        async move {
            let mut service = Service::new(cluster, &case, *spares).await;
            service.start_until_ready(Some(point)).await;
            while *spares > 0 && service.get("/control/v1/clusters/main").await["spares"] != 1 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            // Either there is no answer, or, when only the label was left to do, it was complete.
            if let Ok((status, _)) = service.create().await {
                assert_eq!(status, 201, "{case}\n{}", service.log());
            }
            service.crashed(&case).await;

            service.start_until_ready(None).await;
            let (status, tenant) = service.create().await.unwrap();
            assert!(
                [200, 201].contains(&status),
                "{case}: {status} {tenant}\n{}",
                service.log()
            );
            assert_eq!(tenant["state"], "CREATED", "{case}");
            tenant["uuid"].as_str().unwrap().replace('-', "")
        }
    }))
    .await;

    let mut admin = PgConnection::connect_with(&cluster.primary().connect_options("postgres"))
        .await
        .unwrap();
    let names: Vec<String> = uuids[..without_spare]
        .iter()
        .map(|uuid| format!("t_{uuid}"))
        .collect();
    let (databases, roles): (Vec<String>, Vec<String>) = sqlx::query_as(
        r"select
            (select array_agg(datname::text) from pg_database where datname = any ($1)),
            (select array_agg(rolname::text) from pg_roles where rolname = any ($1))",
    )
    .bind(&names)
    .fetch_one(&mut admin)
    .await
    .unwrap();
    assert_eq!(
        (databases.len(), roles.len()),
        (without_spare, without_spare),
        "one of each for each tenant"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spare_survives_a_crash_at_every_step() {
    let mut cases: Vec<String> = STEPS
        .iter()
        .map(|step| format!("make-spare::before-{step}"))
        .collect();
    cases.push("make-spare::after-record".to_owned());
    let cluster = Cluster::builder()
        .setting("max_connections", "400")
        .start()
        .await
        .unwrap();
    futures::future::join_all(cases.iter().map(|point| {
        let cluster = &cluster;
        async move {
            let mut service = Service::new(cluster, point, 1).await;
            let starting = STARTING.acquire().await.unwrap();
            service.start(Some(point));
            service.crashed(point).await;
            drop(starting);

            service.start_until_ready(None).await;
            let deadline = Instant::now() + Duration::from_secs(90);
            while service.get("/control/v1/clusters/main").await["spares"] != 1 {
                assert!(Instant::now() < deadline, "{point}: the stock is filled again");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }))
    .await;

    let mut admin = PgConnection::connect_with(&cluster.primary().connect_options("postgres"))
        .await
        .unwrap();
    let (databases, roles): (i64, i64) = sqlx::query_as(
        r"select (select count(*) from pg_database where datname like 't\_%'),
                 (select count(*) from pg_roles where rolname like 't\_%')",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap();
    let wanted = i64::try_from(cases.len()).unwrap();
    assert_eq!((databases, roles), (wanted, wanted), "one of each for each spare");
}
