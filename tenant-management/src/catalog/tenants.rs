//! Tenants: questions about them, and the birth of their rows.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{PgConnection, types::Json};

use super::{Catalog, CatalogError, audit, operations, revision, spares};
use crate::{
    control::{Actor, CreateTenant, Page, Tenant, TenantFilter},
    ids::{ClusterName, Generation, InstanceId, OperationId, Revision, TenantUuid},
    provisioning::steps::Step,
    route::Route,
    secret::generate_password,
    state::{IllegalTransition, TenantEvent, TenantState},
    tenant_id::TenantId,
};

/// A tenant with the request that created it.
#[derive(Debug)]
pub(crate) struct KnownTenant {
    pub(crate) tenant: Tenant,
    pub(crate) request: serde_json::Value,
}

/// What became of the wish to take a name.
#[derive(Debug)]
pub(crate) enum Birth {
    /// The row exists now, and the caller owns the operation that finishes it.
    Born(OperationLease),
    /// Somebody has the name already.
    NameTaken,
    /// Another tenant has this domain.
    DomainTaken(String),
    /// No spare database is ready on the cluster.
    NoSpare,
}

/// The right to work on a tenant's creation until another owner has taken over (its generation has grown).
#[derive(Clone, Debug)]
pub(crate) struct OperationLease {
    pub(crate) operation: OperationId,
    pub(crate) generation: Generation,
    pub(crate) attempts: i32,
    pub(crate) step: Step,
    pub(crate) tenant: TenantId,
    pub(crate) uuid: TenantUuid,
    pub(crate) cluster: ClusterName,
    pub(crate) password: SecretString,
}

/// Who works, and for how long nobody else may.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worker {
    pub(crate) instance: InstanceId,
    pub(crate) lease: Duration,
}

/// The request in a form that is equal exactly when the requests are.
pub(crate) fn canonical(request: &CreateTenant) -> serde_json::Value {
    let mut domains = request.domains.clone();
    domains.sort_unstable();
    serde_json::json!({
        "display_name": request.display_name,
        "region": request.region,
        "cluster": request.cluster,
        "domains": domains,
        "labels": request.labels,
    })
}

struct TenantRow {
    uuid: TenantUuid,
    slug: String,
    display_name: String,
    state: String,
    cluster: String,
    region: String,
    labels: Json<BTreeMap<String, String>>,
    domains: Vec<String>,
    schema_version: i32,
    revision: Revision,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl TryFrom<TenantRow> for Tenant {
    type Error = CatalogError;

    fn try_from(row: TenantRow) -> Result<Self, Self::Error> {
        Ok(Self {
            id: tenant_id(&row.slug)?,
            uuid: row.uuid,
            display_name: row.display_name,
            state: state(&row.state)?,
            cluster: cluster_name(&row.cluster)?,
            region: row.region,
            domains: row.domains,
            labels: row.labels.0,
            schema_version: row.schema_version,
            revision: row.revision,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

pub(super) fn tenant_id(stored: &str) -> Result<TenantId, CatalogError> {
    TenantId::parse_new(stored).map_err(|_| CatalogError::NotUnderstood("a tenant's name"))
}

pub(super) fn state(stored: &str) -> Result<TenantState, CatalogError> {
    stored
        .parse()
        .map_err(|_| CatalogError::NotUnderstood("a tenant's state"))
}

pub(super) fn cluster_name(stored: &str) -> Result<ClusterName, CatalogError> {
    ClusterName::parse(stored).map_err(|_| CatalogError::NotUnderstood("a cluster's name"))
}

impl Catalog {
    /// The tenant that has this name, in any state but purged.
    pub(crate) async fn tenant(&self, id: &TenantId) -> Result<Option<KnownTenant>, CatalogError> {
        let mut connection = self.connection().await?;
        let row = sqlx::query!(
            r#"
            select t.uuid as "uuid: TenantUuid", t.slug, t.display_name, t.state, t.cluster, c.region,
                t.labels as "labels: Json<BTreeMap<String, String>>",
                array(select d.domain from tenant_domains d where d.tenant = t.uuid order by d.domain) as "domains!",
                t.schema_version, t.revision as "revision: Revision", t.created_at, t.updated_at, t.request
            from tenants t
            join clusters c on c.name = t.cluster
            where t.slug = $1 and t.state <> 'PURGED'
            "#,
            id.as_str(),
        )
        .fetch_optional(&mut *connection)
        .await?;
        row.map(|row| {
            let tenant = TenantRow {
                uuid: row.uuid,
                slug: row.slug,
                display_name: row.display_name,
                state: row.state,
                cluster: row.cluster,
                region: row.region,
                labels: row.labels,
                domains: row.domains,
                schema_version: row.schema_version,
                revision: row.revision,
                created_at: row.created_at,
                updated_at: row.updated_at,
            };
            Ok(KnownTenant {
                tenant: tenant.try_into()?,
                request: row.request,
            })
        })
        .transpose()
    }

    /// A page of tenants in the order of their names, beginning after `after`.
    pub(crate) async fn tenants(
        &self,
        filter: &TenantFilter,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<Tenant>, CatalogError> {
        let (label, label_value) = match &filter.label {
            Some((label, value)) => (Some(label.as_str()), value.as_deref()),
            None => (None, None),
        };
        let mut connection = self.connection().await?;
        let rows = sqlx::query_as!(
            TenantRow,
            r#"
            select t.uuid as "uuid: TenantUuid", t.slug, t.display_name, t.state, t.cluster, c.region,
                t.labels as "labels: Json<BTreeMap<String, String>>",
                array(select d.domain from tenant_domains d where d.tenant = t.uuid order by d.domain) as "domains!",
                t.schema_version, t.revision as "revision: Revision", t.created_at, t.updated_at
            from tenants t
            join clusters c on c.name = t.cluster
            where t.state <> 'PURGED'
                and t.slug > coalesce($1, '')
                and ($2::text is null or t.state = $2)
                and ($3::text is null or t.cluster = $3)
                and ($4::text is null or t.labels ? $4)
                and ($5::text is null or t.labels ->> $4 = $5)
            order by t.slug
            limit $6
            "#,
            after,
            filter.state.map(TenantState::as_str),
            filter.cluster.as_ref().map(ClusterName::as_str),
            label,
            label_value,
            i64::from(limit) + 1,
        )
        .fetch_all(&mut *connection)
        .await?;
        let tenants = rows
            .into_iter()
            .map(TryInto::try_into)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Page::from_one_more(tenants, limit))
    }

    /// Lets `event` happen to a tenant. Answers the tenant afterwards and whether this call changed it; `None` without such a
    /// tenant.
    pub(crate) async fn change_state(
        &self,
        id: &TenantId,
        event: TenantEvent,
        action: &str,
        actor: &Actor,
    ) -> Result<Option<Result<(Tenant, bool), IllegalTransition>>, CatalogError> {
        let mut transaction = self.begin().await?;
        let row = sqlx::query!(
            r#"
            select uuid as "uuid: TenantUuid", state
            from tenants
            where slug = $1 and state <> 'PURGED'
            for update
            "#,
            id.as_str(),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let before = state(&row.state)?;
        let after = match before.after(event) {
            Ok(after) => after,
            Err(illegal) => return Ok(Some(Err(illegal))),
        };
        let mut revision = Revision::default();
        if after != before {
            audit::record(&mut transaction, actor, action, Some(row.uuid), Some(id.as_str())).await?;
            revision = operations::set_state(&mut transaction, row.uuid, before, after).await?;
        }
        self.commit_change(transaction, revision).await?;
        let known = self.tenant(id).await?;
        Ok(known.map(|known| Ok((known.tenant, after != before))))
    }

    /// Takes a name together with a ready database: afterwards the tenant is in service, and only the database's comment
    /// is left to do.
    pub(crate) async fn bear_with_spare(
        &self,
        request: &CreateTenant,
        cluster: &ClusterName,
        schema_version: i32,
        worker: Worker,
        actor: &Actor,
    ) -> Result<Birth, CatalogError> {
        let mut transaction = self.begin().await?;
        let Some(spare) = spares::take(&mut transaction, cluster, schema_version).await? else {
            return Ok(Birth::NoSpare);
        };
        let password = self
            .keys
            .open_text(&Route::secret_owner(spare.uuid), &spare.password)?;
        let newborn = Newborn {
            uuid: spare.uuid,
            state: TenantState::Created,
            schema_version: spare.schema_version,
            sealed_password: spare.password.as_bytes(),
            password,
            step: Step::Label,
        };
        match bear(&mut transaction, request, cluster, newborn, worker, actor).await? {
            Ok((lease, revision)) => {
                self.commit_change(transaction, revision).await?;
                Ok(Birth::Born(lease))
            }
            Err(refused) => Ok(refused),
        }
    }

    /// Takes a name for a tenant whose database has yet to be made.
    pub(crate) async fn bear(
        &self,
        request: &CreateTenant,
        cluster: &ClusterName,
        worker: Worker,
        actor: &Actor,
    ) -> Result<Birth, CatalogError> {
        let uuid = TenantUuid::generate();
        let password = generate_password();
        let sealed = self
            .keys
            .seal(&Route::secret_owner(uuid), password.expose_secret().as_bytes());
        let mut transaction = self.begin().await?;
        let newborn = Newborn {
            uuid,
            state: TenantState::InProgress,
            schema_version: 0,
            sealed_password: sealed.as_bytes(),
            password,
            step: Step::FIRST,
        };
        match bear(&mut transaction, request, cluster, newborn, worker, actor).await? {
            Ok((lease, revision)) => {
                self.commit_change(transaction, revision).await?;
                Ok(Birth::Born(lease))
            }
            Err(refused) => Ok(refused),
        }
    }
}

struct Newborn<'s> {
    uuid: TenantUuid,
    state: TenantState,
    schema_version: i32,
    sealed_password: &'s [u8],
    password: SecretString,
    step: Step,
}

async fn bear(
    transaction: &mut PgConnection,
    request: &CreateTenant,
    cluster: &ClusterName,
    newborn: Newborn<'_>,
    worker: Worker,
    actor: &Actor,
) -> Result<Result<(OperationLease, Revision), Birth>, CatalogError> {
    // The revision is set last, with the counter's row locked only until the commit; zero is below every cursor.
    let inserted = sqlx::query!(
        r#"
        insert into tenants (
            uuid, slug, display_name, state, cluster, labels, schema_version, password_sealed, request, revision
        )
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)
        on conflict (slug) where state <> 'PURGED' do nothing
        "#,
        newborn.uuid.0,
        request.id.as_str(),
        request.display_name.as_deref().unwrap_or(request.id.as_str()),
        newborn.state.as_str(),
        cluster.as_str(),
        Json(&request.labels) as _,
        newborn.schema_version,
        newborn.sealed_password,
        canonical(request),
    )
    .execute(&mut *transaction)
    .await?;
    if inserted.rows_affected() == 0 {
        return Ok(Err(Birth::NameTaken));
    }
    if let Some(taken) = add_domains(transaction, newborn.uuid, &request.domains).await? {
        return Ok(Err(Birth::DomainTaken(taken)));
    }
    let operation =
        operations::start(transaction, "create-tenant", newborn.uuid, newborn.step, worker).await?;
    audit::record(
        transaction,
        actor,
        "tenant.create",
        Some(newborn.uuid),
        Some(request.id.as_str()),
    )
    .await?;
    let revision = revision::next(transaction).await?;
    sqlx::query!(
        "update tenants set revision = $2 where uuid = $1",
        newborn.uuid.0,
        revision.0
    )
    .execute(transaction)
    .await?;
    let lease = OperationLease {
        operation,
        generation: Generation(1),
        attempts: 1,
        step: newborn.step,
        tenant: request.id,
        uuid: newborn.uuid,
        cluster: cluster.clone(),
        password: newborn.password,
    };
    Ok(Ok((lease, revision)))
}

/// Registers the domains; answers the first that another tenant has.
async fn add_domains(
    transaction: &mut PgConnection,
    tenant: TenantUuid,
    domains: &[String],
) -> Result<Option<String>, CatalogError> {
    if domains.is_empty() {
        return Ok(None);
    }
    // In one order for everybody, so that two requests with the same domains wait for each other instead of deadlocking.
    let mut domains = domains.to_vec();
    domains.sort_unstable();
    domains.dedup();
    let added = sqlx::query_scalar!(
        r#"
        insert into tenant_domains (domain, tenant)
        select domain, $2
        from unnest($1::text[]) as new (domain)
        on conflict (domain) do nothing
        returning domain
        "#,
        &domains,
        tenant.0,
    )
    .fetch_all(transaction)
    .await?;
    Ok(domains.into_iter().find(|domain| !added.contains(domain)))
}
