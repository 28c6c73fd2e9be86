//! The settings of one part in that part's own terms.

use std::net::SocketAddr;

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
        instance_address: address.to_string(),
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

/// How to connect to the catalog.
pub(crate) fn catalog(config: &CatalogConfig) -> Result<PgConnectOptions, ServeError> {
    connect_options("catalog.url", &config.url)
}

fn connect_options(key: &'static str, url: &SecretString) -> Result<PgConnectOptions, ServeError> {
    // The parser's own error may repeat a part of the URL.
    url.expose_secret()
        .parse()
        .map_err(|_| ServeError::ConnectionString { key })
}
