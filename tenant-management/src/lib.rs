#![doc = include_str!("../README.md")]

mod background;
mod catalog;
mod clusters;
pub mod control;
mod control_plane;
pub mod data;
mod error;
mod events;
pub mod ids;
mod instances;
mod metrics;
mod migrate;
pub mod pool;
mod promotions;
mod provisioning;
mod route;
pub mod routing;
pub mod secret;
pub mod state;
pub mod tasks;
mod tenancy;
mod tenant_id;

pub use catalog::{
    CatalogError,
    api_keys::NewApiKey,
    clusters::ClusterSettings,
    idempotency::{IdempotencyLease, Idempotent},
    migrate_catalog,
};
pub use clusters::LEAST_CONNECTIONS;
pub use control::{Actor, ApiKey, CreateTenant, Operation, Page, Propagation, Role, Tenant};
pub use control_plane::{Begun, ControlPlane};
pub use data::TenantDb;
pub use error::ControlError;
pub use events::broker::{BrokerSettings, InvalidBrokerUrl};
pub use ids::{ClusterName, Generation, InstanceId, OperationId, Revision, TenantUuid};
pub use instances::FollowSettings;
pub use migrate::{MigrateError, TenantMigrations};
pub use pool::PoolLimits;
pub use provisioning::orphans::OrphanReport;
pub use read_your_writes::{Mode, ReadSettings, Session};
pub use route::Route;
pub use routing::resolver::ResolveError;
pub use secret::KeyRing;
pub use state::{TenantEvent, TenantState};
pub use tenancy::{PartReadiness, StartError, Tenancy, TenancySettings, UnknownCluster};
pub use tenant_id::{InvalidTenantId, MAX_LENGTH, MIN_LENGTH, RESERVED, TenantId};
