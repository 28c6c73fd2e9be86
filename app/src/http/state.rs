//! What handlers reach: one value, cheap to clone.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use auth::{AuthError, AuthState, Issuers, TrustedProxies};
use axum::{extract::FromRef, response::IntoResponse};
use metrics_exporter_prometheus::PrometheusHandle;
use read_your_writes::PositionLayer;
use tenant_management::{ControlPlane, People, Tenancy, tasks::TaskGroup};

use super::problem::Problem;
use crate::{config::Config, serve::settings};

/// What handlers reach. A clone is cheap.
#[derive(Clone)]
pub struct AppState(Arc<Inner>);

struct Inner {
    auth: AuthState,
    tenancy: Tenancy,
    base_domain: String,
    positions: PositionLayer,
    proxies: TrustedProxies,
    allowed_origins: Vec<String>,
    only_tls: bool,
    metrics: PrometheusHandle,
    limits: Limits,
    tasks: TaskGroup,
    draining: AtomicBool,
}

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until its body has arrived.
    pub body_timeout: Duration,
    /// Until its answer is there.
    pub request_timeout: Duration,
}

impl AppState {
    /// The state of a service that is about to start.
    pub fn new(
        config: &Config,
        tenancy: Tenancy,
        issuers: Issuers,
        tasks: TaskGroup,
        metrics: PrometheusHandle,
    ) -> Self {
        let refuse = |error: AuthError| Problem::from(error).into_response();
        let base_domain = config.http.base_domain.clone();
        Self(Arc::new(Inner {
            auth: AuthState::new(
                tenancy.clone(),
                issuers,
                &config.security.keys,
                settings::auth(config),
                refuse,
            ),
            proxies: config.http.trusted_proxies.clone(),
            only_tls: config.http.secure_cookies,
            allowed_origins: config.http.cors_origins.clone(),
            tenancy,
            base_domain,
            positions: PositionLayer::new(settings::positions(config)),
            metrics,
            limits: Limits {
                body_timeout: config.http.body_timeout,
                request_timeout: config.http.request_timeout,
            },
            tasks,
            draining: AtomicBool::new(false),
        }))
    }

    /// Tenants, their routes and their databases.
    pub fn tenancy(&self) -> &Tenancy {
        &self.0.tenancy
    }

    /// The control plane's commands and questions.
    pub fn control(&self) -> &ControlPlane {
        self.0.tenancy.control()
    }

    /// The domain whose sub-domains name tenants, in lower case.
    pub fn base_domain(&self) -> &str {
        &self.0.base_domain
    }

    /// Carries positions between a client's requests.
    pub(crate) fn positions(&self) -> PositionLayer {
        self.0.positions.clone()
    }

    /// Proxies that are believed.
    pub(crate) fn proxies(&self) -> TrustedProxies {
        self.0.proxies.clone()
    }

    /// Origins of other sites whose pages may use the tenants' API.
    pub(crate) fn allowed_origins(&self) -> &[String] {
        &self.0.allowed_origins
    }

    /// Whether browsers reach the service over TLS only.
    pub(crate) fn only_tls(&self) -> bool {
        self.0.only_tls
    }

    /// People, and their ways in.
    pub fn people(&self) -> &People {
        self.0.tenancy.people()
    }

    /// What has been measured.
    pub fn metrics(&self) -> &PrometheusHandle {
        &self.0.metrics
    }

    /// How long a request may take.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// Tasks that belong to the service, and end with it.
    pub fn tasks(&self) -> &TaskGroup {
        &self.0.tasks
    }

    /// Whether the service is shutting down: it still answers, and wants no new work sent to it.
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Acquire)
    }

    /// From now on the service is not ready.
    pub(crate) fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
    }
}

impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppState")
            .field("instance", &self.tenancy().instance())
            .finish_non_exhaustive()
    }
}

impl FromRef<AppState> for AuthState {
    fn from_ref(state: &AppState) -> Self {
        state.0.auth.clone()
    }
}
