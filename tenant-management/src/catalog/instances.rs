//! Which instances live, and how far each has followed the catalog.

use std::time::Duration;

use sqlx::postgres::types::PgInterval;

use super::{Catalog, CatalogError};
use crate::ids::{InstanceId, Revision};

/// A live instance and the revision it has applied.
pub(crate) struct LiveInstance {
    pub(crate) id: InstanceId,
    pub(crate) applied_revision: Revision,
}

pub(super) fn interval(duration: Duration) -> PgInterval {
    PgInterval::try_from(duration).expect("leases are far shorter than PostgreSQL's longest interval")
}

impl Catalog {
    /// Registers this instance or renews its lease, and reports what it has applied.
    pub(crate) async fn renew_instance(
        &self,
        id: InstanceId,
        address: &str,
        applied: Revision,
        lease: Duration,
    ) -> Result<(), CatalogError> {
        let mut connection = self.connection().await?;
        sqlx::query!(
            r#"
            insert into instances (id, address, applied_revision, lease_until)
            values ($1, $2, $3, now() + $4::interval)
            on conflict (id) do update
            set applied_revision = greatest(instances.applied_revision, excluded.applied_revision),
                lease_until = excluded.lease_until
            "#,
            id.0,
            address,
            applied.0,
            interval(lease),
        )
        .execute(&mut *connection)
        .await?;
        Ok(())
    }

    /// Instances whose lease has not ended.
    pub(crate) async fn live_instances(&self) -> Result<Vec<LiveInstance>, CatalogError> {
        let mut connection = self.connection().await?;
        let instances = sqlx::query_as!(
            LiveInstance,
            r#"
            select id as "id: InstanceId", applied_revision as "applied_revision: Revision"
            from instances
            where lease_until > now()
            order by id
            "#
        )
        .fetch_all(&mut *connection)
        .await?;
        Ok(instances)
    }

    /// Removes this instance, and those whose lease ended a day ago.
    pub(crate) async fn remove_instance(&self, id: InstanceId) -> Result<(), CatalogError> {
        let mut connection = self.connection().await?;
        sqlx::query!(
            "delete from instances where id = $1 or lease_until < now() - interval '1 day'",
            id.0
        )
        .execute(&mut *connection)
        .await?;
        Ok(())
    }
}
