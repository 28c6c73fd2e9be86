//! Making tenants: taking a name, making a database, putting it into service (invariant I8).
//!
//! [`steps`] are what is done, [`server`] does them on a cluster, [`template`] prepares the cluster, [`spares`] keeps
//! databases in stock, [`resumer`] takes over what others left, [`orphans`] reports what belongs to nobody.

pub(crate) mod one_at_a_time;
pub(crate) mod orphans;
pub(crate) mod placement;
pub(crate) mod resumer;
pub(crate) mod server;
pub(crate) mod spares;
pub(crate) mod steps;
pub(crate) mod template;
mod work;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::{Notify, oneshot};

use self::one_at_a_time::OneAtATime;
use crate::{
    catalog::{
        Catalog, CatalogError,
        tenants::{Birth, OperationLease, Worker, canonical},
    },
    clusters::{Cluster, ClusterDirectory},
    control::{Actor, CreateTenant, Tenant},
    error::ControlError,
    ids::{InstanceId, OperationId, TenantUuid},
    migrate::TenantMigrations,
    state::TenantState,
    tasks::TaskGroup,
};

/// How long a worker owns an operation without a sign of life. It renews at a third of this.
const LEASE: Duration = Duration::from_secs(15);
/// How long a caller waits for a creation that somebody else is at work on.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(30);
/// First pause between two looks at a creation that somebody else is at work on; it doubles up to ten times as much.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// What a caller is told to wait before trying a failed creation again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Makes tenants on behalf of one instance.
#[derive(Debug)]
pub(crate) struct Provisioner {
    pub(crate) catalog: Catalog,
    pub(crate) clusters: Arc<ClusterDirectory>,
    pub(crate) migrations: TenantMigrations,
    pub(crate) worker: Worker,
    pub(crate) tasks: TaskGroup,
    /// Databases to keep in stock on each cluster.
    pub(crate) spares_wanted: u32,
    /// Callers of this instance who want the same tenant.
    pub(crate) callers: OneAtATime,
    /// Told when a spare was taken.
    pub(crate) stock_changed: Notify,
}

/// What a creation that was begun has come to.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It goes on in the background.
    Started(OperationId),
    /// The tenant exists; whether this call made it.
    Done(Box<Tenant>, bool),
}

impl Provisioner {
    pub(crate) fn worker(instance: InstanceId) -> Worker {
        Worker {
            instance,
            lease: LEASE,
        }
    }

    /// Creates a tenant, or finds that it has been created with the same request. Answers whether this call put it into
    /// service. Any number of callers may ask for the same at once: one does the work, the others wait for it.
    pub(crate) async fn create(
        self: &Arc<Self>,
        request: &CreateTenant,
        actor: &Actor,
    ) -> Result<(Tenant, bool), ControlError> {
        let _turn = self.callers.turn(&request.id).await;
        let deadline = Instant::now() + WAIT_FOR_OTHERS;
        let mut pause = LOOK_AGAIN;
        let mut newly = false;
        // Before the first look, so that a name that is free costs one transaction and no question.
        let mut perhaps_free = true;
        loop {
            if perhaps_free && let Some(lease) = self.bear(request, actor).await? {
                newly = self.finish(lease).await?;
            }
            let known = self.catalog.tenant(&request.id).await?;
            perhaps_free = known.is_none();
            let Some(known) = known else { continue };
            if known.request != canonical(request) {
                return Err(ControlError::OtherRequest);
            }
            if !matches!(known.tenant.state, TenantState::InProgress | TenantState::Failed) {
                return Ok((known.tenant, newly));
            }
            match self
                .catalog
                .claim_operation(Some(known.tenant.uuid), self.worker)
                .await?
            {
                Some(lease) => newly = self.finish(lease).await?,
                None if Instant::now() > deadline => {
                    return Err(self.still_at_work(known.tenant.uuid).await?);
                }
                None => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LOOK_AGAIN * 10);
                }
            }
        }
    }

    /// Like [`Self::create`], but what takes time goes on in the background.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        request: &CreateTenant,
        actor: &Actor,
    ) -> Result<Begun, ControlError> {
        if let Some(lease) = self.bear(request, actor).await? {
            let operation = lease.operation;
            let took_spare = lease.step != steps::Step::FIRST;
            self.spawn_work(lease);
            if !took_spare {
                return Ok(Begun::Started(operation));
            }
            let known = self
                .catalog
                .tenant(&request.id)
                .await?
                .ok_or(ControlError::UnknownTenant)?;
            return Ok(Begun::Done(Box::new(known.tenant), true));
        }
        let known = self
            .catalog
            .tenant(&request.id)
            .await?
            .ok_or(ControlError::UnknownTenant)?;
        if known.request != canonical(request) {
            return Err(ControlError::OtherRequest);
        }
        if !matches!(known.tenant.state, TenantState::InProgress | TenantState::Failed) {
            return Ok(Begun::Done(Box::new(known.tenant), false));
        }
        let claimed = self
            .catalog
            .claim_operation(Some(known.tenant.uuid), self.worker)
            .await?;
        let operation = match claimed {
            Some(lease) => {
                let operation = lease.operation;
                self.spawn_work(lease);
                Some(operation)
            }
            None => self.catalog.latest_operation(known.tenant.uuid).await?,
        };
        operation.map(Begun::Started).ok_or(ControlError::UnknownTenant)
    }

    /// Takes the name. `None`: somebody has it.
    async fn bear(
        &self,
        request: &CreateTenant,
        actor: &Actor,
    ) -> Result<Option<OperationLease>, ControlError> {
        let cluster = self.place(request).await?;
        let with_spare = if self.spares_wanted > 0 {
            let version = self.migrations.version();
            self.catalog
                .bear_with_spare(request, &cluster.record.name, version, self.worker, actor)
                .await?
        } else {
            Birth::NoSpare
        };
        let birth = match with_spare {
            Birth::NoSpare => {
                metrics::counter!("tenantry_provisioning_total", "path" => "on-the-spot").increment(1);
                self.catalog
                    .bear(request, &cluster.record.name, self.worker, actor)
                    .await?
            }
            birth => {
                metrics::counter!("tenantry_provisioning_total", "path" => "spare").increment(1);
                self.stock_changed.notify_one();
                birth
            }
        };
        match birth {
            Birth::Born(lease) => {
                steps::crash_point("create-tenant::after-birth");
                Ok(Some(lease))
            }
            Birth::NameTaken => Ok(None),
            Birth::DomainTaken(domain) => Err(ControlError::DomainTaken(domain)),
            Birth::NoSpare => unreachable!("a birth without a spare takes none"),
        }
    }

    /// Does the work of an operation to its end, in a task of its own: a caller who goes away does not leave it half done.
    /// What is only a label waits for nobody. Answers whether the tenant is in service through this.
    async fn finish(self: &Arc<Self>, lease: OperationLease) -> Result<bool, ControlError> {
        let only_label = lease.step == steps::Step::Label && lease.attempts == 1;
        let operation = lease.operation;
        let outcome = self.spawn_work(lease);
        if only_label {
            return Ok(true);
        }
        match outcome.await {
            Ok(work::Outcome::Done) => Ok(true),
            // Somebody has taken over; the caller looks what became of it.
            Ok(work::Outcome::TakenOver) => Ok(false),
            Ok(work::Outcome::Failed(detail)) => Err(ControlError::NotPossibleNow {
                operation: Some(operation),
                detail,
                retry_after: RETRY_AFTER,
            }),
            Err(_) => Err(ControlError::NotPossibleNow {
                operation: Some(operation),
                detail: "this instance is shutting down".to_owned(),
                retry_after: RETRY_AFTER,
            }),
        }
    }

    fn spawn_work(self: &Arc<Self>, lease: OperationLease) -> oneshot::Receiver<work::Outcome> {
        let (tell, outcome) = oneshot::channel();
        let provisioner = Arc::clone(self);
        self.tasks.spawn("create-tenant", async move {
            let outcome = provisioner.work(&lease).await;
            // Nobody may be listening any more.
            tell.send(outcome).ok();
        });
        outcome
    }

    async fn still_at_work(&self, tenant: TenantUuid) -> Result<ControlError, CatalogError> {
        Ok(ControlError::NotPossibleNow {
            operation: self.catalog.latest_operation(tenant).await?,
            detail: format!(
                "the tenant has been in the making for more than {} seconds",
                WAIT_FOR_OTHERS.as_secs()
            ),
            retry_after: RETRY_AFTER,
        })
    }

    fn cluster_of(&self, lease: &OperationLease) -> Option<Arc<Cluster>> {
        self.clusters.get(&lease.cluster)
    }
}
