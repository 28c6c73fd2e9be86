//! Two services with the same handler: one reads by a plain pool of one tenant's database, the other by the tenant's route,
//! with the caller's position, on a replica.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use axum::{Extension, Json, Router, extract::State, http::StatusCode, routing::get};
use read_your_writes::{PositionLayer, PositionSettings, Session, TokenKeys};
use reqwest::RequestBuilder;
use sqlx::{Executor, PgPool, Postgres, postgres::PgPoolOptions};
use tenant_management::{
    Route, Tenancy,
    data::{Consistency, DataError},
};
use tokio::{net::TcpListener, task::JoinHandle};

use super::CALLERS;
use crate::world::{Wishes, World, create_tenant};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arm {
    Plain,
    Routed,
}

/// Both, on the same servers.
pub(super) struct Services {
    _world: World,
    tenancy: Tenancy,
    plain: SocketAddr,
    routed: SocketAddr,
    position: String,
    http: reqwest::Client,
    tasks: Vec<JoinHandle<()>>,
}

/// What both read.
async fn newest<'c>(executor: impl Executor<'c, Database = Postgres>) -> sqlx::Result<Vec<(String, i64)>> {
    sqlx::query_as("select customer, amount_cents from invoices order by created_at desc, id desc limit 10")
        .fetch_all(executor)
        .await
}

async fn plain(State(pool): State<PgPool>) -> Result<Json<Vec<(String, i64)>>, StatusCode> {
    let rows = newest(&pool)
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(Json(rows))
}

#[derive(Clone)]
struct Routed {
    tenancy: Tenancy,
    route: Arc<Route>,
}

async fn routed(
    State(Routed { tenancy, route }): State<Routed>,
    Extension(session): Extension<Session>,
) -> Result<Json<Vec<(String, i64)>>, StatusCode> {
    let failed = |_| StatusCode::INTERNAL_SERVER_ERROR;
    let route = tenancy
        .resolve(&route.tenant)
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let db = tenancy
        .db(route, session)
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let rows = db.read(Consistency::Recent, async |mut conn| {
        Ok::<_, DataError>(newest(&mut *conn).await?)
    });
    Ok(Json(rows.await.map_err(failed)?))
}

async fn write(
    State(Routed { tenancy, route }): State<Routed>,
    Extension(session): Extension<Session>,
) -> Result<(), StatusCode> {
    let db = tenancy
        .db(route, session)
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    db.write(async |mut tx| {
        for number in 0..10 {
            sqlx::query(
                "insert into invoices (id, customer, amount_cents, currency) values (gen_random_uuid(), 'Initech', $1, 'EUR')",
            )
            .bind(i64::from(number))
            .execute(&mut *tx)
            .await?;
        }
        Ok::<_, DataError>(())
    })
    .await
    .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn serve(router: Router) -> anyhow::Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let task = tokio::spawn(async move {
        // Ends with the measurement.
        let _ = axum::serve(listener, router).await;
    });
    Ok((address, task))
}

impl Services {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let world = World::with_replicas(false, 1).await?;
        let tenancy = world
            .instance(&Wishes {
                max_connections: 80,
                pools: tenant_management::PoolLimits {
                    max_connections_per_tenant: u32::try_from(CALLERS)?,
                    ..tenant_management::PoolLimits::default()
                },
                ..Wishes::new("routed_read")
            })
            .await?;
        let tenant = create_tenant(&tenancy).await?;
        let route = tenancy.resolve(&tenant.id).await?;
        let state = Routed {
            tenancy: tenancy.clone(),
            route: Arc::clone(&route),
        };
        let positions = PositionLayer::new(PositionSettings::new(TokenKeys::new([7; 32], [])));
        let router = Router::new()
            .route("/", get(routed).post(write))
            .layer(positions)
            .with_state(state);
        let (routed, routed_task) = serve(router).await?;
        let http = reqwest::Client::new();
        let written = http.post(format!("http://{routed}/")).send().await?;
        ensure!(written.status() == 200, "nothing can be written");
        let position = written.headers().get("tenantry-position");
        let position = position.context("a write has a position")?.to_str()?.to_owned();
        world.cluster.wait_caught_up().await?;

        let database = route.uuid.physical_name();
        let pool = PgPoolOptions::new()
            .max_connections(u32::try_from(CALLERS)?)
            // The other one does not ask before each use whether a connection still works.
            .test_before_acquire(false)
            .connect_with(world.cluster.replica(0).connect_options(&database))
            .await?;
        let (plain, plain_task) = serve(Router::new().route("/", get(plain)).with_state(pool)).await?;
        // Until the replica may be chosen.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(Self {
            _world: world,
            tenancy,
            plain,
            routed,
            position,
            http,
            tasks: vec![routed_task, plain_task],
        })
    }

    /// A request, the same for both.
    pub(super) fn request(&self, arm: Arm) -> RequestBuilder {
        let address = match arm {
            Arm::Plain => self.plain,
            Arm::Routed => self.routed,
        };
        self.http
            .get(format!("http://{address}/"))
            .header("tenantry-position", &self.position)
    }

    pub(super) async fn stop(self) {
        for task in self.tasks {
            task.abort();
        }
        self.tenancy.shut_down(Duration::from_secs(5)).await;
    }
}
