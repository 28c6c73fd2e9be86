//! Which instances live, and how far each has followed the catalog.

use std::time::Duration;

use sqlx::postgres::types::PgInterval;

use super::{Catalog, CatalogError};
use crate::{
    control::{InstanceOverview, Page},
    ids::{InstanceId, Revision},
};

/// A live instance and the revision it has applied.
pub(crate) struct LiveInstance {
    pub(crate) id: InstanceId,
    pub(crate) applied_revision: Revision,
}

pub(super) fn interval(duration: Duration) -> PgInterval {
    PgInterval::try_from(duration).expect("leases are far shorter than PostgreSQL's longest interval")
}

/// What renewing a lease has told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    /// The revision of the catalog's last change.
    pub(crate) newest: Revision,
    /// Whether the lease had ended in the meantime, and nobody has waited for this instance since.
    pub(crate) had_ended: bool,
}

impl Catalog {
    /// Registers this instance or renews its lease, reports what it has applied, and says what there is to apply.
    pub(crate) async fn renew_instance(
        &self,
        id: InstanceId,
        address: &str,
        applied: Revision,
        lease: Duration,
    ) -> Result<Renewal, CatalogError> {
        let mut connection = self.connection().await?;
        let renewal = sqlx::query_as!(
            Renewal,
            r#"
            with before as (
                select lease_until < now() as had_ended
                from instances
                where id = $1
            )
            insert into instances (id, address, version, applied_revision, lease_until)
            values ($1, $2, $3, $4, now() + $5::interval)
            on conflict (id) do update
            set applied_revision = excluded.applied_revision, lease_until = excluded.lease_until
            returning (select revision from catalog_revision) as "newest!: Revision",
                coalesce((select had_ended from before), false) as "had_ended!"
            "#,
            id.0,
            address,
            env!("CARGO_PKG_VERSION"),
            applied.0,
            interval(lease),
        )
        .fetch_one(&mut *connection)
        .await?;
        Ok(renewal)
    }

    /// A page of instances in the order of their ids.
    pub(crate) async fn instances(
        &self,
        after: Option<InstanceId>,
        limit: u32,
    ) -> Result<Page<InstanceOverview>, CatalogError> {
        let mut connection = self.connection().await?;
        let rows = sqlx::query!(
            r#"
            select i.id as "id: InstanceId", i.address, i.version, i.applied_revision as "applied_revision: Revision",
                greatest(r.revision - i.applied_revision, 0) as "behind!", i.started_at, i.lease_until,
                i.lease_until > now() as "live!"
            from instances i
            cross join catalog_revision r
            where $1::uuid is null or i.id > $1
            order by i.id
            limit $2
            "#,
            after.map(|after| after.0),
            i64::from(limit) + 1,
        )
        .fetch_all(&mut *connection)
        .await?;
        let instances = rows
            .into_iter()
            .map(|row| InstanceOverview {
                id: row.id,
                address: row.address,
                version: row.version,
                applied_revision: row.applied_revision,
                behind: row.behind.unsigned_abs(),
                started_at: row.started_at,
                lease_until: row.lease_until,
                live: row.live,
            })
            .collect();
        Ok(Page::from_one_more(instances, limit))
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

    /// Removes an instance that stops.
    pub(crate) async fn remove_instance(&self, id: InstanceId) -> Result<(), CatalogError> {
        let mut connection = self.connection().await?;
        sqlx::query!("delete from instances where id = $1", id.0)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Removes instances whose lease ended an hour ago: until then an operator can see that they are missing.
    pub(crate) async fn remove_expired_instances(&self) -> Result<u64, CatalogError> {
        let mut connection = self.connection().await?;
        let removed = sqlx::query!("delete from instances where lease_until < now() - interval '1 hour'")
            .execute(&mut *connection)
            .await?;
        Ok(removed.rows_affected())
    }
}
