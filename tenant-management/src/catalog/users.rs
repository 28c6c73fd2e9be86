//! People and the tenants they belong to.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{Catalog, CatalogError, api_keys::role, audit, revision};
use crate::{
    control::{Actor, Page, Role},
    email::EmailAddress,
    ids::{Revision, TenantUuid, UserId},
    people::Member,
};

pub(super) struct MemberRow {
    pub(super) user: UserId,
    pub(super) email: EmailAddress,
    pub(super) role: String,
    pub(super) created_at: DateTime<Utc>,
}

impl TryFrom<MemberRow> for Member {
    type Error = CatalogError;

    fn try_from(row: MemberRow) -> Result<Self, Self::Error> {
        Ok(Self {
            user: row.user,
            email: row.email,
            role: role(&row.role)?,
            since: row.created_at,
        })
    }
}

/// A person as they log in: who it is, and the hash of their password.
#[derive(Clone, Debug)]
pub struct Account {
    /// Who.
    pub user: UserId,
    /// In the PHC string format.
    pub password_hash: String,
}

impl Catalog {
    /// The person with this address, which is in lower case.
    pub(crate) async fn account(&self, email: &EmailAddress) -> Result<Option<Account>, CatalogError> {
        let mut connection = self.connection().await?;
        let account = sqlx::query_as!(
            Account,
            r#"select id as "user: UserId", password_hash from users where email = $1"#,
            email.as_str(),
        )
        .fetch_optional(&mut *connection)
        .await?;
        Ok(account)
    }

    /// The person with this identity.
    pub(crate) async fn account_of(&self, user: UserId) -> Result<Option<Account>, CatalogError> {
        let mut connection = self.connection().await?;
        let account = sqlx::query_as!(
            Account,
            r#"select id as "user: UserId", password_hash from users where id = $1"#,
            user.0,
        )
        .fetch_optional(&mut *connection)
        .await?;
        Ok(account)
    }

    /// What a person may do in a tenant.
    pub(crate) async fn role_in(
        &self,
        user: UserId,
        tenant: TenantUuid,
    ) -> Result<Option<Role>, CatalogError> {
        let mut connection = self.connection().await?;
        let stored = sqlx::query_scalar!(
            "select role from memberships where user_id = $1 and tenant = $2",
            user.0,
            tenant.0,
        )
        .fetch_optional(&mut *connection)
        .await?;
        stored.as_deref().map(role).transpose()
    }

    /// A page of a tenant's people in the order of their identities.
    pub(crate) async fn members(
        &self,
        tenant: TenantUuid,
        after: Option<UserId>,
        limit: u32,
    ) -> Result<Page<Member>, CatalogError> {
        let mut connection = self.connection().await?;
        let rows = sqlx::query_as!(
            MemberRow,
            r#"
            select m.user_id as "user: UserId", u.email as "email: EmailAddress", m.role, m.created_at
            from memberships m
            join users u on u.id = m.user_id
            where m.tenant = $1 and ($2::uuid is null or m.user_id > $2)
            order by m.user_id
            limit $3
            "#,
            tenant.0,
            after.map(|after| after.0),
            i64::from(limit) + 1,
        )
        .fetch_all(&mut *connection)
        .await?;
        let members = rows
            .into_iter()
            .map(TryInto::try_into)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Page::from_one_more(members, limit))
    }

    /// Gives a member another role. Answers the member and the change's revision, which is zero when there was nothing to
    /// change.
    pub(crate) async fn change_member(
        &self,
        tenant: TenantUuid,
        user: UserId,
        role: Role,
        actor: &Actor,
    ) -> Result<Option<(Member, Revision)>, CatalogError> {
        let mut transaction = self.begin().await?;
        let Some(mut member) = member(&mut transaction, tenant, user).await? else {
            return Ok(None);
        };
        let mut revision = Revision::default();
        if member.role != role {
            sqlx::query!(
                "update memberships set role = $3 where tenant = $1 and user_id = $2",
                tenant.0,
                user.0,
                role.as_str(),
            )
            .execute(&mut *transaction)
            .await?;
            member.role = role;
            let subject = user.to_string();
            audit::record(
                &mut transaction,
                actor,
                "member.change",
                Some(tenant),
                Some(&subject),
            )
            .await?;
            revision = revision::next_of_identity(&mut transaction).await?;
        }
        self.commit_change(transaction, revision).await?;
        Ok(Some((member, revision)))
    }

    /// Takes a person out of a tenant, with the sessions that are good for nothing else. The person and their other tenants
    /// stay.
    pub(crate) async fn remove_member(
        &self,
        tenant: TenantUuid,
        user: UserId,
        actor: &Actor,
    ) -> Result<Option<(Member, Revision)>, CatalogError> {
        let mut transaction = self.begin().await?;
        let Some(member) = member(&mut transaction, tenant, user).await? else {
            return Ok(None);
        };
        sqlx::query!(
            "delete from memberships where tenant = $1 and user_id = $2",
            tenant.0,
            user.0,
        )
        .execute(&mut *transaction)
        .await?;
        sqlx::query!(
            "delete from sessions where tenant = $1 and user_id = $2",
            tenant.0,
            user.0,
        )
        .execute(&mut *transaction)
        .await?;
        let subject = user.to_string();
        audit::record(
            &mut transaction,
            actor,
            "member.remove",
            Some(tenant),
            Some(&subject),
        )
        .await?;
        let revision = revision::next_of_identity(&mut transaction).await?;
        self.commit_change(transaction, revision).await?;
        Ok(Some((member, revision)))
    }

    /// Replaces a person's password, and ends their sessions apart from `kept`, the SHA-256 of a session's id.
    pub(crate) async fn change_password(
        &self,
        user: UserId,
        password_hash: &str,
        kept: &[u8; 32],
        actor: &Actor,
    ) -> Result<Option<Revision>, CatalogError> {
        let mut transaction = self.begin().await?;
        let changed = sqlx::query!(
            "update users set password_hash = $2, password_changed_at = now() where id = $1",
            user.0,
            password_hash,
        )
        .execute(&mut *transaction)
        .await?;
        if changed.rows_affected() == 0 {
            return Ok(None);
        }
        sqlx::query!(
            "delete from sessions where user_id = $1 and id_sha256 <> $2",
            user.0,
            kept,
        )
        .execute(&mut *transaction)
        .await?;
        let subject = user.to_string();
        audit::record(&mut transaction, actor, "password.change", None, Some(&subject)).await?;
        let revision = revision::next_of_identity(&mut transaction).await?;
        self.commit_change(transaction, revision).await?;
        Ok(Some(revision))
    }
}

/// A member, whose row stays as it is until the transaction ends.
async fn member(
    transaction: &mut PgConnection,
    tenant: TenantUuid,
    user: UserId,
) -> Result<Option<Member>, CatalogError> {
    let row = sqlx::query_as!(
        MemberRow,
        r#"
        select m.user_id as "user: UserId", u.email as "email: EmailAddress", m.role, m.created_at
        from memberships m
        join users u on u.id = m.user_id
        where m.tenant = $1 and m.user_id = $2
        for update of m
        "#,
        tenant.0,
        user.0,
    )
    .fetch_optional(transaction)
    .await?;
    row.map(TryInto::try_into).transpose()
}
