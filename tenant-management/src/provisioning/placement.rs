//! Which cluster a new tenant goes to: the emptiest of those that satisfy its wishes and take tenants.

use std::sync::Arc;

use super::Provisioner;
use crate::{clusters::Cluster, control::CreateTenant, error::ControlError};

impl Provisioner {
    pub(super) async fn place(&self, request: &CreateTenant) -> Result<Arc<Cluster>, ControlError> {
        let mut suitable = self.clusters.all();
        if let Some(name) = &request.cluster {
            suitable.retain(|cluster| cluster.record.name == *name);
            if suitable.is_empty() {
                return Err(ControlError::NoRoom(format!("there is no cluster {name}")));
            }
        }
        if let Some(region) = &request.region {
            suitable.retain(|cluster| cluster.record.region == *region);
            if suitable.is_empty() {
                return Err(ControlError::NoRoom(format!(
                    "there is no such cluster in region {region:?}"
                )));
            }
        }
        suitable.retain(|cluster| cluster.record.accepts_tenants);
        if suitable.len() < 2 {
            return suitable
                .pop()
                .ok_or_else(|| ControlError::NoRoom("no suitable cluster takes new tenants".to_owned()));
        }
        let mut emptiest = None;
        for cluster in suitable {
            let tenants = self.catalog.occupancy(&cluster.record.name).await?.tenants;
            if emptiest.as_ref().is_none_or(|(fewest, _)| tenants < *fewest) {
                emptiest = Some((tenants, cluster));
            }
        }
        emptiest
            .map(|(_, cluster)| cluster)
            .ok_or_else(|| ControlError::NoRoom("no suitable cluster takes new tenants".to_owned()))
    }
}
