//! Reports what belongs to nobody: databases and roles without a row, rows without a database. Never drops anything: what
//! looks like rubbish may be somebody's data after a mistake in the catalog.

use std::collections::HashSet;

use super::Provisioner;
use crate::{
    error::ControlError,
    ids::{ClusterName, TenantUuid},
};

/// What does not fit together on one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanReport {
    /// Databases in the form of a tenant's that the catalog does not know.
    pub databases: Vec<TenantUuid>,
    /// Roles in the form of a tenant's that the catalog does not know.
    pub roles: Vec<TenantUuid>,
    /// Tenants and spares that should have a database and have none.
    pub missing_databases: Vec<TenantUuid>,
}

impl OrphanReport {
    /// Whether everything fits.
    pub fn is_empty(&self) -> bool {
        self.databases.is_empty() && self.roles.is_empty() && self.missing_databases.is_empty()
    }
}

impl Provisioner {
    /// Compares one cluster with the catalog. What is being made at this moment is no orphan: a row exists before its
    /// database does, so the catalog is read before the cluster for what may be missing, and after it for what may be extra.
    pub(crate) async fn orphans(&self, cluster: &ClusterName) -> Result<Option<OrphanReport>, ControlError> {
        let Some(cluster) = self.clusters.get(cluster) else {
            return Ok(None);
        };
        let before = self.catalog.expected_databases(&cluster.record.name).await?;
        let inventory = cluster
            .admin()
            .inventory()
            .await
            .map_err(|error| ControlError::NotPossibleNow {
                operation: None,
                detail: error.to_string(),
                retry_after: super::RETRY_AFTER,
            })?;
        let after: HashSet<_> = self
            .catalog
            .expected_databases(&cluster.record.name)
            .await?
            .into_iter()
            .map(|row| row.uuid)
            .collect();
        let there: HashSet<_> = inventory.databases.iter().copied().collect();
        Ok(Some(OrphanReport {
            databases: inventory
                .databases
                .into_iter()
                .filter(|uuid| !after.contains(uuid))
                .collect(),
            roles: inventory
                .roles
                .into_iter()
                .filter(|uuid| !after.contains(uuid))
                .collect(),
            missing_databases: before
                .into_iter()
                .filter(|row| row.complete && after.contains(&row.uuid) && !there.contains(&row.uuid))
                .map(|row| row.uuid)
                .collect(),
        }))
    }

    /// The report for every cluster, for the log and the metrics.
    pub(crate) async fn report_orphans(&self) {
        for cluster in self.clusters.all() {
            let name = &cluster.record.name;
            match self.orphans(name).await {
                Ok(Some(report)) => {
                    #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
                    let count =
                        (report.databases.len() + report.roles.len() + report.missing_databases.len()) as f64;
                    metrics::gauge!("tenantry_orphans", "cluster" => name.to_string()).set(count);
                    if !report.is_empty() {
                        tracing::warn!(
                            db.cluster = %name, orphans.databases = ?report.databases, orphans.roles = ?report.roles,
                            orphans.missing = ?report.missing_databases,
                            "A cluster and the catalog do not fit together. Nothing was dropped; look at what is listed."
                        );
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(db.cluster = %name, %error, "A cluster could not be compared with the catalog.");
                }
            }
        }
    }
}
