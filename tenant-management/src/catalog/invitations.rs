//! Invitations: who may become a member of which tenant. Secrets never reach this place; only their hashes do.

use chrono::{DateTime, Utc};

use super::{Catalog, CatalogError, api_keys::role, audit, revision, users::MemberRow};
use crate::{
    control::{Actor, Page, Role},
    email::EmailAddress,
    ids::{Revision, TenantUuid, UserId},
    people::{Invitation, Member},
};

/// An invitation that is to be made.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    /// Public part, unique.
    pub id: String,
    /// Whom, in lower case.
    pub email: EmailAddress,
    /// What they may do.
    pub role: Role,
    /// SHA-256 of the secret part.
    pub secret_sha256: [u8; 32],
    /// From then on it is refused.
    pub expires_at: DateTime<Utc>,
}

struct InvitationRow {
    id: String,
    tenant: TenantUuid,
    email: EmailAddress,
    role: String,
    secret_sha256: Vec<u8>,
    invited_by: String,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
}

impl TryFrom<InvitationRow> for Invitation {
    type Error = CatalogError;

    fn try_from(row: InvitationRow) -> Result<Self, Self::Error> {
        Ok(Self {
            id: row.id,
            tenant: row.tenant,
            email: row.email,
            role: role(&row.role)?,
            secret_sha256: row
                .secret_sha256
                .try_into()
                .map_err(|_| CatalogError::NotUnderstood("the hash of an invitation"))?,
            invited_by: row.invited_by,
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

impl Catalog {
    /// Invites a person, or invites them anew: an earlier invitation to the same tenant is good for nothing any more.
    pub(crate) async fn invite(
        &self,
        tenant: TenantUuid,
        invitation: &NewInvitation,
        actor: &Actor,
    ) -> Result<(Invitation, Revision), CatalogError> {
        let mut transaction = self.begin().await?;
        let row = sqlx::query_as!(
            InvitationRow,
            r#"
            insert into invitations (id, tenant, email, role, secret_sha256, invited_by, expires_at)
            values ($1, $2, $3, $4, $5, $6, $7)
            on conflict (tenant, email) do update
            set id = excluded.id, role = excluded.role, secret_sha256 = excluded.secret_sha256,
                invited_by = excluded.invited_by, created_at = now(), expires_at = excluded.expires_at
            returning id, tenant as "tenant: TenantUuid", email as "email: EmailAddress", role, secret_sha256,
                invited_by, created_at, expires_at
            "#,
            invitation.id,
            tenant.0,
            invitation.email.as_str(),
            invitation.role.as_str(),
            &invitation.secret_sha256,
            actor.name,
            invitation.expires_at,
        )
        .fetch_one(&mut *transaction)
        .await?;
        audit::record(
            &mut transaction,
            actor,
            "invitation.create",
            Some(tenant),
            Some(&invitation.id),
        )
        .await?;
        let revision = revision::next(&mut transaction).await?;
        self.commit_change(transaction, revision).await?;
        Ok((row.try_into()?, revision))
    }

    /// One invitation that has not expired.
    pub(crate) async fn invitation(&self, id: &str) -> Result<Option<Invitation>, CatalogError> {
        let mut connection = self.connection().await?;
        let row = sqlx::query_as!(
            InvitationRow,
            r#"
            select id, tenant as "tenant: TenantUuid", email as "email: EmailAddress", role, secret_sha256,
                invited_by, created_at, expires_at
            from invitations
            where id = $1 and expires_at > now()
            "#,
            id,
        )
        .fetch_optional(&mut *connection)
        .await?;
        row.map(TryInto::try_into).transpose()
    }

    /// A page of a tenant's invitations in the order of their ids, expired ones included.
    pub(crate) async fn invitations(
        &self,
        tenant: TenantUuid,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<Invitation>, CatalogError> {
        let mut connection = self.connection().await?;
        let rows = sqlx::query_as!(
            InvitationRow,
            r#"
            select id, tenant as "tenant: TenantUuid", email as "email: EmailAddress", role, secret_sha256,
                invited_by, created_at, expires_at
            from invitations
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
        let invitations = rows
            .into_iter()
            .map(TryInto::try_into)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Page::from_one_more(invitations, limit))
    }

    /// Withdraws an invitation. `None`: the tenant has no such invitation.
    pub(crate) async fn withdraw_invitation(
        &self,
        tenant: TenantUuid,
        id: &str,
        actor: &Actor,
    ) -> Result<Option<(Invitation, Revision)>, CatalogError> {
        let mut transaction = self.begin().await?;
        let row = sqlx::query_as!(
            InvitationRow,
            r#"
            delete from invitations
            where id = $1 and tenant = $2
            returning id, tenant as "tenant: TenantUuid", email as "email: EmailAddress", role, secret_sha256,
                invited_by, created_at, expires_at
            "#,
            id,
            tenant.0,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        audit::record(
            &mut transaction,
            actor,
            "invitation.withdraw",
            Some(tenant),
            Some(id),
        )
        .await?;
        let revision = revision::next(&mut transaction).await?;
        self.commit_change(transaction, revision).await?;
        Ok(Some((row.try_into()?, revision)))
    }

    /// Makes a member of whom was invited; a person who is not known yet gets `new_password_hash`. Once: `None` when the
    /// invitation is gone or has expired, or when the person has become known in the meantime.
    pub(crate) async fn accept_invitation(
        &self,
        invitation: &Invitation,
        new_password_hash: Option<&str>,
        actor: &Actor,
    ) -> Result<Option<(Member, Revision)>, CatalogError> {
        let mut transaction = self.begin().await?;
        let taken = sqlx::query!(
            "delete from invitations where id = $1 and expires_at > now() and secret_sha256 = $2",
            invitation.id,
            &invitation.secret_sha256,
        )
        .execute(&mut *transaction)
        .await?;
        if taken.rows_affected() == 0 {
            return Ok(None);
        }
        if let Some(password_hash) = new_password_hash {
            let made = sqlx::query!(
                r#"
                insert into users (id, email, password_hash)
                values ($1, $2, $3)
                on conflict (email) do nothing
                "#,
                UserId::generate().0,
                invitation.email.as_str(),
                password_hash,
            )
            .execute(&mut *transaction)
            .await?;
            if made.rows_affected() == 0 {
                return Ok(None);
            }
        }
        // An invitation of somebody who belongs to the tenant already changes what they may do.
        let row = sqlx::query_as!(
            MemberRow,
            r#"
            insert into memberships (tenant, user_id, role)
            select $1, id, $3
            from users
            where email = $2
            on conflict (tenant, user_id) do update
            set role = excluded.role
            returning user_id as "user: UserId", $2 as "email!: EmailAddress", role, created_at
            "#,
            invitation.tenant.0,
            invitation.email.as_str(),
            invitation.role.as_str(),
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let member = Member::try_from(row)?;
        let actor = Actor {
            name: format!("user:{}", member.user),
            ..actor.clone()
        };
        audit::record(
            &mut transaction,
            &actor,
            "invitation.accept",
            Some(invitation.tenant),
            Some(&invitation.id),
        )
        .await?;
        let revision = revision::next_of_identity(&mut transaction).await?;
        self.commit_change(transaction, revision).await?;
        Ok(Some((member, revision)))
    }
}
