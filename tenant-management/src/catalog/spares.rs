//! Databases that are ready for tenants which have no name yet.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::PgConnection;

use super::{Catalog, CatalogError, instances::interval};
use crate::{
    ids::{ClusterName, Generation, InstanceId, TenantUuid},
    route::Route,
    secret::{Sealed, generate_password},
};

/// A spare that this instance is making.
#[derive(Debug)]
pub(crate) struct SpareInMaking {
    pub(crate) uuid: TenantUuid,
    pub(crate) password: SecretString,
    pub(crate) generation: Generation,
}

/// A spare that a tenant takes.
pub(super) struct TakenSpare {
    pub(super) uuid: TenantUuid,
    pub(super) password: Sealed,
    pub(super) schema_version: i32,
}

/// Takes the oldest ready spare out of the stock, in one statement, so that no two can take the same.
pub(super) async fn take(
    transaction: &mut PgConnection,
    cluster: &ClusterName,
    schema_version: i32,
) -> Result<Option<TakenSpare>, CatalogError> {
    let spare = sqlx::query!(
        r#"
        delete from spare_databases
        where uuid = (
            select uuid
            from spare_databases
            where cluster = $1 and state = 'READY' and schema_version >= $2
            order by created_at
            limit 1
            for update skip locked
        )
        returning uuid as "uuid: TenantUuid", password_sealed, schema_version
        "#,
        cluster.as_str(),
        schema_version,
    )
    .fetch_optional(transaction)
    .await?;
    Ok(spare.map(|row| TakenSpare {
        uuid: row.uuid,
        password: row.password_sealed.into(),
        schema_version: row.schema_version,
    }))
}

impl Catalog {
    /// Takes over the making of a spare whose maker's lease has ended, or begins a new one while fewer than `wanted` are
    /// ready or in the making. `None`: nothing to do, or another instance is deciding the same at this moment.
    pub(crate) async fn begin_spare(
        &self,
        cluster: &ClusterName,
        wanted: u32,
        owner: InstanceId,
        lease: Duration,
    ) -> Result<Option<SpareInMaking>, CatalogError> {
        let mut transaction = self.begin().await?;
        let alone = sqlx::query_scalar!(
            r#"select pg_try_advisory_xact_lock(hashtext('tenantry spares'), hashtext($1)) as "alone!""#,
            cluster.as_str(),
        )
        .fetch_one(&mut *transaction)
        .await?;
        if !alone {
            return Ok(None);
        }
        let abandoned = sqlx::query!(
            r#"
            update spare_databases
            set owner = $2, lease_until = now() + $3::interval, generation = generation + 1
            where uuid = (
                select uuid
                from spare_databases
                where cluster = $1 and state = 'MAKING' and lease_until < now()
                limit 1
            )
            returning uuid as "uuid: TenantUuid", password_sealed, generation as "generation: Generation"
            "#,
            cluster.as_str(),
            owner.0,
            interval(lease),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if let Some(row) = abandoned {
            transaction.commit().await?;
            let password = self
                .keys
                .open_text(&Route::secret_owner(row.uuid), &row.password_sealed.into())?;
            return Ok(Some(SpareInMaking {
                uuid: row.uuid,
                password,
                generation: row.generation,
            }));
        }
        let uuid = TenantUuid::generate();
        let password = generate_password();
        let sealed = self
            .keys
            .seal(&Route::secret_owner(uuid), password.expose_secret().as_bytes());
        let begun = sqlx::query_scalar!(
            r#"
            insert into spare_databases (uuid, cluster, state, password_sealed, owner, lease_until)
            select $1, $2, 'MAKING', $3, $4, now() + $5::interval
            where (select count(*) from spare_databases where cluster = $2) < $6
            returning generation as "generation: Generation"
            "#,
            uuid.0,
            cluster.as_str(),
            sealed.as_bytes(),
            owner.0,
            interval(lease),
            i64::from(wanted),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(begun.map(|generation| SpareInMaking {
            uuid,
            password,
            generation,
        }))
    }

    /// Puts a verified spare into the stock. `false`: another instance has taken over its making, and decides.
    pub(crate) async fn finish_spare(
        &self,
        spare: &SpareInMaking,
        schema_version: i32,
    ) -> Result<bool, CatalogError> {
        let mut connection = self.connection().await?;
        let done = sqlx::query!(
            r#"
            update spare_databases
            set state = 'READY', schema_version = $3, owner = null, lease_until = null
            where uuid = $1 and generation = $2 and state = 'MAKING'
            "#,
            spare.uuid.0,
            spare.generation.0,
            schema_version,
        )
        .execute(&mut *connection)
        .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Gives up the lease of a spare whose making failed, so that somebody can go on without waiting for its end.
    pub(crate) async fn release_spare(
        &self,
        spare: &SpareInMaking,
        pause: Duration,
    ) -> Result<(), CatalogError> {
        let mut connection = self.connection().await?;
        sqlx::query!(
            r#"
            update spare_databases
            set lease_until = now() + $3::interval
            where uuid = $1 and generation = $2 and state = 'MAKING'
            "#,
            spare.uuid.0,
            spare.generation.0,
            interval(pause),
        )
        .execute(&mut *connection)
        .await?;
        Ok(())
    }
}
