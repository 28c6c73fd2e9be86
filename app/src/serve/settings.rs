//! The settings of one part in that part's own terms.

use std::net::SocketAddr;

use auth::{AuthSettings, SessionSettings};
use read_your_writes::{PositionSettings, TokenKeys};
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnectOptions;
use tenant_management::{FollowSettings, TenancySettings, TenantMigrations};

use super::ServeError;
use crate::config::{CatalogConfig, Config};

/// The migrations of tenants' databases, compiled in.
mod tenant_migrations {
    refinery::embed_migrations!("../migrations/tenant");
}

pub(super) fn tenancy(config: &Config, address: SocketAddr) -> Result<TenancySettings, ServeError> {
    let migrations = tenant_migrations::migrations::runner().get_migrations().clone();
    Ok(TenancySettings {
        catalog: catalog(&config.catalog)?,
        catalog_max_connections: config.catalog.max_connections,
        keys: config.security.keys.clone(),
        clusters: config.clusters.clone(),
        overwrite_clusters: config.overwrite_clusters,
        migrations: TenantMigrations::new(migrations),
        pools: config.pools.clone(),
        reads: config.reads.settings.clone(),
        spares: config.provisioning.spares,
        wait_for_instances: config.provisioning.wait_for_instances,
        follow: FollowSettings::default(),
        broker: config.broker.clone(),
        instance_address: config
            .http
            .advertised_address
            .clone()
            .unwrap_or_else(|| reachable(address)),
        credentials_believed_for: config.security.credentials_believed_for,
    })
}

/// How positions travel with clients.
pub(crate) fn positions(config: &Config) -> PositionSettings {
    let (current, earlier) = config.security.keys.derive("positions of clients");
    PositionSettings {
        secure: config.http.secure_cookies,
        life: config.reads.position_life,
        ..PositionSettings::new(TokenKeys::new(current, earlier))
    }
}

/// How people's sessions live.
pub(crate) fn sessions(config: &Config) -> SessionSettings {
    SessionSettings {
        idle_timeout: config.sessions.idle_timeout,
        lifetime: config.sessions.lifetime,
        secure: config.http.secure_cookies,
    }
}

/// Who gets in.
pub(crate) fn auth(config: &Config) -> AuthSettings {
    AuthSettings {
        base_domain: config.http.base_domain.clone(),
        operators: config.security.operators.clone(),
        sessions: sessions(config),
        allowed_origins: config.http.cors_origins.clone(),
        limits: config.limits,
    }
}

/// How to connect to the catalog.
pub(crate) fn catalog(config: &CatalogConfig) -> Result<PgConnectOptions, ServeError> {
    connect_options("catalog.url", &config.url)
}

/// An address that means this machine elsewhere too: one that listens everywhere goes by the machine's name.
fn reachable(address: SocketAddr) -> String {
    let name = nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok());
    match name {
        Some(name) if address.ip().is_unspecified() => format!("{name}:{}", address.port()),
        _ => address.to_string(),
    }
}

fn connect_options(key: &'static str, url: &SecretString) -> Result<PgConnectOptions, ServeError> {
    // The parser's own error may repeat a part of the URL.
    url.expose_secret()
        .parse()
        .map_err(|_| ServeError::ConnectionString { key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_that_listens_everywhere_goes_by_the_machines_name() {
        assert_eq!(reachable("10.0.0.7:8080".parse().unwrap()), "10.0.0.7:8080");
        for everywhere in ["0.0.0.0:8080", "[::]:8080"] {
            let address = reachable(everywhere.parse().unwrap());
            assert!(
                address.ends_with(":8080") && !address.starts_with("0.") && !address.starts_with('['),
                "{address}"
            );
        }
    }
}
