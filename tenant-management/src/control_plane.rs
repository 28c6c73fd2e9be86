//! The control plane of one instance: each command changes the catalog, brings this instance's table up with it, and waits
//! a bounded time for the other instances.

use std::{sync::Arc, time::Duration};

use crate::{
    catalog::{
        Catalog, CatalogError, api_keys::NewApiKey, clusters::ClusterSettings, idempotency::Idempotent,
        operator_tokens::NewOperatorToken,
    },
    clusters::{Cluster, ClusterDirectory},
    control::{
        Actor, ApiKey, AuditEvent, AuditFilter, Changed, ClusterOverview, CreateTenant, InstanceOverview,
        NodeOverview, Operation, OperatorToken, Page, Propagation, Tenant, TenantFilter,
    },
    error::ControlError,
    ids::{ClusterName, InstanceId, OperationId, Revision, TenantUuid},
    provisioning::{self, Provisioner, orphans::OrphanReport},
    routing::follower::Prompt,
    spreading::Spreading,
    state::TenantEvent,
    tenant_id::TenantId,
};

/// How long a request under an `Idempotency-Key` may take before another may try under the same key.
const IDEMPOTENCY_LEASE: Duration = Duration::from_secs(60);

/// Commands and questions about tenants.
#[derive(Debug)]
pub struct ControlPlane {
    pub(crate) catalog: Catalog,
    pub(crate) clusters: Arc<ClusterDirectory>,
    pub(crate) provisioner: Arc<Provisioner>,
    pub(crate) spreading: Spreading,
}

/// What the begin of a creation has come to.
#[derive(Debug)]
pub enum Begun {
    /// It goes on in the background.
    Started(Operation),
    /// The tenant is in service already.
    Done(Changed<Tenant>),
}

impl ControlPlane {
    /// Creates a tenant and waits until it is in service. The same request again finds it; a failed creation is taken up
    /// again.
    pub async fn create_tenant(
        &self,
        request: &CreateTenant,
        actor: &Actor,
    ) -> Result<Changed<Tenant>, ControlError> {
        let (tenant, newly) = self.provisioner.create(request, actor).await?;
        let propagation = self.propagate(tenant.revision).await?;
        Ok(Changed {
            value: tenant,
            newly,
            propagation,
        })
    }

    /// Begins to create a tenant and returns at once.
    pub async fn begin_create_tenant(
        &self,
        request: &CreateTenant,
        actor: &Actor,
    ) -> Result<Begun, ControlError> {
        match self.provisioner.begin(request, actor).await? {
            provisioning::Begun::Started(operation) => {
                let operation = self
                    .catalog
                    .operation(operation)
                    .await?
                    .ok_or(ControlError::UnknownTenant)?;
                Ok(Begun::Started(operation))
            }
            provisioning::Begun::Done(tenant, newly) => {
                let propagation = self.propagate(tenant.revision).await?;
                Ok(Begun::Done(Changed {
                    value: *tenant,
                    newly,
                    propagation,
                }))
            }
        }
    }

    /// Lets a tenant answer nobody until it is resumed. `newly` is false when it was suspended already.
    pub async fn suspend_tenant(
        &self,
        tenant: &TenantId,
        actor: &Actor,
    ) -> Result<Changed<Tenant>, ControlError> {
        self.change_state(tenant, TenantEvent::Suspended, "tenant.suspend", actor)
            .await
    }

    /// Lets a suspended tenant answer again.
    pub async fn resume_tenant(
        &self,
        tenant: &TenantId,
        actor: &Actor,
    ) -> Result<Changed<Tenant>, ControlError> {
        self.change_state(tenant, TenantEvent::Resumed, "tenant.resume", actor)
            .await
    }

    async fn change_state(
        &self,
        tenant: &TenantId,
        event: TenantEvent,
        action: &str,
        actor: &Actor,
    ) -> Result<Changed<Tenant>, ControlError> {
        let changed = self.catalog.change_state(tenant, event, action, actor).await?;
        let (tenant, newly) = changed.ok_or(ControlError::UnknownTenant)??;
        let propagation = self.propagate(tenant.revision).await?;
        Ok(Changed {
            value: tenant,
            newly,
            propagation,
        })
    }

    /// A page of instances in the order of their ids, beginning after `after`: those that live, and those whose lease has ended
    /// not long ago.
    pub async fn instances(
        &self,
        after: Option<InstanceId>,
        limit: u32,
    ) -> Result<Page<InstanceOverview>, ControlError> {
        Ok(self.catalog.instances(after, limit).await?)
    }

    /// One tenant.
    pub async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, ControlError> {
        Ok(self.catalog.tenant(id).await?.map(|known| known.tenant))
    }

    /// A page of tenants in the order of their names, beginning after `after`.
    pub async fn tenants(
        &self,
        filter: &TenantFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<Tenant>, ControlError> {
        Ok(self.catalog.tenants(filter, after, limit).await?)
    }

    /// One operation.
    pub async fn operation(&self, id: OperationId) -> Result<Option<Operation>, ControlError> {
        Ok(self.catalog.operation(id).await?)
    }

    /// Registers an API key for a tenant.
    pub async fn create_api_key(
        &self,
        tenant: TenantUuid,
        key: &NewApiKey,
        actor: &Actor,
    ) -> Result<Changed<ApiKey>, ControlError> {
        let key = self.catalog.add_api_key(tenant, key, actor).await?;
        let propagation = self.propagate(key.revision).await?;
        Ok(Changed {
            value: key,
            newly: true,
            propagation,
        })
    }

    /// A page of a tenant's API keys in the order of their ids, beginning after `after`.
    pub async fn api_keys(
        &self,
        tenant: TenantUuid,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<ApiKey>, ControlError> {
        Ok(self.catalog.api_keys(tenant, after, limit).await?)
    }

    /// Revokes an API key. `None`: the tenant has no such key.
    pub async fn revoke_api_key(
        &self,
        tenant: TenantUuid,
        key: &str,
        actor: &Actor,
    ) -> Result<Option<Changed<ApiKey>>, ControlError> {
        let Some((key, newly)) = self.catalog.revoke_api_key(tenant, key, actor).await? else {
            return Ok(None);
        };
        let propagation = self.propagate(key.revision).await?;
        Ok(Some(Changed {
            value: key,
            newly,
            propagation,
        }))
    }

    /// Registers an operator's token.
    pub async fn create_operator_token(
        &self,
        token: &NewOperatorToken,
        actor: &Actor,
    ) -> Result<Changed<OperatorToken>, ControlError> {
        let added = self.catalog.add_operator_token(token, actor).await?;
        let (token, revision) = added.ok_or_else(|| ControlError::OperatorNameTaken(token.name.clone()))?;
        self.spreading.spread(token, revision).await
    }

    /// A page of operators' tokens in the order of their ids, beginning after `after`.
    pub async fn operator_tokens(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<OperatorToken>, ControlError> {
        Ok(self.catalog.operator_tokens(after, limit).await?)
    }

    /// Revokes an operator's token. `None`: there is no such token.
    pub async fn revoke_operator_token(
        &self,
        id: &str,
        actor: &Actor,
    ) -> Result<Option<Changed<OperatorToken>>, ControlError> {
        match self.catalog.revoke_operator_token(id, actor).await? {
            Some((token, revision)) => Ok(Some(self.spreading.spread(token, revision).await?)),
            None => Ok(None),
        }
    }

    /// A page of the audit trail, the newest event first, beginning before the event `before`.
    pub async fn audit_events(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Page<AuditEvent>, ControlError> {
        Ok(self.catalog.audit_events(filter, before, limit).await?)
    }

    /// All clusters in the order of their names.
    pub async fn clusters(&self) -> Result<Vec<ClusterOverview>, ControlError> {
        let mut overviews = Vec::new();
        for cluster in self.clusters.all() {
            overviews.push(self.overview(&cluster).await?);
        }
        Ok(overviews)
    }

    /// One cluster.
    pub async fn cluster(&self, name: &ClusterName) -> Result<Option<ClusterOverview>, ControlError> {
        let Some(cluster) = self.clusters.get(name) else {
            return Ok(None);
        };
        Ok(Some(self.overview(&cluster).await?))
    }

    /// Registers a cluster; one that is known already stays as it is.
    pub async fn add_cluster(&self, settings: &ClusterSettings) -> Result<Propagation, ControlError> {
        self.catalog.register_cluster(settings, false).await?;
        self.provisioner.stock_changed.notify_one();
        let revision = self.spreading.follower.catch_up(Prompt::Own).await?.revision;
        self.propagate(revision).await
    }

    async fn overview(&self, cluster: &Cluster) -> Result<ClusterOverview, CatalogError> {
        let occupancy = self.catalog.occupancy(&cluster.record.name).await?;
        let nodes = cluster
            .overview()
            .map(|(status, address, connections)| NodeOverview {
                name: status.name.to_string(),
                address,
                connections,
                status,
            });
        Ok(ClusterOverview {
            name: cluster.record.name.clone(),
            region: cluster.record.region.clone(),
            max_connections: cluster.record.max_connections,
            accepts_tenants: cluster.record.accepts_tenants,
            tenants: occupancy.tenants.unsigned_abs(),
            spares: occupancy.spares.unsigned_abs(),
            nodes: nodes.collect(),
        })
    }

    /// What does not fit together between the catalog and a cluster. `None`: there is no such cluster.
    pub async fn orphans(&self, cluster: &ClusterName) -> Result<Option<OrphanReport>, ControlError> {
        self.provisioner.orphans(cluster).await
    }

    /// Claims an `Idempotency-Key` within its scope (who, method and path).
    pub async fn begin_idempotent(
        &self,
        scope: &str,
        key: &str,
        fingerprint: &[u8; 32],
    ) -> Result<Idempotent, ControlError> {
        Ok(self
            .catalog
            .begin_idempotent(scope, key, fingerprint, IDEMPOTENCY_LEASE)
            .await?)
    }

    async fn propagate(&self, revision: Revision) -> Result<Propagation, ControlError> {
        self.spreading.propagate(revision).await
    }
}
