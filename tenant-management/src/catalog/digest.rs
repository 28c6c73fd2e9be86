//! A digest of what instances follow, for comparing a whole table with the catalog at the cost of one row.

use super::{Catalog, CatalogError, revision};
use crate::{
    ids::Revision,
    routing::digest::{Digest, Part},
};

impl Catalog {
    /// What a table should hold, and the revision at which it should. Rows are put into the same words by
    /// [`crate::routing::digest`].
    pub(crate) async fn digest(&self) -> Result<(Digest, Revision), CatalogError> {
        let mut snapshot = self
            .pool
            .begin_with("begin isolation level repeatable read read only")
            .await?;
        let at = revision::current(&mut snapshot).await?;
        let tenants = sqlx::query_as!(
            Part,
            r#"
            select count(*) as "rows!", coalesce(bit_xor(('x' || encode(substring(sha256(
                    convert_to(concat_ws('|', uuid, slug, state, cluster, generation, revision, ''), 'UTF8') || password_sealed
                ) for 8), 'hex'))::bit(64)::bigint), 0) as "hash!"
            from tenants
            where state in ('CREATED', 'SUSPENDED', 'MOVING', 'DELETED')
            "#
        )
        .fetch_one(&mut *snapshot)
        .await?;
        let domains = sqlx::query_as!(
            Part,
            r#"
            select count(*) as "rows!", coalesce(bit_xor(('x' || encode(substring(sha256(
                    convert_to(concat_ws('|', d.domain, d.tenant), 'UTF8')
                ) for 8), 'hex'))::bit(64)::bigint), 0) as "hash!"
            from tenant_domains d
            join tenants t on t.uuid = d.tenant
            where t.state in ('CREATED', 'SUSPENDED', 'MOVING', 'DELETED')
            "#
        )
        .fetch_one(&mut *snapshot)
        .await?;
        let api_keys = sqlx::query_as!(
            Part,
            r#"
            select count(*) as "rows!", coalesce(bit_xor(('x' || encode(substring(sha256(
                    convert_to(concat_ws('|', id, tenant, role, revoked_at is not null,
                        coalesce((extract(epoch from expires_at) * 1000000)::bigint, 0), revision, ''), 'UTF8') || secret_sha256
                ) for 8), 'hex'))::bit(64)::bigint), 0) as "hash!"
            from api_keys
            "#
        )
        .fetch_one(&mut *snapshot)
        .await?;
        snapshot.commit().await?;
        Ok((
            Digest {
                tenants,
                domains,
                api_keys,
            },
            at,
        ))
    }
}
