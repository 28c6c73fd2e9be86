//! One service with one handler's work behind two routes: one for anybody, one for whoever has a key.

use std::{net::SocketAddr, num::NonZeroU32, time::Duration};

use anyhow::Context;
use auth::{
    AuthError, AuthSettings, AuthState, GeneratedKey, Issuers, KeyKind, OperatorTokens, SessionSettings,
    TenantAccess, TenantLimits, Viewer, limits::LimitLayer,
};
use axum::{
    Extension, Json, Router,
    extract::{FromRef, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use read_your_writes::{PositionLayer, PositionSettings, Session, TokenKeys};
use reqwest::RequestBuilder;
use secrecy::{ExposeSecret, SecretString};
use tenant_management::{
    Actor, KeyRing, NewApiKey, Role, Tenancy, TenantDb, TenantId,
    data::{Consistency, DataError},
};
use tokio::{net::TcpListener, task::JoinHandle};

use super::CALLERS;
use crate::world::{Wishes, World, create_tenant, key};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arm {
    Open,
    ByKey,
}

/// The service, and a key for it.
pub(super) struct Service {
    _world: World,
    tenancy: Tenancy,
    address: SocketAddr,
    key: SecretString,
    http: reqwest::Client,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct App {
    auth: AuthState,
    tenancy: Tenancy,
    tenant: TenantId,
}

impl FromRef<App> for AuthState {
    fn from_ref(app: &App) -> Self {
        app.auth.clone()
    }
}

/// What both read.
async fn newest(db: &TenantDb) -> Result<Json<Vec<(String, i64)>>, StatusCode> {
    let rows = db.read(Consistency::Recent, async |mut connection| {
        let query = "select customer, amount_cents from invoices order by created_at desc, id desc limit 10";
        Ok::<_, DataError>(sqlx::query_as(query).fetch_all(&mut *connection).await?)
    });
    Ok(Json(rows.await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?))
}

async fn open(
    State(app): State<App>,
    Extension(session): Extension<Session>,
) -> Result<Json<Vec<(String, i64)>>, StatusCode> {
    let failed = |()| StatusCode::INTERNAL_SERVER_ERROR;
    let route = app.tenancy.resolve(&app.tenant).await.map_err(|_| failed(()))?;
    newest(&app.tenancy.db(route, session).map_err(|_| failed(()))?).await
}

async fn by_key(access: TenantAccess<Viewer>) -> Result<Json<Vec<(String, i64)>>, StatusCode> {
    newest(&access.db).await
}

fn refuse(error: AuthError) -> Response {
    (StatusCode::FORBIDDEN, error.to_string()).into_response()
}

impl Service {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let world = World::start(false).await?;
        let tenancy = world
            .instance(&Wishes {
                max_connections: 80,
                pools: tenant_management::PoolLimits {
                    max_connections_per_tenant: u32::try_from(CALLERS)?,
                    ..tenant_management::PoolLimits::default()
                },
                ..Wishes::new("authentication")
            })
            .await?;
        let tenant = create_tenant(&tenancy).await?;
        let generated = GeneratedKey::generate(KeyKind::Tenant, &mut rand::rng());
        let new = NewApiKey {
            id: generated.id.to_string(),
            name: "benchmark".to_owned(),
            role: Role::Viewer,
            secret_sha256: generated.secret_sha256,
            expires_at: None,
        };
        let actor = Actor::named("operator:benchmark");
        tenancy
            .control()
            .create_api_key(tenant.uuid, &new, &actor)
            .await?;
        let router = router(&tenancy, tenant.id)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // Ends with the measurement.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            _world: world,
            tenancy,
            address,
            key: generated.plaintext,
            http: reqwest::Client::new(),
            task,
        })
    }

    /// A request of one of the two kinds. Both bring the key along, which one of them does not look at: what is measured is not
    /// the sending of a header.
    pub(super) fn request(&self, arm: Arm) -> RequestBuilder {
        let path = match arm {
            Arm::Open => "open",
            Arm::ByKey => "by-key",
        };
        self.http
            .get(format!("http://{}/{path}", self.address))
            .bearer_auth(self.key.expose_secret())
    }

    pub(super) async fn stop(self) {
        self.task.abort();
        self.tenancy.shut_down(Duration::from_secs(5)).await;
    }
}

/// Both routes below the layer that positions need; the one with a key also below those that authentication needs, with limits
/// that count and are never reached.
fn router(tenancy: &Tenancy, tenant: TenantId) -> anyhow::Result<Router> {
    let keys = KeyRing::new(&key().into(), [])?;
    let settings = AuthSettings {
        base_domain: "localhost".to_owned(),
        operators: OperatorTokens::new([("configured".to_owned(), "example-only".to_owned().into())])?,
        sessions: SessionSettings::default(),
        allowed_origins: Vec::new(),
        limits: TenantLimits {
            per_second: NonZeroU32::new(1_000_000),
            burst: NonZeroU32::new(1_000_000).context("it is not zero")?,
            concurrent: NonZeroU32::new(1_000),
        },
    };
    let auth = AuthState::new(tenancy.clone(), Issuers::none(), &keys, settings, refuse);
    let limits = auth.limit_headers();
    let app = App {
        auth,
        tenancy: tenancy.clone(),
        tenant,
    };
    let authenticated = Router::new()
        .route("/by-key", get(by_key))
        .layer(LimitLayer::new(limits));
    let positions = PositionLayer::new(PositionSettings::new(TokenKeys::new([7; 32], [])));
    Ok(Router::new()
        .route("/open", get(open))
        .merge(authenticated)
        .layer(positions)
        .with_state(app))
}
