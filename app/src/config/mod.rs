//! Settings: one TOML file, each key overridable by an environment variable `TENANTRY__SECTION__KEY`.
//!
//! Everything that is wrong is reported at once, with what to do about it, and a secret never appears in a message, in a log
//! or in the effective configuration. Refuses to know what settings are used for.

mod effective;
mod issuers;
mod reader;
mod sections;
mod tree;

use std::{
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use auth::{IssuerSettings, OperatorTokens, TenantLimits, TrustedProxies};
use secrecy::SecretString;
use tenant_management::{BrokerSettings, ClusterSettings, KeyRing, PoolLimits, ReadSettings};

use self::{reader::Reader, tree::Tree};

/// The settings of one instance, checked.
#[derive(Debug)]
pub struct Config {
    /// Listeners and limits.
    pub http: HttpConfig,
    /// The control-plane database.
    pub catalog: CatalogConfig,
    /// `[broker]`: carries word of changes between instances; without it, PostgreSQL's `NOTIFY` does. `url` is an AMQP URL;
    /// `exchange` (default `tenantry`) is what all instances of one catalog share, and no others; `ca_certificates` (PEM) are
    /// trusted with an `amqps` URL, instead of the system's.
    pub broker: Option<BrokerSettings>,
    /// Keys and credentials of the service itself.
    pub security: SecurityConfig,
    /// Sessions of people who have logged in.
    pub sessions: SessionsConfig,
    /// `[[jwt_issuers]]`: whose tokens are credentials, and for what. `issuer`, `audiences`, and `jwks_url` or `jwks_file` are
    /// required; `algorithms` (all), `leeway` (30 s), `tenant_claim` (`tenant_id`), `role_claim` (`role`), `default_role`
    /// (`viewer`; `none` refuses tokens without a role) and `refresh_interval` (5 min) have defaults. See [`IssuerSettings`].
    pub jwt_issuers: Vec<IssuerSettings>,
    /// Clusters that are registered at first start.
    pub clusters: Vec<ClusterSettings>,
    /// Whether [`Self::clusters`] also replace what the catalog knows about clusters of the same names. No setting says so:
    /// `tenantry dev` does, whose servers are what it has just started.
    pub overwrite_clusters: bool,
    /// Reads from replicas.
    pub reads: ReadsConfig,
    /// How much one tenant may ask of one instance: `requests_per_second` and `concurrent_requests` (0: no limit), `burst`.
    pub limits: TenantLimits,
    /// Connections to tenants' databases.
    pub pools: PoolLimits,
    /// Making databases.
    pub provisioning: ProvisioningConfig,
    /// What is logged, and how.
    pub log: LogConfig,
    effective: String,
}

/// `[http]`
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Where to listen. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// Where to listen for `/control`, when not on [`Self::listen`].
    pub control_listen: Option<SocketAddr>,
    /// Where operators find this instance, as the list of instances shows it; by default where it listens.
    pub advertised_address: Option<String>,
    /// The domain whose sub-domains name tenants.
    pub base_domain: String,
    /// Proxies that are believed when they say whom they speak for (`X-Forwarded-For`) and what they were asked for
    /// (`X-Forwarded-Host`). Each has to add to the first, and to set or remove the second.
    pub trusted_proxies: TrustedProxies,
    /// Origins of other sites whose pages may use the tenants' API, such as `https://app.example.com`; none by default.
    pub cors_origins: Vec<String>,
    /// Whether browsers send cookies over HTTPS only.
    pub secure_cookies: bool,
    /// How long a client may take to send its headers, and how long it may keep an idle connection.
    pub header_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How long the service keeps answering after it has said that it is not ready any more, so that load balancers notice.
    pub shutdown_delay: Duration,
    /// How long requests in flight may take to finish after that.
    pub shutdown_grace: Duration,
}

/// `[catalog]`
#[derive(Clone, Debug)]
pub struct CatalogConfig {
    /// The catalog's database.
    pub url: SecretString,
    /// Most connections to it.
    pub max_connections: u32,
}

/// `[security]`
#[derive(Clone, Debug)]
pub struct SecurityConfig {
    /// Seal what the catalog must not hold in the clear.
    pub keys: KeyRing,
    /// Who may use the control plane.
    pub operators: OperatorTokens,
    /// How long an instance that cannot ask the catalog believes what it knows about credentials: so long may it let somebody in
    /// whose credential was revoked. After that it lets nobody in.
    pub credentials_believed_for: Duration,
}

/// `[sessions]`
#[derive(Clone, Copy, Debug)]
pub struct SessionsConfig {
    /// A session ends after so long without a request.
    pub idle_timeout: Duration,
    /// A session ends so long after its login in any case.
    pub lifetime: Duration,
}

/// `[reads]`
#[derive(Clone, Debug)]
pub struct ReadsConfig {
    /// How reads are spread over replicas.
    pub settings: ReadSettings,
    /// How long the position of a write counts.
    pub position_life: Duration,
}

/// `[provisioning]`
#[derive(Clone, Debug)]
pub struct ProvisioningConfig {
    /// Databases that each cluster keeps ready.
    pub spares: u32,
    /// How long a change waits until every live instance has applied it.
    pub wait_for_instances: Duration,
}

/// `[log]`
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Which events, in the syntax of `RUST_LOG`.
    pub filter: String,
    /// How they are written.
    pub format: LogFormat,
}

/// `log.format`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// [`Self::Text`] on a terminal, [`Self::Json`] elsewhere.
    Auto,
    /// One JSON object per line.
    Json,
    /// Lines for people.
    Text,
}

/// The settings cannot be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// Everything that is wrong with the settings.
    Invalid(PathBuf, Vec<String>),
}

impl Config {
    /// Reads the file and this process's environment.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_with(
            path,
            std::env::vars_os().filter_map(|(name, value)| {
                // A name that is not UTF-8 is not one of ours; a value that is not is kept recognisable and then refused.
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            }),
        )
    }

    /// Reads the file and this environment.
    pub fn load_with(
        path: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable(path.to_owned(), error))?;
        Self::parse(&text, environment).map_err(|problems| ConfigError::Invalid(path.to_owned(), problems))
    }

    fn parse(
        text: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Vec<String>> {
        let tree = Tree::new(text, environment)?;
        let mut reader = Reader::new(tree);
        let sections = sections::read(&mut reader);
        let effective = reader.finish()?;
        let mut config = sections.expect("a reader without complaints has given every setting");
        config.effective = effective;
        Ok(config)
    }

    /// Every setting with its value and where that comes from, as a configuration file. Secrets are hidden, passwords in
    /// connection strings too.
    pub fn effective(&self) -> &str {
        &self.effective
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => {
                write!(
                    f,
                    "the configuration file {} cannot be read: {error}",
                    path.display()
                )
            }
            Self::Invalid(path, problems) => {
                write!(f, "the configuration in {} cannot be used:", path.display())?;
                problems
                    .iter()
                    .try_for_each(|problem| write!(f, "\n  - {problem}"))
            }
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests;
