//! Pieces of work that survive their worker: leases, fencing, outcomes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{
    Catalog, CatalogError,
    instances::interval,
    revision,
    tenants::{OperationLease, Worker, cluster_name, tenant_id},
};
use crate::{
    control::{Operation, OperationState},
    ids::{Generation, OperationId, Revision, TenantUuid},
    provisioning::steps::Step,
    route::Route,
    state::TenantState,
};

/// The worker's lease has ended and another has taken over; what this one knows must not be recorded.
#[derive(Debug)]
pub(crate) struct LostLease;

/// Begins an operation that `worker` owns.
pub(super) async fn start(
    transaction: &mut PgConnection,
    kind: &str,
    tenant: TenantUuid,
    step: Step,
    worker: Worker,
) -> Result<OperationId, CatalogError> {
    let id = OperationId::generate();
    sqlx::query!(
        r#"
        insert into operations (id, kind, tenant, state, step, steps_done, owner, lease_until)
        values ($1, $2, $3, 'RUNNING', $4, $5, $6, now() + $7::interval)
        "#,
        id.0,
        kind,
        tenant.0,
        step.as_str(),
        step.number(),
        worker.instance.0,
        interval(worker.lease),
    )
    .execute(transaction)
    .await?;
    Ok(id)
}

impl Catalog {
    /// One operation.
    pub(crate) async fn operation(&self, id: OperationId) -> Result<Option<Operation>, CatalogError> {
        let mut connection = self.connection().await?;
        let row = sqlx::query!(
            r#"
            select o.id as "id: OperationId", o.kind, t.slug, o.state, o.step, o.steps_done, o.error,
                o.started_at, o.finished_at
            from operations o
            join tenants t on t.uuid = o.tenant
            where o.id = $1
            "#,
            id.0,
        )
        .fetch_optional(&mut *connection)
        .await?;
        row.map(|row| {
            Ok(Operation {
                id: row.id,
                kind: row.kind,
                tenant: tenant_id(&row.slug)?,
                state: operation_state(&row.state)?,
                step: row.step,
                steps: (row.steps_done.unsigned_abs(), Step::COUNT),
                error: row.error,
                started_at: row.started_at,
                finished_at: row.finished_at,
            })
        })
        .transpose()
    }

    /// The operation that was begun last for a tenant.
    pub(crate) async fn latest_operation(
        &self,
        tenant: TenantUuid,
    ) -> Result<Option<OperationId>, CatalogError> {
        let mut connection = self.connection().await?;
        let operation = sqlx::query_scalar!(
            r#"
            select id as "id: OperationId"
            from operations
            where tenant = $1
            order by started_at desc
            limit 1
            "#,
            tenant.0,
        )
        .fetch_optional(&mut *connection)
        .await?;
        Ok(operation)
    }

    /// Renews the lease and records the step that the work is at.
    pub(crate) async fn progress(
        &self,
        lease: &OperationLease,
        step: Step,
        duration: Duration,
    ) -> Result<Result<(), LostLease>, CatalogError> {
        let mut connection = self.connection().await?;
        let updated = sqlx::query!(
            r#"
            update operations
            set step = $3, steps_done = $4, lease_until = now() + $5::interval
            where id = $1 and generation = $2 and state = 'RUNNING'
            "#,
            lease.operation.0,
            lease.generation.0,
            step.as_str(),
            step.number(),
            interval(duration),
        )
        .execute(&mut *connection)
        .await?;
        Ok(if updated.rows_affected() == 1 {
            Ok(())
        } else {
            Err(LostLease)
        })
    }

    /// Takes over an operation whose owner's lease has ended, or one that has failed. `tenant` names one; without it the
    /// one that has been due for longest is taken, and failed ones only when their time to be tried again has come.
    pub(crate) async fn claim_operation(
        &self,
        tenant: Option<TenantUuid>,
        worker: Worker,
    ) -> Result<Option<OperationLease>, CatalogError> {
        let mut transaction = self.begin().await?;
        let row = sqlx::query!(
            r#"
            with due as (
                select id
                from operations
                where state <> 'SUCCEEDED' and case when $1::uuid is null
                    then (state = 'RUNNING' and lease_until < now())
                        or (state = 'FAILED' and next_attempt_at < now())
                    else tenant = $1 and (state = 'FAILED' or (state = 'RUNNING' and lease_until < now()))
                end
                order by coalesce(next_attempt_at, lease_until)
                limit 1
                for update skip locked
            )
            update operations o
            set state = 'RUNNING', owner = $2, lease_until = now() + $3::interval, generation = o.generation + 1,
                attempts = o.attempts + 1, next_attempt_at = null, finished_at = null, error = null
            from due, tenants t
            where o.id = due.id and t.uuid = o.tenant
            returning o.id as "id: OperationId", o.generation as "generation: Generation", o.attempts, o.step,
                t.slug, t.uuid as "uuid: TenantUuid", t.cluster, t.password_sealed, t.state
            "#,
            tenant.map(|tenant| tenant.0),
            worker.instance.0,
            interval(worker.lease),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let mut revision = Revision::default();
        if row.state == TenantState::Failed.as_str() {
            let (from, to) = (TenantState::Failed, TenantState::InProgress);
            revision = set_state(&mut transaction, row.uuid, from, to).await?;
        }
        self.commit_change(transaction, revision).await?;
        let password = self
            .keys
            .open_text(&Route::secret_owner(row.uuid), &row.password_sealed.into())?;
        Ok(Some(OperationLease {
            operation: row.id,
            generation: row.generation,
            attempts: row.attempts,
            // Another version of the service may have other steps; whoever takes over begins at the first in any case.
            step: row.step.parse().unwrap_or(Step::FIRST),
            tenant: tenant_id(&row.slug)?,
            uuid: row.uuid,
            cluster: cluster_name(&row.cluster)?,
            password,
        }))
    }

    /// Puts the tenant into service: its database is verified. One transaction with the operation's success.
    pub(crate) async fn complete_creation(
        &self,
        lease: &OperationLease,
        schema_version: i32,
    ) -> Result<Result<(), LostLease>, CatalogError> {
        let mut transaction = self.begin().await?;
        if !end(&mut transaction, lease, Step::Record, None).await? {
            return Ok(Err(LostLease));
        }
        // A tenant that took a spare has been in service since it has its name.
        let waiting = sqlx::query_scalar!(
            r#"select state = 'IN_PROGRESS' as "waiting!" from tenants where uuid = $1 for update"#,
            lease.uuid.0,
        )
        .fetch_one(&mut *transaction)
        .await?;
        let mut revision = Revision::default();
        if waiting {
            revision = revision::next(&mut transaction).await?;
            sqlx::query!(
                r#"
                update tenants
                set state = 'CREATED', schema_version = $2, revision = $3, updated_at = now()
                where uuid = $1
                "#,
                lease.uuid.0,
                schema_version,
                revision.0,
            )
            .execute(&mut *transaction)
            .await?;
        }
        self.commit_change(transaction, revision).await?;
        Ok(Ok(()))
    }

    /// Records at which step an attempt failed, why, and when the next one is due. The name stays taken.
    pub(crate) async fn fail_creation(
        &self,
        lease: &OperationLease,
        step: Step,
        error: &str,
        next_attempt: Duration,
    ) -> Result<Result<(), LostLease>, CatalogError> {
        let mut transaction = self.begin().await?;
        let retry_at = Utc::now() + next_attempt;
        if !end(&mut transaction, lease, step, Some((error, retry_at))).await? {
            return Ok(Err(LostLease));
        }
        let (from, to) = (TenantState::InProgress, TenantState::Failed);
        let revision = set_state(&mut transaction, lease.uuid, from, to).await?;
        self.commit_change(transaction, revision).await?;
        Ok(Ok(()))
    }
}

/// Records an end, if the lease is still the current one: success, or why not and when to try again.
async fn end(
    transaction: &mut PgConnection,
    lease: &OperationLease,
    step: Step,
    failure: Option<(&str, DateTime<Utc>)>,
) -> Result<bool, CatalogError> {
    let (state, steps_done) = match failure {
        None => ("SUCCEEDED", step.number() + 1),
        Some(_) => ("FAILED", step.number()),
    };
    let ended = sqlx::query!(
        r#"
        update operations
        set state = $3, step = $4, steps_done = $5, error = $6, next_attempt_at = $7, finished_at = now(), owner = null,
            lease_until = null
        where id = $1 and generation = $2 and state = 'RUNNING'
        "#,
        lease.operation.0,
        lease.generation.0,
        state,
        step.as_str(),
        steps_done,
        failure.map(|(error, _)| error),
        failure.map(|(_, retry_at)| retry_at),
    )
    .execute(transaction)
    .await?;
    Ok(ended.rows_affected() == 1)
}

/// A compare-and-set of a tenant's state. A tenant that is in another state by now stays there.
pub(super) async fn set_state(
    transaction: &mut PgConnection,
    tenant: TenantUuid,
    from: TenantState,
    to: TenantState,
) -> Result<Revision, CatalogError> {
    let revision = revision::next(transaction).await?;
    sqlx::query!(
        r#"
        update tenants
        set state = $3, revision = $4, updated_at = now()
        where uuid = $1 and state = $2
        "#,
        tenant.0,
        from.as_str(),
        to.as_str(),
        revision.0,
    )
    .execute(transaction)
    .await?;
    Ok(revision)
}

fn operation_state(stored: &str) -> Result<OperationState, CatalogError> {
    match stored {
        "RUNNING" => Ok(OperationState::Running),
        "SUCCEEDED" => Ok(OperationState::Succeeded),
        "FAILED" => Ok(OperationState::Failed),
        _ => Err(CatalogError::NotUnderstood("an operation's state")),
    }
}
