//! Sessions of people who have logged in. Ids never reach this place; only their hashes do.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Catalog, CatalogError, api_keys::role, audit, instances::interval, revision};
use crate::{
    control::{Actor, Role},
    email::EmailAddress,
    ids::{Revision, TenantUuid, UserId},
    people::{NewSession, PersonSession},
};

/// How much of its idle time a session has to have used before it is written that it is in use.
const NOTED_AFTER: Duration = Duration::from_secs(60);

impl Catalog {
    /// Begins a session. `false`: there is one with this id already.
    pub(crate) async fn begin_session(
        &self,
        id_sha256: &[u8; 32],
        session: &NewSession,
    ) -> Result<bool, CatalogError> {
        let mut connection = self.connection().await?;
        let begun = sqlx::query!(
            r#"
            insert into sessions (id_sha256, user_id, tenant, idle_until, ends_at)
            values ($1, $2, $3, least(now() + $4::interval, $5), $5)
            on conflict (id_sha256) do nothing
            "#,
            id_sha256,
            session.user.0,
            session.tenant.map(|tenant| tenant.0),
            interval(session.idle_timeout),
            session.ends_at,
        )
        .execute(&mut *connection)
        .await?;
        Ok(begun.rows_affected() == 1)
    }

    /// A session that has not ended, with what its person may do, and the revision that the catalog had when it was read. Being
    /// looked up keeps it from becoming idle.
    pub(crate) async fn session(
        &self,
        id_sha256: &[u8; 32],
        idle_timeout: Duration,
    ) -> Result<(Option<PersonSession>, Revision), CatalogError> {
        let mut connection = self.connection().await?;
        // The counter first: what is read afterwards is at least as new.
        let seen_at = revision::current(&mut connection).await?;
        let row = sqlx::query!(
            r#"
            select s.user_id as "user: UserId", u.email as "email: EmailAddress", s.tenant as "tenant: TenantUuid",
                s.created_at, s.idle_until, s.ends_at,
                s.idle_until < least(now() + $2::interval - $3::interval, s.ends_at) as "to_be_noted!",
                array(select m.tenant from memberships m where m.user_id = s.user_id order by m.tenant)
                    as "tenants!: Vec<TenantUuid>",
                array(select m.role from memberships m where m.user_id = s.user_id order by m.tenant) as "roles!"
            from sessions s
            join users u on u.id = s.user_id
            where s.id_sha256 = $1 and s.idle_until > now() and s.ends_at > now()
            "#,
            id_sha256,
            interval(idle_timeout),
            interval(NOTED_AFTER.min(idle_timeout / 4)),
        )
        .fetch_optional(&mut *connection)
        .await?;
        let Some(row) = row else {
            return Ok((None, seen_at));
        };
        let mut idle_until = row.idle_until;
        if row.to_be_noted {
            let noted = sqlx::query_scalar!(
                r#"
                update sessions
                set idle_until = least(now() + $2::interval, ends_at)
                where id_sha256 = $1
                returning idle_until
                "#,
                id_sha256,
                interval(idle_timeout),
            )
            .fetch_optional(&mut *connection)
            .await?;
            let Some(noted) = noted else {
                return Ok((None, seen_at));
            };
            idle_until = noted;
        }
        let memberships = row
            .tenants
            .into_iter()
            .zip(&row.roles)
            .map(|(tenant, stored)| Ok((tenant, role(stored)?)))
            .collect::<Result<Vec<(TenantUuid, Role)>, CatalogError>>()?;
        let session = PersonSession {
            user: row.user,
            email: row.email,
            tenant: row.tenant,
            memberships,
            created_at: row.created_at,
            idle_until,
            ends_at: row.ends_at,
        };
        Ok((Some(session), seen_at))
    }

    /// Ends a session. Answers the change's revision, which is zero when there was none.
    pub(crate) async fn end_session(&self, id_sha256: &[u8; 32]) -> Result<Revision, CatalogError> {
        let mut transaction = self.begin().await?;
        let ended = sqlx::query!("delete from sessions where id_sha256 = $1", id_sha256)
            .execute(&mut *transaction)
            .await?;
        if ended.rows_affected() == 0 {
            return Ok(Revision::default());
        }
        let revision = revision::next_of_identity(&mut transaction).await?;
        self.commit_change(transaction, revision).await?;
        Ok(revision)
    }

    /// Ends all sessions of a person. Answers how many there were.
    pub(crate) async fn end_sessions(
        &self,
        user: UserId,
        actor: &Actor,
    ) -> Result<(u64, Revision), CatalogError> {
        let mut transaction = self.begin().await?;
        let ended = sqlx::query!("delete from sessions where user_id = $1", user.0)
            .execute(&mut *transaction)
            .await?;
        let subject = user.to_string();
        audit::record(&mut transaction, actor, "session.end-all", None, Some(&subject)).await?;
        let revision = revision::next_of_identity(&mut transaction).await?;
        self.commit_change(transaction, revision).await?;
        Ok((ended.rows_affected(), revision))
    }

    /// Removes sessions that have ended by themselves, at most `limit` of them.
    pub(crate) async fn remove_ended_sessions(
        &self,
        now: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64, CatalogError> {
        let mut connection = self.connection().await?;
        let removed = sqlx::query!(
            r#"
            delete from sessions
            where id_sha256 in (
                select id_sha256 from sessions where least(idle_until, ends_at) < $1 limit $2
            )
            "#,
            now,
            i64::from(limit),
        )
        .execute(&mut *connection)
        .await?;
        Ok(removed.rows_affected())
    }
}
