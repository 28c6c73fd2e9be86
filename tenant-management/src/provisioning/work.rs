//! Carries out an operation's steps under its lease.

use std::time::Duration;

use tokio::sync::watch;

use super::{
    LEASE, Provisioner,
    server::{Blueprint, ServerError},
    steps::{Step, crash_point},
};
use crate::catalog::{CatalogError, operations::LostLease, tenants::OperationLease};

/// How long a step has to last to be recorded: work that is done in less needs no progress, and each record is a wait for the
/// catalog's disk, which may be the one that the template is being copied on.
const UNTIL_NOTED: Duration = Duration::from_millis(100);
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
        let (step, steps) = watch::channel(lease.step);
        let mut worked = tokio::select! {
            worked = self.steps_on_server(lease, &step) => worked,
            lost = self.keep_lease(lease, steps) => Err(lost),
        };
        // Only now, when nobody renews the lease any more: to a renewal that came after the record, the lease would be lost.
        if worked.is_ok() {
            step.send_replace(Step::Record);
            worked = self.record(lease).await;
        }
        let error = match worked {
            Ok(()) => return Outcome::Done,
            Err(WorkError::Lost) => return Outcome::TakenOver,
            Err(error) => error,
        };
        let (at, detail) = (*step.borrow(), error.to_string());
        tracing::warn!(
            tenant.id = %lease.tenant, operation.id = %lease.operation, operation.attempts = lease.attempts, error = detail,
            "Creating a tenant failed and will be tried again."
        );
        metrics::counter!("tenantry_provisioning_failures_total").increment(1);
        match self
            .catalog
            .fail_creation(lease, at, &detail, pause_after(lease.attempts))
            .await
        {
            Ok(Ok(())) => Outcome::Failed(detail),
            Ok(Err(LostLease)) => Outcome::TakenOver,
            // The lease will end, and the resumer will find the operation.
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }

    async fn steps_on_server(
        &self,
        lease: &OperationLease,
        current: &watch::Sender<Step>,
    ) -> Result<(), WorkError> {
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
        let template = cluster.template(&self.migrations).await?;
        let blueprint = Blueprint {
            uuid: lease.uuid,
            password: &lease.password,
            template: &template,
            tenant: Some(&lease.tenant),
        };
        let admin = cluster.admin();
        let begin = |step: Step| {
            current.send_if_modified(|current| std::mem::replace(current, step) != step);
            crash_point(&format!("create-tenant::before-{}", step.as_str()));
        };
        let mut steps = Step::ON_SERVER.as_slice();
        if first == Step::FIRST {
            // Neither needs the other, and each waits for the disk.
            begin(Step::CreateRole);
            let role = admin.carry_out(Step::CreateRole, blueprint);
            let database = async {
                begin(Step::CreateDatabase);
                admin.carry_out(Step::CreateDatabase, blueprint).await
            };
            tokio::try_join!(role, database)?;
            steps = Step::AFTER_CREATION.as_slice();
        }
        for step in steps.iter().copied().filter(|step| *step >= first) {
            begin(step);
            // Whoever has a name from the start has it on the database since that is theirs.
            if step != Step::Label || first == Step::Label {
                admin.carry_out(step, blueprint).await?;
            }
        }
        Ok(())
    }

    async fn record(&self, lease: &OperationLease) -> Result<(), WorkError> {
        crash_point("create-tenant::before-record");
        self.catalog
            .complete_creation(lease, self.migrations.version())
            .await??;
        crash_point("create-tenant::after-record");
        Ok(())
    }

    /// Renews the lease until it is lost, and records each step that the work has come to. The work does not wait for that:
    /// whoever takes over needs to know nothing about progress.
    async fn keep_lease(&self, lease: &OperationLease, mut steps: watch::Receiver<Step>) -> WorkError {
        loop {
            tokio::time::timeout(LEASE / 3, steps.changed()).await.ok();
            tokio::time::sleep(UNTIL_NOTED).await;
            let step = *steps.borrow_and_update();
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

/// 2 s, 4 s, 8 s, … up to [`LONGEST_PAUSE`].
fn pause_after(attempts: i32) -> Duration {
    let doublings = u32::try_from(attempts).unwrap_or(1).min(16);
    Duration::from_secs(1_u64 << doublings).min(LONGEST_PAUSE)
}
