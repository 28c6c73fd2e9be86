//! Every key there is: its type, its default and its limits.

use std::{net::SocketAddr, num::NonZeroU32, time::Duration};

use auth::{OperatorTokens, TenantLimits, TrustedProxies};
use secrecy::ExposeSecret;
use tenant_management::{
    BrokerSettings, ClusterName, ClusterSettings, KeyRing, LEAST_CONNECTIONS, Mode, PoolLimits, ReadSettings,
};
use tracing_subscriber::EnvFilter;
use url::Url;

use super::{
    CatalogConfig, Config, HttpConfig, LogConfig, LogFormat, ProvisioningConfig, ReadsConfig, SecurityConfig,
    SessionsConfig, issuers, reader::Reader,
};

const POSTGRES: &[&str] = &["postgres", "postgresql"];
const AMQP: &[&str] = &["amqp", "amqps"];
/// The least period of something that repeats.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// Reads every section; `None` when the reader has complaints.
pub(super) fn read(reader: &mut Reader) -> Option<Config> {
    // All are read before any is needed, so that one that is wrong does not hide what is wrong with another.
    let http = http(reader);
    let catalog = catalog(reader);
    let broker = broker(reader);
    let security = security(reader);
    let sessions = sessions(reader);
    let jwt_issuers = issuers::read(reader);
    let clusters = clusters(reader);
    let reads = reads(reader);
    let limits = limits(reader);
    let pools = pools(reader);
    let provisioning = provisioning(reader);
    let log = log(reader);
    Some(Config {
        http: http?,
        catalog: catalog?,
        broker,
        security: security?,
        sessions: sessions?,
        jwt_issuers: jwt_issuers?,
        clusters: clusters?,
        overwrite_clusters: false,
        reads: reads?,
        limits: limits?,
        pools: pools?,
        provisioning: provisioning?,
        log: log?,
        effective: String::new(),
    })
}

/// The shortest time that a session may last: the catalog is told of its use every few seconds.
const LEAST_SESSION: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST_SESSION: Duration = Duration::from_secs(366 * 24 * 60 * 60);

fn http(reader: &mut Reader) -> Option<HttpConfig> {
    let listen = reader.parsed("http.listen", Some("127.0.0.1:8080"), address);
    let control_listen = reader.parsed("http.control_listen", None, address);
    let advertised_address = reader.parsed("http.advertised_address", None, |text| match text.len() {
        1..=255 => Ok(text.to_owned()),
        _ => Err("must be 1 to 255 bytes long"),
    });
    let base_domain = reader.parsed("http.base_domain", Some("localhost"), domain);
    let trusted_proxies = reader.list("http.trusted_proxies", &[], TrustedProxies::network);
    let cors_origins = reader.list("http.cors_origins", &[], origin);
    let secure_cookies = reader.flag("http.secure_cookies", true);
    let header_timeout = reader.duration("http.header_timeout", "30s", TICK);
    let body_timeout = reader.duration("http.body_timeout", "10s", TICK);
    let request_timeout = reader.duration("http.request_timeout", "60s", TICK);
    let shutdown_delay = reader.duration("http.shutdown_delay", "1s", Duration::ZERO);
    let shutdown_grace = reader.duration("http.shutdown_grace", "30s", Duration::ZERO);
    if control_listen.is_some_and(|control| Some(control) == listen && control.port() != 0) {
        reader.refuse(
            "http.control_listen",
            "is the same as http.listen; leave it out, or choose another port",
        );
    }
    Some(HttpConfig {
        listen: listen?,
        control_listen,
        advertised_address,
        base_domain: base_domain?,
        trusted_proxies: TrustedProxies::new(trusted_proxies),
        cors_origins,
        secure_cookies: secure_cookies?,
        header_timeout: header_timeout?,
        body_timeout: body_timeout?,
        request_timeout: request_timeout?,
        shutdown_delay: shutdown_delay?,
        shutdown_grace: shutdown_grace?,
    })
}

fn catalog(reader: &mut Reader) -> Option<CatalogConfig> {
    let url = required(
        reader,
        "catalog.url",
        |reader, path| reader.url(path, POSTGRES),
        "the catalog's database",
    );
    let max_connections = reader.number("catalog.max_connections", 8, 2..=1000);
    Some(CatalogConfig {
        url: url?,
        max_connections: max_connections?,
    })
}

fn broker(reader: &mut Reader) -> Option<BrokerSettings> {
    let url = reader.url("broker.url", AMQP);
    let exchange = reader.parsed("broker.exchange", Some("tenantry"), |text| match text.len() {
        // The limit of AMQP's short strings.
        1..=255 => Ok(text.to_owned()),
        _ => Err("must be 1 to 255 bytes long"),
    });
    let authorities = reader.secret("broker.ca_certificates");
    let settings = BrokerSettings::new(&url?, &exchange?);
    let settings = reader.check("broker.url", settings)?;
    Some(match authorities {
        Some(pem) => settings.trusting(pem.expose_secret().to_owned()),
        None => settings,
    })
}

fn security(reader: &mut Reader) -> Option<SecurityConfig> {
    let hint = "32 random bytes in base64; make them with `openssl rand -base64 32`";
    let master_key = required(reader, "security.master_key", Reader::secret, hint);
    let earlier = reader.secrets("security.earlier_master_keys");
    let keys = master_key.and_then(|key| match KeyRing::new(&key, []) {
        Ok(_) => {
            let ring = KeyRing::new(&key, &earlier);
            reader.check("security.earlier_master_keys", ring)
        }
        Err(error) => {
            reader.refuse("security.master_key", error);
            None
        }
    });
    let hint = "without it nobody could be told apart from an operator; make one with `openssl rand -hex 32`";
    let token = required(reader, "security.operator_token", Reader::secret, hint);
    let operators = token.and_then(|token| {
        let tokens = OperatorTokens::new([("configured".to_owned(), token)]);
        reader.check(
            "security.operator_token",
            tokens.map_err(|_| "must be visible ASCII characters, without spaces"),
        )
    });
    let credentials_believed_for = reader.duration("security.credentials_believed_for", "5m", TICK);
    Some(SecurityConfig {
        keys: keys?,
        operators: operators?,
        credentials_believed_for: credentials_believed_for?,
    })
}

fn sessions(reader: &mut Reader) -> Option<SessionsConfig> {
    let idle_timeout = reader.duration("sessions.idle_timeout", "30m", LEAST_SESSION)?;
    let lifetime = reader.duration("sessions.lifetime", "12h", LEAST_SESSION)?;
    if lifetime > LONGEST_SESSION {
        reader.refuse("sessions.lifetime", "must be at most 1 year");
    }
    if idle_timeout > lifetime {
        reader.refuse(
            "sessions.idle_timeout",
            "must not be longer than sessions.lifetime",
        );
    }
    Some(SessionsConfig {
        idle_timeout,
        lifetime,
    })
}

fn clusters(reader: &mut Reader) -> Option<Vec<ClusterSettings>> {
    let mut clusters: Vec<Option<ClusterSettings>> = Vec::new();
    for number in 0..reader.tables("clusters") {
        let cluster = cluster(reader, &format!("clusters[{number}]"));
        let twice = cluster
            .as_ref()
            .is_some_and(|cluster| clusters.iter().flatten().any(|other| other.name == cluster.name));
        if twice {
            reader.refuse(
                &format!("clusters[{number}].name"),
                "another cluster has this name",
            );
        }
        clusters.push(cluster);
    }
    clusters.into_iter().collect()
}

fn cluster(reader: &mut Reader, at: &str) -> Option<ClusterSettings> {
    let name = required(
        reader,
        &format!("{at}.name"),
        |reader, path| reader.parsed(path, None, ClusterName::parse),
        "",
    );
    let region = required(
        reader,
        &format!("{at}.region"),
        |reader, path| reader.parsed(path, None, region),
        "",
    );
    let hint = "the administrator's URL of the primary";
    let primary = required(
        reader,
        &format!("{at}.primary"),
        |reader, path| reader.url(path, POSTGRES),
        hint,
    );
    let replicas = reader.urls(&format!("{at}.replicas"), POSTGRES);
    let max_connections = reader.number(&format!("{at}.max_connections"), 80, LEAST_CONNECTIONS..=10_000);
    Some(ClusterSettings {
        name: name?,
        region: region?,
        primary: primary?,
        replicas,
        max_connections: max_connections?,
    })
}

fn reads(reader: &mut Reader) -> Option<ReadsConfig> {
    let mode = reader.parsed("reads.mode", Some("lsn"), |text| match text {
        "lsn" => Ok(Mode::Lsn),
        "window" => Ok(Mode::Window),
        _ => Err("must be \"lsn\" or \"window\""),
    });
    let probe_interval = reader.duration("reads.probe_interval", "250ms", TICK);
    let probe_timeout = reader.duration("reads.probe_timeout", "200ms", TICK);
    let max_staleness = reader.duration("reads.max_staleness", "2s", TICK);
    let max_lag_bytes = reader.number("reads.max_lag_bytes", 0, 0..=u32::MAX);
    let catch_up_wait = reader.duration("reads.catch_up_wait", "10ms", Duration::ZERO);
    let window = reader.duration("reads.window", "5s", TICK);
    let fallback_limit = reader.number("reads.fallback_limit", 16, 1..=10_000);
    let fallback_wait = reader.duration("reads.fallback_wait", "250ms", Duration::ZERO);
    let failover_after = reader.duration("reads.failover_after", "1s", TICK);
    let position_life = reader.duration("reads.position_life", "10m", TICK);
    Some(ReadsConfig {
        settings: ReadSettings {
            mode: mode?,
            probe_interval: probe_interval?,
            probe_timeout: probe_timeout?,
            max_staleness: max_staleness?,
            max_lag_bytes: Some(max_lag_bytes?).filter(|limit| *limit > 0).map(Into::into),
            catch_up_wait: catch_up_wait?,
            window: window?,
            fallback_limit: fallback_limit?,
            fallback_wait: fallback_wait?,
            failover_after: failover_after?,
            ..ReadSettings::default()
        },
        position_life: position_life?,
    })
}

fn limits(reader: &mut Reader) -> Option<TenantLimits> {
    let per_second = reader.number("limits.requests_per_second", 1000, 0..=1_000_000);
    let burst = reader.number("limits.burst", 2000, 1..=1_000_000);
    let concurrent = reader.number("limits.concurrent_requests", 256, 0..=1_000_000);
    Some(TenantLimits {
        per_second: NonZeroU32::new(per_second?),
        burst: NonZeroU32::new(burst?)?,
        concurrent: NonZeroU32::new(concurrent?),
    })
}

fn pools(reader: &mut Reader) -> Option<PoolLimits> {
    let max_connections_per_tenant = reader.number("pools.max_connections_per_tenant", 10, 1..=10_000);
    let idle_timeout = reader.duration("pools.idle_timeout", "10s", TICK);
    let acquire_timeout = reader.duration("pools.acquire_timeout", "3s", TICK);
    let connect_timeout = reader.duration("pools.connect_timeout", "2s", TICK);
    let statement_timeout = reader.duration("pools.statement_timeout", "30s", TICK);
    let idle_in_transaction_timeout = reader.duration("pools.idle_in_transaction_timeout", "10s", TICK);
    Some(PoolLimits {
        max_connections_per_tenant: max_connections_per_tenant?,
        idle_timeout: idle_timeout?,
        acquire_timeout: acquire_timeout?,
        connect_timeout: connect_timeout?,
        statement_timeout: statement_timeout?,
        idle_in_transaction_timeout: idle_in_transaction_timeout?,
    })
}

fn provisioning(reader: &mut Reader) -> Option<ProvisioningConfig> {
    let spares = reader.number("provisioning.spares", 4, 0..=1000);
    let wait_for_instances = reader.duration("provisioning.wait_for_instances", "2s", Duration::ZERO);
    Some(ProvisioningConfig {
        spares: spares?,
        wait_for_instances: wait_for_instances?,
    })
}

fn log(reader: &mut Reader) -> Option<LogConfig> {
    let filter = reader.parsed("log.filter", Some("info"), |text| {
        let parsed = text.parse::<EnvFilter>();
        parsed
            .map(|_| text.to_owned())
            .map_err(|_| "must be a filter such as \"info\" or \"info,app=debug\"")
    });
    let format = reader.parsed("log.format", Some("auto"), |text| match text {
        "auto" => Ok(LogFormat::Auto),
        "json" => Ok(LogFormat::Json),
        "text" => Ok(LogFormat::Text),
        _ => Err("must be \"auto\", \"json\" or \"text\""),
    });
    Some(LogConfig {
        filter: filter?,
        format: format?,
    })
}

/// A setting without which the service cannot start.
pub(super) fn required<T>(
    reader: &mut Reader,
    path: &str,
    read: impl FnOnce(&mut Reader, &str) -> Option<T>,
    hint: &str,
) -> Option<T> {
    let before = reader.complaints();
    let value = read(reader, path);
    if value.is_none() && reader.complaints() == before {
        reader.refuse(
            path,
            format!("is required{}{hint}", if hint.is_empty() { "" } else { ": " }),
        );
    }
    value
}

/// The origin of a site's pages (RFC 6454, section 6.2), as browsers write it.
fn origin(text: &str) -> Result<String, &'static str> {
    let parsed = Url::parse(text).ok();
    let origin = parsed
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .map(|url| url.origin().ascii_serialization());
    if origin.as_deref() == Some(text) {
        Ok(text.to_owned())
    } else {
        Err(
            "must be an origin such as \"https://app.example.com\": no path, no slash at the end, and no \"*\"",
        )
    }
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "must be an address and a port, such as \"127.0.0.1:8080\"")
}

fn region(text: &str) -> Result<String, &'static str> {
    let well_formed = (1..=40).contains(&text.len())
        && text
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if well_formed {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 40 characters of a-z, 0-9 and hyphens")
    }
}

fn domain(text: &str) -> Result<String, &'static str> {
    let labels_ok = text.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    });
    // A top level of digits would be taken for an address.
    let named = !text
        .rsplit('.')
        .next()
        .unwrap_or_default()
        .bytes()
        .all(|byte| byte.is_ascii_digit());
    let well_formed = text.len() <= 253 && labels_ok && named;
    if well_formed {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("must be a domain such as \"example.com\"")
    }
}
