//! What instances follow: rows by the revision that last changed them.

use sqlx::PgConnection;

use super::{
    Catalog, CatalogError,
    api_keys::ApiKeyRow,
    revision,
    tenants::{cluster_name, state, tenant_id},
};
use crate::{
    control::ApiKey,
    ids::{Generation, Revision, TenantUuid},
    route::Route,
    tenant_id::TenantId,
};

/// A tenant as the catalog has it, whether or not routing may know it.
#[derive(Clone, Debug)]
pub(crate) struct RouteChange {
    pub(crate) route: Route,
    pub(crate) domains: Vec<String>,
}

/// Everything that changed after a revision, up to and including another.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    /// The catalog's revision at the moment of reading. Nothing at or below it is missing.
    pub(crate) up_to: Revision,
    pub(crate) routes: Vec<RouteChange>,
    pub(crate) api_keys: Vec<ApiKey>,
    /// Whether any cluster or node changed.
    pub(crate) clusters: bool,
    /// The last change that ended or altered what may be believed about somebody.
    pub(crate) identity: Revision,
}

/// How a tenant is named in a look-up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RouteName {
    /// By its public name.
    Slug(TenantId),
    /// By its identity.
    Uuid(TenantUuid),
    /// By a host name registered for it.
    Domain(String),
}

struct RouteRow {
    slug: String,
    uuid: TenantUuid,
    state: String,
    cluster: String,
    generation: Generation,
    revision: Revision,
    password_sealed: Vec<u8>,
    domains: Vec<String>,
}

impl TryFrom<RouteRow> for RouteChange {
    type Error = CatalogError;

    fn try_from(row: RouteRow) -> Result<Self, Self::Error> {
        Ok(Self {
            route: Route {
                tenant: tenant_id(&row.slug)?,
                uuid: row.uuid,
                state: state(&row.state)?,
                cluster: cluster_name(&row.cluster)?,
                generation: row.generation,
                revision: row.revision,
                password: row.password_sealed.into(),
            },
            domains: row.domains,
        })
    }
}

impl Catalog {
    /// What changed after `after`; everything, when `after` is the beginning. One tiny query when nothing has.
    pub(crate) async fn changes_since(&self, after: Revision) -> Result<Option<Changes>, CatalogError> {
        let mut connection = self.connection().await?;
        if after > Revision::default() && revision::current(&mut connection).await? == after {
            return Ok(None);
        }
        drop(connection);
        let mut snapshot = self
            .pool
            .begin_with("begin isolation level repeatable read read only")
            .await?;
        let (up_to, identity) = revision::current_of_identity(&mut snapshot).await?;
        let changes = Changes {
            up_to,
            identity,
            routes: routes_between(&mut snapshot, after, up_to).await?,
            api_keys: api_keys_between(&mut snapshot, after, up_to).await?,
            clusters: sqlx::query_scalar!(
                r#"select exists (select from clusters where revision > $1) as "changed!""#,
                after.0
            )
            .fetch_one(&mut *snapshot)
            .await?,
        };
        snapshot.commit().await?;
        Ok(Some(changes))
    }

    /// One tenant, and the revision that the catalog had when it was read: an answer older than what an instance has
    /// applied must not be believed.
    pub(crate) async fn look_up_route(
        &self,
        name: &RouteName,
    ) -> Result<(Option<RouteChange>, Revision), CatalogError> {
        let (slug, uuid, domain) = match name {
            RouteName::Slug(slug) => (Some(slug.as_str()), None, None),
            RouteName::Uuid(uuid) => (None, Some(uuid.0), None),
            RouteName::Domain(domain) => (None, None, Some(domain.as_str())),
        };
        let mut connection = self.connection().await?;
        // The counter first: what is read afterwards is at least as new.
        let seen_at = revision::current(&mut connection).await?;
        let row = sqlx::query_as!(
            RouteRow,
            r#"
            select t.slug, t.uuid as "uuid: TenantUuid", t.state, t.cluster, t.generation as "generation: Generation",
                t.revision as "revision: Revision", t.password_sealed,
                array(select d.domain from tenant_domains d where d.tenant = t.uuid) as "domains!"
            from tenants t
            where t.state <> 'PURGED'
                and (t.slug = $1 or t.uuid = $2
                    or t.uuid = (select d.tenant from tenant_domains d where d.domain = $3))
            "#,
            slug,
            uuid,
            domain,
        )
        .fetch_optional(&mut *connection)
        .await?;
        Ok((row.map(TryInto::try_into).transpose()?, seen_at))
    }
}

// Both ends are stated although nothing is beyond the second: PostgreSQL takes a range of which it sees neither end for a small
// one, and goes by the index; of everything after a value that it does not see it expects a third of the table, and reads it all.
async fn routes_between(
    connection: &mut PgConnection,
    after: Revision,
    up_to: Revision,
) -> Result<Vec<RouteChange>, CatalogError> {
    let rows = sqlx::query_as!(
        RouteRow,
        r#"
        select t.slug, t.uuid as "uuid: TenantUuid", t.state, t.cluster, t.generation as "generation: Generation",
            t.revision as "revision: Revision", t.password_sealed,
            array(select d.domain from tenant_domains d where d.tenant = t.uuid) as "domains!"
        from tenants t
        where t.revision > $1 and t.revision <= $2
        order by t.revision
        "#,
        after.0,
        up_to.0,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

async fn api_keys_between(
    connection: &mut PgConnection,
    after: Revision,
    up_to: Revision,
) -> Result<Vec<ApiKey>, CatalogError> {
    let rows = sqlx::query_as!(
        ApiKeyRow,
        r#"
        select id, tenant as "tenant: TenantUuid", name, role, secret_sha256, created_at, expires_at, revoked_at,
            last_used_at, revision as "revision: Revision"
        from api_keys
        where revision > $1 and revision <= $2
        order by revision
        "#,
        after.0,
        up_to.0,
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}
