//! What the control plane shows, as JSON. Shapes only: where values come from is the domain's business.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use read_your_writes::Ineligible;
use serde::{Deserialize, Serialize};
use tenant_management::{
    ApiKey, InstanceId, Operation, OperationId, Propagation, Revision, Role, Tenant, TenantId, TenantState,
    TenantUuid,
    control::{Changed, ClusterOverview, InstanceOverview, NodeOverview, OperationState},
};
use utoipa::ToSchema;

/// The shapes of the domain's enums and ids, for the API's description.
pub(crate) mod schema {
    use utoipa::ToSchema;

    #[derive(ToSchema)]
    #[schema(as = TenantState, rename_all = "SCREAMING_SNAKE_CASE")]
    #[expect(dead_code, reason = "describes another crate's type")]
    pub(crate) enum State {
        InProgress,
        Created,
        Failed,
        Suspended,
        Moving,
        Deleted,
    }

    #[derive(ToSchema)]
    #[schema(as = OperationState, rename_all = "SCREAMING_SNAKE_CASE")]
    #[expect(dead_code, reason = "describes another crate's type")]
    pub(crate) enum Progress {
        Running,
        Succeeded,
        Failed,
    }

    #[derive(ToSchema)]
    #[schema(as = Role, rename_all = "lowercase")]
    #[expect(dead_code, reason = "describes another crate's type")]
    pub(crate) enum Role {
        Viewer,
        Member,
        Admin,
    }
}

/// A tenant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tenant)]
pub(crate) struct TenantBody {
    /// Public name.
    #[schema(value_type = String, examples("acme"))]
    id: TenantId,
    /// Immutable identity; the database and its role are named after it.
    #[schema(value_type = uuid::Uuid)]
    uuid: TenantUuid,
    /// Name for people.
    display_name: String,
    /// Where it is in its life.
    #[schema(value_type = schema::State)]
    state: TenantState,
    /// The cluster that holds its database.
    #[schema(examples("main"))]
    cluster: String,
    /// The cluster's region.
    #[schema(examples("eu"))]
    region: String,
    /// Host names that mean this tenant.
    domains: Vec<String>,
    /// The operator's key-value pairs.
    labels: BTreeMap<String, String>,
    /// The last schema migration that its database has.
    schema_version: i32,
    /// The catalog revision that last changed it.
    #[schema(value_type = i64)]
    revision: Revision,
    /// Birth.
    created_at: DateTime<Utc>,
    /// Last change.
    updated_at: DateTime<Utc>,
}

impl From<Tenant> for TenantBody {
    fn from(tenant: Tenant) -> Self {
        Self {
            id: tenant.id,
            uuid: tenant.uuid,
            display_name: tenant.display_name,
            state: tenant.state,
            cluster: tenant.cluster.to_string(),
            region: tenant.region,
            domains: tenant.domains,
            labels: tenant.labels,
            schema_version: tenant.schema_version,
            revision: tenant.revision,
            created_at: tenant.created_at,
            updated_at: tenant.updated_at,
        }
    }
}

/// How far a change has got among the instances.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Propagation)]
pub(crate) struct PropagationBody {
    /// The change's revision of the catalog.
    #[schema(value_type = i64)]
    revision: Revision,
    /// Instances that are alive.
    live_instances: u32,
    /// Those of them that have applied the revision.
    applied_instances: u32,
    /// Those of them that have not, yet.
    #[schema(value_type = Vec<uuid::Uuid>)]
    pending: Vec<InstanceId>,
}

impl From<Propagation> for PropagationBody {
    fn from(propagation: Propagation) -> Self {
        Self {
            revision: propagation.revision,
            live_instances: propagation.live_instances,
            applied_instances: propagation.applied_instances,
            pending: propagation.pending,
        }
    }
}

/// Something after a change, with how far the change has got.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Mutated<T> {
    #[serde(flatten)]
    value: T,
    /// How far the change has got among the instances.
    propagation: PropagationBody,
}

impl<T> Mutated<T> {
    /// The domain's answer to a command, with its value shown as `T`.
    pub(crate) fn new<D>(changed: Changed<D>, show: impl FnOnce(D) -> T) -> Self {
        Self {
            value: show(changed.value),
            propagation: changed.propagation.into(),
        }
    }
}

/// An API key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub(crate) struct ApiKeyBody {
    /// Public part: names the key.
    #[schema(examples("k3q9x0v7m2w5z8a1"))]
    id: String,
    /// Name for people.
    name: String,
    /// What it may do.
    #[schema(value_type = schema::Role)]
    role: Role,
    /// Birth.
    created_at: DateTime<Utc>,
    /// From then on it is refused.
    expires_at: Option<DateTime<Utc>>,
    /// Since then it is refused.
    revoked_at: Option<DateTime<Utc>>,
    /// When it was used last, some seconds late.
    last_used_at: Option<DateTime<Utc>>,
}

impl From<ApiKey> for ApiKeyBody {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            role: key.role,
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
        }
    }
}

/// A new API key, with its secret. The secret is shown here and never again.
#[derive(Serialize, ToSchema)]
#[schema(as = NewApiKey)]
pub(crate) struct NewApiKeyBody {
    #[serde(flatten)]
    pub(crate) key: ApiKeyBody,
    /// The whole key, to be sent as `Authorization: Bearer <secret>`.
    #[schema(examples("tnt_k3q9x0v7m2w5z8a1_…_1a2b3c4d"))]
    pub(crate) secret: String,
}

/// What a new API key should be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateApiKey {
    /// Name for people: 1 to 100 characters.
    pub(crate) name: String,
    /// What it may do.
    #[schema(value_type = schema::Role)]
    pub(crate) role: Role,
    /// From then on it is refused; never when absent.
    pub(crate) expires_at: Option<DateTime<Utc>>,
}

/// A piece of control-plane work.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Operation)]
pub(crate) struct OperationBody {
    /// Its identity.
    #[schema(value_type = uuid::Uuid)]
    id: OperationId,
    /// What it does.
    #[schema(examples("create-tenant"))]
    kind: String,
    /// The tenant that it is about.
    #[schema(value_type = String)]
    tenant: TenantId,
    /// Where it is.
    #[schema(value_type = schema::Progress)]
    state: OperationState,
    /// The step it is at, or failed at.
    step: String,
    /// How many steps there are, and how many of them are done.
    steps: Steps,
    /// Why it failed.
    error: Option<String>,
    /// Start of the first attempt.
    started_at: DateTime<Utc>,
    /// End, when it has ended.
    finished_at: Option<DateTime<Utc>>,
}

/// Progress of an operation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Steps {
    /// Steps that are done.
    done: u32,
    /// Steps in all.
    total: u32,
}

impl From<Operation> for OperationBody {
    fn from(operation: Operation) -> Self {
        let (done, total) = operation.steps;
        Self {
            id: operation.id,
            kind: operation.kind,
            tenant: operation.tenant,
            state: operation.state,
            step: operation.step,
            steps: Steps { done, total },
            error: operation.error,
            started_at: operation.started_at,
            finished_at: operation.finished_at,
        }
    }
}

/// A cluster.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cluster)]
pub(crate) struct ClusterBody {
    /// Its name.
    #[schema(examples("main"))]
    name: String,
    /// Where it is.
    #[schema(examples("eu"))]
    region: String,
    /// Connections that one instance may open to each of its nodes.
    max_connections: u32,
    /// Whether new tenants are placed on it.
    accepts_tenants: bool,
    /// Tenants whose database it holds.
    tenants: u64,
    /// Databases that are ready for tenants to come.
    spares: u64,
    /// Its servers.
    nodes: Vec<NodeBody>,
}

/// A server of a cluster, as the answering instance sees it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
pub(crate) struct NodeBody {
    /// Its name within the cluster.
    #[schema(examples("primary", "replica-1"))]
    name: String,
    /// `primary` or `replica`.
    #[schema(examples("primary"))]
    role: &'static str,
    /// Host and port.
    address: String,
    /// Connections that the instance has open to it.
    connections: u32,
    /// Reads that the instance has under way on it.
    in_flight: u32,
    /// Whether reads may go to it as a replica.
    eligible: bool,
    /// Why not, in words.
    #[schema(examples("it is too stale"))]
    reason: Option<&'static str>,
    /// The timeline that it is on, as far as it has said.
    timeline: Option<u32>,
    /// Where a primary's log stood, or what a replica had replayed, when it was asked last.
    #[schema(examples("16/B374D848"))]
    lsn: Option<String>,
    /// Bytes of log that a replica has not replayed.
    lag_bytes: Option<u64>,
    /// How old a replica's data can be at most.
    staleness_ms: Option<u64>,
}

impl From<ClusterOverview> for ClusterBody {
    fn from(cluster: ClusterOverview) -> Self {
        Self {
            name: cluster.name.to_string(),
            region: cluster.region,
            max_connections: cluster.max_connections,
            accepts_tenants: cluster.accepts_tenants,
            tenants: cluster.tenants,
            spares: cluster.spares,
            nodes: cluster.nodes.into_iter().map(NodeBody::from).collect(),
        }
    }
}

impl From<NodeOverview> for NodeBody {
    fn from(node: NodeOverview) -> Self {
        let NodeOverview {
            name,
            address,
            connections,
            status,
        } = node;
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let reason = status.eligible.err().filter(|_| !status.is_primary);
        Self {
            name,
            role: if status.is_primary { "primary" } else { "replica" },
            address,
            connections,
            in_flight: status.in_flight,
            eligible: status.eligible.is_ok(),
            reason: reason.map(Ineligible::as_str),
            timeline: status.timeline.map(|timeline| timeline.0),
            lsn: status.lsn.map(|lsn| lsn.to_string()),
            lag_bytes: status.lag_bytes,
            staleness_ms: status.staleness.map(milliseconds),
        }
    }
}

/// A running instance of the service, or one that went without a farewell.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Instance)]
pub(crate) struct InstanceBody {
    /// Its identity, another one after each start.
    #[schema(value_type = uuid::Uuid)]
    id: InstanceId,
    /// Where it listens.
    #[schema(examples("10.0.0.7:8080"))]
    address: String,
    /// The version of the program that it runs.
    version: String,
    /// The catalog revision that its routing table has.
    #[schema(value_type = i64)]
    applied_revision: Revision,
    /// How many revisions that is behind the catalog.
    behind: u64,
    /// When it registered.
    started_at: DateTime<Utc>,
    /// Until then the others wait for it.
    lease_until: DateTime<Utc>,
    /// Whether the lease has not ended.
    live: bool,
}

impl From<InstanceOverview> for InstanceBody {
    fn from(instance: InstanceOverview) -> Self {
        let InstanceOverview {
            id,
            address,
            version,
            applied_revision,
            behind,
            started_at,
            lease_until,
            live,
        } = instance;
        Self {
            id,
            address,
            version,
            applied_revision,
            behind,
            started_at,
            lease_until,
            live,
        }
    }
}
