//! Carries out an operation's steps under its lease.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use super::{
    LEASE, Provisioner,
    server::{Blueprint, ServerError},
    steps::{Step, crash_point},
};
use crate::{
    catalog::{CatalogError, operations::LostLease, tenants::OperationLease},
    clusters::Cluster,
};

/// Longest pause before a failed creation is tried again by itself.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The tenant is in service.
    Done,
    /// Another worker owns the operation now.
    TakenOver,
    /// The attempt failed, and why; it will be tried again.
    Failed(String),
}

#[derive(Debug, thiserror::Error)]
enum WorkError {
    #[error("another worker owns the operation now")]
    Lost,
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("this instance does not know the tenant's cluster yet")]
    UnknownCluster,
}

impl From<LostLease> for WorkError {
    fn from(_: LostLease) -> Self {
        Self::Lost
    }
}

impl Provisioner {
    /// One attempt: the steps, then its end in the catalog.
    pub(super) async fn work(&self, lease: &OperationLease) -> Outcome {
        let current = AtomicUsize::new(0);
        let worked = tokio::select! {
            worked = self.steps(lease, &current) => worked,
            lost = self.keep_lease(lease, &current) => Err(lost),
        };
        let error = match worked {
            Ok(()) => return Outcome::Done,
            Err(WorkError::Lost) => return Outcome::TakenOver,
            Err(error) => error,
        };
        let detail = error.to_string();
        tracing::warn!(
            tenant.id = %lease.tenant, operation.id = %lease.operation, operation.attempts = lease.attempts, error = detail,
            "Creating a tenant failed and will be tried again."
        );
        metrics::counter!("tenantry_provisioning_failures_total").increment(1);
        match self
            .catalog
            .fail_creation(lease, &detail, pause_after(lease.attempts))
            .await
        {
            Ok(Ok(())) => Outcome::Failed(detail),
            Ok(Err(LostLease)) => Outcome::TakenOver,
            // The lease will end, and the resumer will find the operation.
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    async fn steps(&self, lease: &OperationLease, current: &AtomicUsize) -> Result<(), WorkError> {
        let cluster = self.cluster_of(lease).ok_or(WorkError::UnknownCluster)?;
        // Whoever takes over begins at the first step: what is there already is left as it is.
        let first = if lease.attempts == 1 {
            lease.step
        } else {
            Step::FIRST
        };
        let _turn = if first == Step::FIRST {
            Some(cluster.admin().turn().await?)
        } else {
            None
        };
        for step in Step::ALL.into_iter().skip_while(|step| *step < first) {
            current.store(step as usize, Ordering::Relaxed);
            if step != lease.step {
                self.catalog.progress(lease, step, LEASE).await??;
            }
            crash_point(&format!("create-tenant::before-{}", step.as_str()));
            match step {
                Step::Record => self.record(lease).await?,
                Step::Label => cluster.admin().label(lease.uuid, &lease.tenant).await?,
                // A spare was verified before it was put into the stock.
                Step::Verify if first > Step::FIRST => {}
                step => self.on_server(&cluster, lease, step).await?,
            }
        }
        crash_point("create-tenant::after-record");
        Ok(())
    }

    async fn on_server(
        &self,
        cluster: &Cluster,
        lease: &OperationLease,
        step: Step,
    ) -> Result<(), ServerError> {
        let template = cluster.template(&self.migrations).await?;
        let blueprint = Blueprint {
            uuid: lease.uuid,
            password: &lease.password,
            template: &template,
        };
        database_step(cluster, blueprint, step).await
    }

    async fn record(&self, lease: &OperationLease) -> Result<(), WorkError> {
        Ok(self
            .catalog
            .complete_creation(lease, self.migrations.version())
            .await??)
    }

    /// Renews the lease until it is lost.
    async fn keep_lease(&self, lease: &OperationLease, current: &AtomicUsize) -> WorkError {
        loop {
            tokio::time::sleep(LEASE / 3).await;
            let step = Step::ALL
                .get(current.load(Ordering::Relaxed))
                .copied()
                .unwrap_or(Step::FIRST);
            match self.catalog.progress(lease, step, LEASE).await {
                Ok(Ok(())) => {}
                Ok(Err(LostLease)) => return WorkError::Lost,
                Err(error) => {
                    tracing::warn!(%error, operation.id = %lease.operation, "A lease could not be renewed.");
                }
            }
        }
    }
}

/// Carries out a step that touches only the cluster. Tenants and spares go through the same.
pub(super) async fn database_step(
    cluster: &Cluster,
    blueprint: Blueprint<'_>,
    step: Step,
) -> Result<(), ServerError> {
    match step {
        Step::CreateRole => cluster.admin().create_role(blueprint).await,
        Step::CreateDatabase => cluster.admin().create_database(blueprint).await,
        Step::RestrictConnections => cluster.admin().restrict_connections(blueprint).await,
        Step::Mark => cluster.admin().mark(blueprint).await,
        Step::Verify => cluster.admin().verify(blueprint).await,
        Step::Label | Step::Record => Ok(()),
    }
}

/// 2 s, 4 s, 8 s, … up to [`LONGEST_PAUSE`].
fn pause_after(attempts: i32) -> Duration {
    let doublings = u32::try_from(attempts).unwrap_or(1).min(16);
    Duration::from_secs(1_u64 << doublings).min(LONGEST_PAUSE)
}
