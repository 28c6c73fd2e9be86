//! One instance of the service: from settings to a listener, and back down in order.
//!
//! The only place that names concrete adapters. Refuses to know what is typed on a command line.

mod listener;
pub(crate) mod settings;

use std::{io, net::SocketAddr, time::Duration};

use auth::{Issuers, jwt::JwksError};
use tenant_management::{StartError, Tenancy, tasks::TaskGroup};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::Instant,
};

use self::listener::Listener;
use crate::{
    config::{Config, HttpConfig},
    http::{self, AppState},
    telemetry,
};

/// How often histograms are folded, so that they do not grow between two scrapes.
const UPKEEP: Duration = Duration::from_secs(5);
/// How long background tasks and the catalog's connections may take to end.
const LAST_TASKS: Duration = Duration::from_secs(5);

/// The instance could not start, or ended on its own.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Something else listens there, or the address is not this machine's.
    #[error("cannot listen on {address}: {error}; choose another address in [http]")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// A connection string is no connection string.
    #[error("{key} is not a PostgreSQL connection string; write postgres://user@host:5432/database")]
    ConnectionString {
        /// Which setting.
        key: &'static str,
    },
    /// An issuer's file cannot be used.
    #[error("{0}; see jwks_file in [[jwt_issuers]]")]
    Issuer(#[from] JwksError),
    /// The catalog or the clusters are not in order.
    #[error(transparent)]
    Tenancy(#[from] StartError),
    /// A listener ended although nobody asked for it.
    #[error("a listener ended unexpectedly; the log says why")]
    Ended,
}

/// A running instance. Dropped without [`Service::stop`], it stops at once and finishes nothing.
#[derive(Debug)]
pub struct Service {
    state: AppState,
    address: SocketAddr,
    control_address: Option<SocketAddr>,
    listeners: Vec<Listener>,
    /// Closed when a listener's task has ended.
    alive: mpsc::Receiver<()>,
    shutdown_delay: Duration,
    shutdown_grace: Duration,
}

/// Runs one instance until `SIGTERM` or Ctrl-C. A second signal ends it at once.
pub async fn run(config: Config) -> anyhow::Result<()> {
    telemetry::init(&config.log);
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut service = tokio::select! {
        service = start(config) => service?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    let ended = tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        ended = service.ended() => ended,
    };
    tokio::select! {
        () = service.stop() => {}
        _ = terminate.recv() => tracing::warn!("A second signal ends the instance at once."),
        _ = interrupt.recv() => tracing::warn!("A second signal ends the instance at once."),
    }
    Ok(ended?)
}

/// Starts one instance. When this returns it answers requests.
pub async fn start(config: Config) -> Result<Service, ServeError> {
    // Before anything else, since this is what fails most often and most cheaply.
    let main = bind(config.http.listen).await?;
    let control = match config.http.control_listen {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let (address, metrics) = (main.1, telemetry::metrics());
    auth::metrics::describe();
    let tasks = TaskGroup::new();
    let issuers = Issuers::start(config.jwt_issuers.clone(), &tasks).await?;
    let tenancy = Tenancy::start(settings::tenancy(&config, address)?).await?;
    let state = AppState::new(&config, tenancy, issuers, tasks, metrics);
    let routes = http::routes(&state, control.is_some());

    let folding = state.metrics().clone();
    state.tasks().spawn_every("fold-metrics", UPKEEP, move || {
        folding.run_upkeep();
        std::future::ready(())
    });
    let control_address = control.as_ref().map(|(_, address)| *address);
    let (alive_sender, alive) = mpsc::channel(1);
    let listeners = [
        Some((main.0, routes.main)),
        control.map(|(socket, _)| socket).zip(routes.control),
    ]
    .into_iter()
    .flatten()
    .map(|(socket, router)| Listener::start(socket, router, config.http.header_timeout, alive_sender.clone()))
    .collect();
    tracing::info!(http.address = %address, instance.id = %state.tenancy().instance(), "The instance answers requests.");
    let HttpConfig {
        shutdown_delay,
        shutdown_grace,
        ..
    } = config.http;
    Ok(Service {
        state,
        address,
        control_address,
        listeners,
        alive,
        shutdown_delay,
        shutdown_grace,
    })
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |error| ServeError::Listen { address, error };
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    Ok((socket, bound))
}

impl Service {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens for the control plane, when that has a listener of its own.
    pub fn control_address(&self) -> Option<SocketAddr> {
        self.control_address
    }

    /// Tenants, their routes and their databases.
    pub fn tenancy(&self) -> &Tenancy {
        self.state.tenancy()
    }

    /// Waits until it has ended on its own, which it should not.
    pub async fn ended(&mut self) -> Result<(), ServeError> {
        // Nobody sends: listeners hold the other end until they end.
        let _ = self.alive.recv().await;
        Err(ServeError::Ended)
    }

    /// Stops in order: says that it is not ready and goes on answering until load balancers have noticed; takes no more
    /// connections and lets requests in flight finish, for a bounded time; ends everything else.
    pub async fn stop(self) {
        tracing::info!("The instance is shutting down.");
        self.state.drain();
        tokio::time::sleep(self.shutdown_delay).await;
        for listener in &self.listeners {
            listener.close();
        }
        let deadline = Instant::now() + self.shutdown_grace;
        for listener in self.listeners {
            listener.finish(deadline).await;
        }
        self.state.tasks().shut_down(LAST_TASKS).await;
        self.state.tenancy().shut_down(LAST_TASKS).await;
        tracing::info!("The instance has shut down.");
    }
}
