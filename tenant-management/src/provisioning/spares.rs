//! Keeps databases in stock for tenants to come: everything expensive about a tenant's birth is independent of its name.

use std::time::Duration;

use super::{
    LEASE, Provisioner,
    server::{Blueprint, ServerError},
    steps::{Step, crash_point},
};
use crate::{
    catalog::{CatalogError, spares::SpareInMaking},
    clusters::Cluster,
};

/// How long to leave a spare alone after its making failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How often to look at the stock when nobody says that it has changed.
const LOOK: Duration = Duration::from_secs(2);

/// Why a spare was not made.
#[derive(Debug, thiserror::Error)]
enum SpareError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl Provisioner {
    /// Fills the stock whenever something was taken from it, for as long as it runs.
    pub(crate) async fn keep_spares(&self) {
        loop {
            self.fill_stock().await;
            tokio::time::timeout(LOOK, self.stock_changed.notified())
                .await
                .ok();
        }
    }

    /// Makes what is missing on each cluster. Answers how many spares were made.
    pub(crate) async fn fill_stock(&self) -> u32 {
        let mut made = 0;
        for cluster in self
            .clusters
            .all()
            .into_iter()
            .filter(|cluster| cluster.record.accepts_tenants)
        {
            loop {
                match self.make_spare(&cluster).await {
                    Ok(true) => made += 1,
                    Ok(false) => break,
                    Err(error) => {
                        tracing::warn!(db.cluster = %cluster.record.name, %error, "A spare database could not be made.");
                        break;
                    }
                }
            }
        }
        made
    }

    async fn make_spare(&self, cluster: &Cluster) -> Result<bool, SpareError> {
        let name = &cluster.record.name;
        if self.spares_wanted == 0 {
            return Ok(false);
        }
        let template = cluster.template(&self.migrations).await?;
        let _turn = cluster.admin().turn().await?;
        let begun = self
            .catalog
            .begin_spare(name, self.spares_wanted, self.worker.instance, LEASE)
            .await?;
        let Some(spare) = begun else { return Ok(false) };
        let blueprint = Blueprint {
            uuid: spare.uuid,
            password: &spare.password,
            template: &template,
            tenant: None,
        };
        if let Err(error) = make(cluster, blueprint).await {
            self.release(&spare).await;
            return Err(error.into());
        }
        let in_stock = self
            .catalog
            .finish_spare(&spare, self.migrations.version())
            .await?;
        crash_point("make-spare::after-record");
        Ok(in_stock)
    }

    async fn release(&self, spare: &SpareInMaking) {
        if let Err(error) = self.catalog.release_spare(spare, PAUSE_AFTER_FAILURE).await {
            tracing::warn!(%error, "The making of a spare database could not be handed back; its lease will end.");
        }
    }
}

async fn make(cluster: &Cluster, blueprint: Blueprint<'_>) -> Result<(), ServerError> {
    for step in Step::ALL {
        crash_point(&format!("make-spare::before-{}", step.as_str()));
        cluster.admin().carry_out(step, blueprint).await?;
    }
    Ok(())
}
