//! Tenants' API keys. Secrets never reach this place; only their hashes do.

use chrono::{DateTime, Utc};

use super::{Catalog, CatalogError, audit, revision};
use crate::{
    control::{Actor, ApiKey, Page, Role},
    ids::{Revision, TenantUuid},
};

/// A key that is to be registered.
#[derive(Clone, Debug)]
pub struct NewApiKey {
    /// Public part, unique.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// SHA-256 of the secret part.
    pub secret_sha256: [u8; 32],
    /// From then on it is refused.
    pub expires_at: Option<DateTime<Utc>>,
}

pub(super) struct ApiKeyRow {
    pub(super) id: String,
    pub(super) tenant: TenantUuid,
    pub(super) name: String,
    pub(super) role: String,
    pub(super) secret_sha256: Vec<u8>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) expires_at: Option<DateTime<Utc>>,
    pub(super) revoked_at: Option<DateTime<Utc>>,
    pub(super) last_used_at: Option<DateTime<Utc>>,
    pub(super) revision: Revision,
}

impl TryFrom<ApiKeyRow> for ApiKey {
    type Error = CatalogError;

    fn try_from(row: ApiKeyRow) -> Result<Self, Self::Error> {
        Ok(Self {
            id: row.id,
            tenant: row.tenant,
            name: row.name,
            role: role(&row.role)?,
            secret_sha256: row
                .secret_sha256
                .try_into()
                .map_err(|_| CatalogError::NotUnderstood("the hash of an API key"))?,
            created_at: row.created_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
            revision: row.revision,
        })
    }
}

pub(super) fn role(stored: &str) -> Result<Role, CatalogError> {
    [Role::Viewer, Role::Member, Role::Admin]
        .into_iter()
        .find(|role| role.as_str() == stored)
        .ok_or(CatalogError::NotUnderstood("a role"))
}

impl Catalog {
    /// Registers a key.
    pub(crate) async fn add_api_key(
        &self,
        tenant: TenantUuid,
        key: &NewApiKey,
        actor: &Actor,
    ) -> Result<ApiKey, CatalogError> {
        let mut transaction = self.begin().await?;
        audit::record(
            &mut transaction,
            actor,
            "api-key.create",
            Some(tenant),
            Some(&key.id),
        )
        .await?;
        let revision = revision::next(&mut transaction).await?;
        let row = sqlx::query_as!(
            ApiKeyRow,
            r#"
            insert into api_keys (id, tenant, name, role, secret_sha256, expires_at, revision)
            values ($1, $2, $3, $4, $5, $6, $7)
            returning id, tenant as "tenant: TenantUuid", name, role, secret_sha256, created_at, expires_at,
                revoked_at, last_used_at, revision as "revision: Revision"
            "#,
            key.id,
            tenant.0,
            key.name,
            key.role.as_str(),
            &key.secret_sha256,
            key.expires_at,
            revision.0,
        )
        .fetch_one(&mut *transaction)
        .await?;
        self.commit_change(transaction, revision).await?;
        row.try_into()
    }

    /// One key, with the revision that the catalog had when it was read.
    pub(crate) async fn api_key(&self, id: &str) -> Result<(Option<ApiKey>, Revision), CatalogError> {
        let mut connection = self.connection().await?;
        // The counter first: what is read afterwards is at least as new.
        let seen_at = revision::current(&mut connection).await?;
        let row = sqlx::query_as!(
            ApiKeyRow,
            r#"
            select id, tenant as "tenant: TenantUuid", name, role, secret_sha256, created_at, expires_at, revoked_at,
                last_used_at, revision as "revision: Revision"
            from api_keys
            where id = $1
            "#,
            id,
        )
        .fetch_optional(&mut *connection)
        .await?;
        Ok((row.map(TryInto::try_into).transpose()?, seen_at))
    }

    /// A page of a tenant's keys in the order of their ids, revoked ones included.
    pub(crate) async fn api_keys(
        &self,
        tenant: TenantUuid,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<ApiKey>, CatalogError> {
        let mut connection = self.connection().await?;
        let rows = sqlx::query_as!(
            ApiKeyRow,
            r#"
            select id, tenant as "tenant: TenantUuid", name, role, secret_sha256, created_at, expires_at, revoked_at,
                last_used_at, revision as "revision: Revision"
            from api_keys
            where tenant = $1 and id > coalesce($2, '')
            order by id
            limit $3
            "#,
            tenant.0,
            after,
            i64::from(limit) + 1,
        )
        .fetch_all(&mut *connection)
        .await?;
        let keys = rows
            .into_iter()
            .map(TryInto::try_into)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Page::from_one_more(keys, limit))
    }

    /// Revokes a key; again, it stays revoked as it was. Answers the key and whether this call revoked it.
    pub(crate) async fn revoke_api_key(
        &self,
        tenant: TenantUuid,
        id: &str,
        actor: &Actor,
    ) -> Result<Option<(ApiKey, bool)>, CatalogError> {
        let mut transaction = self.begin().await?;
        let revoked_before = sqlx::query_scalar!(
            r#"
            select revoked_at is not null as "revoked!"
            from api_keys
            where id = $1 and tenant = $2
            for update
            "#,
            id,
            tenant.0,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(revoked_before) = revoked_before else {
            return Ok(None);
        };
        let mut revision = Revision::default();
        if !revoked_before {
            audit::record(&mut transaction, actor, "api-key.revoke", Some(tenant), Some(id)).await?;
            revision = revision::next(&mut transaction).await?;
            sqlx::query!(
                "update api_keys set revoked_at = now(), revision = $2 where id = $1",
                id,
                revision.0
            )
            .execute(&mut *transaction)
            .await?;
        }
        let row = sqlx::query_as!(
            ApiKeyRow,
            r#"
            select id, tenant as "tenant: TenantUuid", name, role, secret_sha256, created_at, expires_at, revoked_at,
                last_used_at, revision as "revision: Revision"
            from api_keys
            where id = $1
            "#,
            id,
        )
        .fetch_one(&mut *transaction)
        .await?;
        self.commit_change(transaction, revision).await?;
        Ok(Some((row.try_into()?, !revoked_before)))
    }
}
