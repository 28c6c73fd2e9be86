//! The control plane's commands and questions, as the HTTP API and the command line put them.
//!
//! Refuses to know HTTP, credentials and who may do what: the caller has decided that.

use std::{collections::BTreeMap, net::IpAddr};

use chrono::{DateTime, Utc};
use read_your_writes::NodeStatus;
use serde::{Deserialize, Serialize};

use crate::{
    ids::{ClusterName, InstanceId, OperationId, Revision, TenantUuid},
    state::TenantState,
    tenant_id::TenantId,
};

/// What is asked for when a tenant is created. The same request again is recognised by comparing all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTenant {
    /// The public name.
    pub id: TenantId,
    /// Name for people; the id when absent.
    pub display_name: Option<String>,
    /// Only clusters of this region will do.
    pub region: Option<String>,
    /// Only this cluster will do.
    pub cluster: Option<ClusterName>,
    /// Host names that mean this tenant, in lower case.
    pub domains: Vec<String>,
    /// Free key-value pairs for the operator.
    pub labels: BTreeMap<String, String>,
}

impl CreateTenant {
    /// A tenant without any wishes.
    pub fn new(id: TenantId) -> Self {
        Self {
            id,
            display_name: None,
            region: None,
            cluster: None,
            domains: Vec::new(),
            labels: BTreeMap::new(),
        }
    }
}

/// Who asks, for the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Such as `operator:configured`.
    pub name: String,
    /// The request's id.
    pub request_id: Option<String>,
    /// Where the request came from.
    pub address: Option<IpAddr>,
}

impl Actor {
    /// Somebody who does not come with a request.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            request_id: None,
            address: None,
        }
    }
}

/// A tenant as the control plane shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Public name.
    pub id: TenantId,
    /// Immutable identity.
    pub uuid: TenantUuid,
    /// Name for people.
    pub display_name: String,
    /// Where it is in its life.
    pub state: TenantState,
    /// The cluster that holds its database.
    pub cluster: ClusterName,
    /// The cluster's region.
    pub region: String,
    /// Host names that mean this tenant.
    pub domains: Vec<String>,
    /// The operator's key-value pairs.
    pub labels: BTreeMap<String, String>,
    /// The last schema migration its database has.
    pub schema_version: i32,
    /// The catalog revision that last changed it.
    pub revision: Revision,
    /// Birth.
    pub created_at: DateTime<Utc>,
    /// Last change.
    pub updated_at: DateTime<Utc>,
}

/// How far a change has got among the instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Propagation {
    /// The change's revision.
    pub revision: Revision,
    /// Instances whose lease had not ended.
    pub live_instances: u32,
    /// Those of them that have applied the revision.
    pub applied_instances: u32,
    /// Those of them that have not, yet.
    pub pending: Vec<InstanceId>,
}

/// A tenant after a command, with how far the command has got.
#[derive(Clone, Debug)]
pub struct Changed<T> {
    /// The state after the change.
    pub value: T,
    /// Whether this call made the change; `false` when it had been made before.
    pub newly: bool,
    /// How far it has got.
    pub propagation: Propagation,
}

/// A piece of control-plane work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its identity.
    pub id: OperationId,
    /// What it does, such as `create-tenant`.
    pub kind: String,
    /// The tenant it is about.
    pub tenant: TenantId,
    /// `RUNNING`, `SUCCEEDED` or `FAILED`.
    pub state: OperationState,
    /// The step it is at, or failed at.
    pub step: String,
    /// Steps done and steps in all.
    pub steps: (u32, u32),
    /// Why it failed, without anything secret.
    pub error: Option<String>,
    /// Start of the first attempt.
    pub started_at: DateTime<Utc>,
    /// End, when it has ended.
    pub finished_at: Option<DateTime<Utc>>,
}

/// Where an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OperationState {
    /// Somebody works on it, or the resumer will.
    Running,
    /// Done.
    Succeeded,
    /// Ended without success; it can be tried again.
    Failed,
}

/// Filter of the list of tenants. Absent parts match everything; purged tenants never appear.
#[derive(Clone, Debug, Default)]
pub struct TenantFilter {
    /// Only tenants in this state.
    pub state: Option<TenantState>,
    /// Only tenants on this cluster.
    pub cluster: Option<ClusterName>,
    /// Only tenants with this label; with a value, only where it has this value.
    pub label: Option<(String, Option<String>)>,
}

/// One page of a list, in the order of its key.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether there are more after the last item.
    pub more: bool,
}

/// What a tenant credential may do; each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reads and writes.
    Member,
    /// Also manages the tenant's keys and users.
    Admin,
}

/// A tenant's API key without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Public part: names the key in the catalog.
    pub id: String,
    /// The tenant it opens.
    pub tenant: TenantUuid,
    /// Name for people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// SHA-256 of the secret part.
    pub secret_sha256: [u8; 32],
    /// Birth.
    pub created_at: DateTime<Utc>,
    /// From then on it is refused.
    pub expires_at: Option<DateTime<Utc>>,
    /// When somebody revoked it.
    pub revoked_at: Option<DateTime<Utc>>,
    /// When it was used last, a few seconds late and only where it is read from the catalog: a routing table does not follow it.
    pub last_used_at: Option<DateTime<Utc>>,
    /// The catalog revision that last changed it.
    pub revision: Revision,
}

/// What an operator may do; each role includes the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperatorRole {
    /// Looks, in the control plane and in tenants.
    Read,
    /// Changes, too.
    Write,
}

/// An operator's token without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorToken {
    /// Public part: names the token in the catalog.
    pub id: String,
    /// The operator's name.
    pub name: String,
    /// What it may do.
    pub role: OperatorRole,
    /// SHA-256 of the secret part.
    pub secret_sha256: [u8; 32],
    /// Birth.
    pub created_at: DateTime<Utc>,
    /// From then on it is refused.
    pub expires_at: Option<DateTime<Utc>>,
    /// When somebody revoked it.
    pub revoked_at: Option<DateTime<Utc>>,
    /// When it was used last, a few seconds late.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// Something that was done, or tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// Events are numbered in the order in which they were written.
    pub id: i64,
    /// When; of attempts that are counted together, the first.
    pub at: DateTime<Utc>,
    /// Who, such as `operator:configured`; `unknown` when that could not be found out.
    pub actor: String,
    /// What, such as `tenant.create`.
    pub action: String,
    /// In which tenant, by its public name.
    pub tenant: Option<String>,
    /// In which tenant, by its identity.
    pub tenant_uuid: Option<TenantUuid>,
    /// What it was done to, by its id.
    pub subject: Option<String>,
    /// The request.
    pub request_id: Option<String>,
    /// Where the request came from.
    pub address: Option<String>,
    /// How often: attempts that look the same are counted together.
    pub times: u32,
}

/// Filter of the audit trail. Absent parts match everything.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only what was done in this tenant.
    pub tenant: Option<TenantUuid>,
    /// Only what this one did.
    pub actor: Option<String>,
    /// Only this.
    pub action: Option<String>,
}

/// A cluster with its nodes.
#[derive(Clone, Debug)]
pub struct ClusterOverview {
    /// Its name.
    pub name: ClusterName,
    /// Where it is.
    pub region: String,
    /// Connections that one instance may open to each of its nodes.
    pub max_connections: u32,
    /// Whether new tenants are placed on it.
    pub accepts_tenants: bool,
    /// Tenants whose database it holds.
    pub tenants: u64,
    /// Databases ready for tenants to come.
    pub spares: u64,
    /// Its servers.
    pub nodes: Vec<NodeOverview>,
}

/// One server of a cluster.
#[derive(Clone, Debug)]
pub struct NodeOverview {
    /// Its name within the cluster: `primary`, `replica-1`, …
    pub name: String,
    /// Host and port.
    pub address: String,
    /// Connections that this instance has open to it.
    pub connections: u32,
    /// How it is seen from this instance at the moment.
    pub status: NodeStatus,
}

/// An instance as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceOverview {
    /// Its identity, another one after each start.
    pub id: InstanceId,
    /// Where it listens.
    pub address: String,
    /// The version of the program that it runs.
    pub version: String,
    /// The catalog revision that its routing table has.
    pub applied_revision: Revision,
    /// How many revisions its table is behind the catalog.
    pub behind: u64,
    /// When it registered.
    pub started_at: DateTime<Utc>,
    /// Until then the others wait for it.
    pub lease_until: DateTime<Utc>,
    /// Whether the lease has not ended.
    pub live: bool,
}

impl<T> Page<T> {
    /// A page of at most `limit` items out of a query that asked for one more than that.
    pub(crate) fn from_one_more(mut items: Vec<T>, limit: u32) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        Self { items, more }
    }
}

impl OperatorRole {
    /// The role as the catalog and the API write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl Role {
    /// The role as the catalog and the API write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }
}
