//! A server of its own for each test, with tenants on it, and a way to wait for what is to happen.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod notes;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{StreamExt, stream};
use sandbox::Cluster;
use secrecy::ExposeSecret;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, postgres::PgConnectOptions};
use tenant_management::{
    ClusterName, Generation, KeyRing, Revision, Route, TenantId, TenantState, TenantUuid,
    pool::{NodePool, NodeSettings, PoolLimits},
    secret::{generate_password, scram_verifier},
    tasks::TaskGroup,
};

/// How long a test waits for what must happen before it fails.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A server, its administrator and the keys of its tenants' passwords.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) keys: KeyRing,
    pub(crate) tasks: TaskGroup,
}

impl World {
    /// Starts a server for this test alone.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with settings.
    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> Self {
        let mut builder = Cluster::builder().replicas(0).setting("max_connections", "200");
        for (name, value) in settings {
            builder = builder.setting(*name, *value);
        }
        let cluster = builder.start().await.expect("a server starts");
        let keys = KeyRing::new(&STANDARD.encode([7; 32]).into(), []).expect("these are 32 bytes");
        Self {
            cluster,
            keys,
            tasks: TaskGroup::new(),
        }
    }

    /// The administrator's way to a database.
    pub(crate) fn admin_options(&self, database: &str) -> PgConnectOptions {
        self.cluster
            .primary()
            .connect_options(database)
            .disable_statement_logging()
    }

    /// A connection as administrator.
    pub(crate) async fn admin(&self) -> PgConnection {
        self.admin_options("postgres")
            .connect()
            .await
            .expect("the administrator can connect")
    }

    /// Makes a tenant: role, database, mark, and the right to connect.
    pub(crate) async fn tenant(&self, slug: &str) -> Arc<Route> {
        let mut admin = self.admin().await;
        let route = self.tenant_by(&mut admin, slug).await;
        admin.close().await.expect("the administrator can leave");
        route
    }

    /// Makes several tenants, named `tenant-0` and so on.
    pub(crate) async fn tenants(&self, count: usize) -> Vec<Arc<Route>> {
        stream::iter(0..count)
            .map(|number| self.tenant_at(number))
            .buffered(4)
            .collect()
            .await
    }

    async fn tenant_at(&self, number: usize) -> Arc<Route> {
        self.tenant(&format!("tenant-{number}")).await
    }

    async fn tenant_by(&self, admin: &mut PgConnection, slug: &str) -> Arc<Route> {
        let uuid = TenantUuid::generate();
        let name = uuid.physical_name();
        let password = generate_password();
        run(
            admin,
            format!(
                "create role {name} login password '{}'",
                scram_verifier(&password)
            ),
        )
        .await;
        run(admin, format!("create database {name}")).await;
        run(admin, format!("revoke connect on database {name} from public")).await;
        run(
            admin,
            format!("grant connect, create on database {name} to {name}"),
        )
        .await;
        run(
            admin,
            format!("alter database {name} set tenantry.tenant = '{uuid}'"),
        )
        .await;
        Arc::new(Route {
            tenant: TenantId::parse_new(slug).expect("the test knows the grammar"),
            uuid,
            state: TenantState::Created,
            cluster: ClusterName::parse("main").expect("the test knows the grammar"),
            generation: Generation(1),
            revision: Revision(1),
            password: self
                .keys
                .seal(&Route::secret_owner(uuid), password.expose_secret().as_bytes()),
        })
    }

    /// Makes a table `notes (text text)` in the tenant's database, as the tenant's own.
    pub(crate) async fn notes_table(&self, route: &Route) {
        let name = route.uuid.physical_name();
        let mut admin = self
            .admin_options(&name)
            .connect()
            .await
            .expect("the administrator can connect");
        run(&mut admin, "create table notes (text text not null)".to_owned()).await;
        run(
            &mut admin,
            format!("grant select, insert, update, delete on notes to {name}"),
        )
        .await;
        admin.close().await.expect("the administrator can leave");
    }

    /// Settings for a pool of this server with at most `max_connections`.
    pub(crate) fn settings(&self, max_connections: u32, limits: PoolLimits) -> NodeSettings {
        NodeSettings {
            name: "main".into(),
            admin: self.admin_options("postgres"),
            max_connections,
            limits,
        }
    }

    /// A pool of this server with at most `max_connections`.
    pub(crate) fn pool(&self, max_connections: u32, limits: PoolLimits) -> NodePool {
        self.pool_from(self.settings(max_connections, limits))
    }

    /// A pool with these settings.
    pub(crate) fn pool_from(&self, settings: NodeSettings) -> NodePool {
        NodePool::start(settings, self.keys.clone(), &self.tasks)
    }

    /// Ends the test: all tasks end, and no connection is left.
    pub(crate) async fn end(self) {
        assert!(self.tasks.shut_down(LIMIT).await, "all tasks end");
        // The server ends at once with its folder; there is nothing to keep.
        drop(self.cluster);
    }
}

/// Runs a statement that the test has written itself.
pub(crate) async fn run(connection: &mut PgConnection, sql: String) {
    connection
        .execute(AssertSqlSafe(sql.clone()))
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The same route with another generation.
pub(crate) fn next_generation(route: &Route) -> Arc<Route> {
    Arc::new(Route {
        generation: Generation(route.generation.0 + 1),
        ..route.clone()
    })
}

/// Waits until the condition holds.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Client backends on the server, other than the one that asks.
pub(crate) async fn backends(admin: &mut PgConnection) -> i64 {
    sqlx::query_scalar(
        "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
    )
    .fetch_one(admin)
    .await
    .expect("the administrator can ask")
}
