//! `tenantry dev`: everything on this machine, to try things out and to develop against.
//!
//! A private PostgreSQL cluster with replicas, one instance of the service in this process, and two tenants. Owns the order
//! in which they start and stop. Everything is kept in one folder, so that the next start finds it again, however this one
//! ended: the servers are stopped by a guardian process when this one is killed.

mod configuration;
mod folder;
mod seed;
mod servers;
mod welcome;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::PathBuf,
};

use clap::Args;
use sandbox::Cluster;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use url::Url;

use self::{
    folder::{CONFIG, Folder, Memory, READY},
    welcome::Welcome,
};
use crate::{
    cli::{ApiClient, Failure, Progress, StopSignals, print},
    config::Config,
    serve::{self, Service},
    telemetry,
};

/// Where the service listens unless somebody says otherwise.
const LISTEN: &str = "127.0.0.1:8080";
/// The variables that say the same as an argument. The argument is nearer, so it wins.
const LISTEN_VARIABLE: &str = "TENANTRY__HTTP__LISTEN";
const TOKEN_VARIABLE: &str = "TENANTRY__SECURITY__OPERATOR_TOKEN";

/// Arguments of `tenantry dev`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenantry dev
  tenantry dev --listen 127.0.0.1:8090 --data-dir /tmp/try --replicas 2

Everything is kept in the data folder, and the next start continues there.
DIR/dev.json appears when everything is ready; it tells scripts what is where.
Settings can be overridden, as in TENANTRY__POOLS__IDLE_TIMEOUT=30s.")]
pub struct DevArguments {
    /// Where the service listens; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Where everything is kept
    #[arg(long, value_name = "DIR", default_value = ".dev")]
    data_dir: PathBuf,
    /// How many streaming replicas the cluster has
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=8))]
    replicas: u8,
    /// The operator's token; otherwise a random one is made and remembered
    #[arg(long, value_name = "TOKEN")]
    operator_token: Option<SecretString>,
    /// Forget everything that is in the data folder first
    #[arg(long)]
    reset: bool,
}

/// What `dev.json` says.
#[derive(Serialize)]
struct Ready<'r> {
    api_url: &'r str,
    operator_token: &'r str,
    catalog_url: &'r str,
    primary_url: String,
    replica_urls: Vec<String>,
    /// A working API key for each tenant.
    tenants: &'r BTreeMap<String, String>,
    config: &'r str,
}

/// Everything that runs.
struct Running {
    service: Service,
    cluster: Cluster,
    folder: Folder,
    memory: Memory,
}

/// Starts everything, and stops it when asked to. Asked a second time, it stops at once.
pub async fn run(arguments: DevArguments) -> Result<(), Failure> {
    let mut stop = StopSignals::listen()?;
    let mut running = tokio::select! {
        running = start(arguments) => running?,
        // What has been started so far is dropped, and that stops it.
        () = stop.next() => return Ok(()),
    };
    running.announce()?;
    let ended = tokio::select! {
        () = stop.next() => Ok(()),
        ended = running.service.ended() => ended.map_err(Failure::operation),
    };
    tokio::select! {
        stopped = running.stop() => ended.and(stopped),
        () = stop.next() => ended,
    }
}

async fn start(arguments: DevArguments) -> Result<Running, Failure> {
    let folder = Folder::take(&arguments.data_dir).await?;
    folder.retract()?;
    let listen = listen_address(&arguments);
    check_free(&listen)?;
    if arguments.reset {
        servers::remove(&folder).await?;
        folder.forget()?;
    }
    let mut memory = folder.recall()?;
    if let Some(token) = &arguments.operator_token {
        memory.operator_token = token.expose_secret().to_owned();
    } else if let Ok(token) = std::env::var(TOKEN_VARIABLE) {
        memory.operator_token = token;
    }
    folder.remember(&memory)?;

    let progress = Progress::start(format_args!(
        "Starting PostgreSQL (replicas: {})",
        arguments.replicas
    ));
    let cluster = servers::start(&folder, &mut memory, arguments.replicas.into()).await?;
    servers::provide_catalog(cluster.primary(), &memory.catalog_password.clone().into()).await?;
    drop(progress);

    folder.write(CONFIG, &configuration::render(&cluster, &memory, &listen))?;
    let mut config =
        Config::load_with(&folder.at(CONFIG), environment(&arguments)).map_err(Failure::usage)?;
    config.overwrite_clusters = true;
    telemetry::init(&config.log);
    let service = serve::start(config).await.map_err(Failure::operation)?;

    let api = api_url(service.address());
    let operator = ApiClient::new(api.clone(), memory.operator_token.clone().into())?;
    memory.api_keys = seed::seed(&api, &operator, &memory.api_keys).await?;
    folder.remember(&memory)?;
    Ok(Running {
        service,
        cluster,
        folder,
        memory,
    })
}

/// Where the service is going to listen.
fn listen_address(arguments: &DevArguments) -> String {
    let argument = arguments.listen.map(|listen| listen.to_string());
    argument
        .or_else(|| std::env::var(LISTEN_VARIABLE).ok())
        .unwrap_or_else(|| LISTEN.to_owned())
}

/// Fails if something listens there: better now than when everything else has been started. What is no address at all is
/// left to the one who reads settings.
fn check_free(listen: &str) -> Result<(), Failure> {
    match listen.parse::<SocketAddr>().map(TcpListener::bind) {
        Ok(Err(error)) => Err(Failure::operation(format_args!(
            "cannot listen on {listen}: {error}\n  Stop what listens there, or choose another address, for example \
             --listen 127.0.0.1:0 for any free port."
        ))),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

/// This process's environment, without what an argument has said otherwise.
fn environment(arguments: &DevArguments) -> impl Iterator<Item = (String, String)> {
    let overruled = [
        arguments.listen.is_some().then_some(LISTEN_VARIABLE),
        arguments.operator_token.is_some().then_some(TOKEN_VARIABLE),
    ];
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
        .filter(move |(name, _)| !overruled.contains(&Some(name.as_str())))
}

impl Running {
    /// Tells scripts and people that everything is ready.
    fn announce(&self) -> Result<(), Failure> {
        let Self {
            service,
            cluster,
            folder,
            memory,
        } = self;
        let api = api_url(service.address());
        let (config, ready_file) = (
            folder.at(CONFIG).display().to_string(),
            folder.at(READY).display().to_string(),
        );
        folder.announce(&Ready {
            api_url: api.as_str().trim_end_matches('/'),
            operator_token: &memory.operator_token,
            catalog_url: configuration::catalog_url(cluster, memory).as_str(),
            primary_url: cluster.primary().url("postgres"),
            replica_urls: cluster
                .replicas()
                .iter()
                .map(|replica| replica.url("postgres"))
                .collect(),
            tenants: &memory.api_keys,
            config: &config,
        })?;
        let welcome = Welcome {
            api: &api,
            operator_token: &memory.operator_token,
            keys: &memory.api_keys,
            config: &config,
            ready_file: &ready_file,
            servers: &format!(
                "PostgreSQL {}, replicas: {}",
                cluster.binaries().version().text,
                cluster.replicas().len()
            ),
        };
        print(&welcome.text())
    }

    /// The service first: what it has been asked needs the servers.
    async fn stop(self) -> Result<(), Failure> {
        let progress = Progress::start("Stopping");
        self.folder.retract()?;
        self.service.stop().await;
        let stopped = self.cluster.stop().await.map_err(Failure::operation);
        drop(progress);
        stopped
    }
}

/// Where this machine reaches a service that listens there.
fn api_url(listen: SocketAddr) -> Url {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let address = SocketAddr::new(ip, listen.port());
    format!("http://{address}")
        .parse()
        .expect("an address and a port make a URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_listens_everywhere_is_reached_here() {
        for (listen, url) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("0.0.0.0:9", "http://127.0.0.1:9/"),
            ("[::]:9", "http://[::1]:9/"),
            ("[::1]:9", "http://[::1]:9/"),
        ] {
            assert_eq!(api_url(listen.parse().unwrap()).as_str(), url);
        }
    }
}
