#![doc = include_str!("../README.md")]

pub mod audit;
mod background;
mod believed;
mod catalog;
mod clusters;
pub mod control;
mod control_plane;
pub mod data;
mod email;
mod error;
mod events;
pub mod ids;
mod instances;
mod metrics;
mod migrate;
pub mod people;
pub mod pool;
mod promotions;
mod provisioning;
mod route;
pub mod routing;
pub mod secret;
mod spreading;
pub mod state;
pub mod tasks;
mod tenancy;
mod tenant_id;

pub use catalog::{
    CatalogError,
    api_keys::NewApiKey,
    clusters::ClusterSettings,
    idempotency::{IdempotencyLease, Idempotent},
    invitations::NewInvitation,
    login_attempts::Allowance,
    migrate_catalog,
    operator_tokens::NewOperatorToken,
    users::Account,
};
pub use clusters::LEAST_CONNECTIONS;
pub use control::{
    Actor, ApiKey, CreateTenant, Operation, OperatorRole, OperatorToken, Page, Propagation, Role, Tenant,
};
pub use control_plane::{Begun, ControlPlane};
pub use data::TenantDb;
pub use email::{EmailAddress, InvalidEmailAddress};
pub use error::ControlError;
pub use events::broker::{BrokerSettings, InvalidBrokerUrl};
pub use ids::{ClusterName, Generation, InstanceId, OperationId, Revision, TenantUuid, UserId};
pub use instances::FollowSettings;
pub use migrate::{MigrateError, TenantMigrations};
pub use people::{Invitation, Member, NewSession, People, PersonSession};
pub use pool::PoolLimits;
pub use provisioning::orphans::OrphanReport;
pub use read_your_writes::{Mode, ReadSettings, Session};
pub use route::Route;
pub use routing::resolver::ResolveError;
pub use secret::KeyRing;
pub use state::{TenantEvent, TenantState};
pub use tenancy::{PartReadiness, StartError, Tenancy, TenancySettings, UnknownCluster};
pub use tenant_id::{InvalidTenantId, MAX_LENGTH, MIN_LENGTH, RESERVED, TenantId};
