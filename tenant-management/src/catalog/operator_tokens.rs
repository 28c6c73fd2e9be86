//! Operators' tokens. Secrets never reach this place; only their hashes do.

use chrono::{DateTime, Utc};

use super::{Catalog, CatalogError, audit, revision};
use crate::{
    control::{Actor, OperatorRole, OperatorToken, Page},
    ids::Revision,
};

/// A token that is to be registered.
#[derive(Clone, Debug)]
pub struct NewOperatorToken {
    /// Public part, unique.
    pub id: String,
    /// The operator's name, as the audit trail will show it; no other token in force has it.
    pub name: String,
    /// What it may do.
    pub role: OperatorRole,
    /// SHA-256 of the secret part.
    pub secret_sha256: [u8; 32],
    /// From then on it is refused.
    pub expires_at: Option<DateTime<Utc>>,
}

struct OperatorTokenRow {
    id: String,
    name: String,
    role: String,
    secret_sha256: Vec<u8>,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
}

impl TryFrom<OperatorTokenRow> for OperatorToken {
    type Error = CatalogError;

    fn try_from(row: OperatorTokenRow) -> Result<Self, Self::Error> {
        let role = [OperatorRole::Read, OperatorRole::Write]
            .into_iter()
            .find(|role| role.as_str() == row.role);
        Ok(Self {
            id: row.id,
            name: row.name,
            role: role.ok_or(CatalogError::NotUnderstood("an operator's role"))?,
            secret_sha256: row
                .secret_sha256
                .try_into()
                .map_err(|_| CatalogError::NotUnderstood("the hash of an operator's token"))?,
            created_at: row.created_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
        })
    }
}

impl Catalog {
    /// Registers a token. `None`: a token in force has the name.
    pub(crate) async fn add_operator_token(
        &self,
        token: &NewOperatorToken,
        actor: &Actor,
    ) -> Result<Option<(OperatorToken, Revision)>, CatalogError> {
        let mut transaction = self.begin().await?;
        let row = sqlx::query_as!(
            OperatorTokenRow,
            r#"
            insert into operator_tokens (id, name, role, secret_sha256, expires_at)
            values ($1, $2, $3, $4, $5)
            on conflict (name) where revoked_at is null do nothing
            returning id, name, role, secret_sha256, created_at, expires_at, revoked_at, last_used_at
            "#,
            token.id,
            token.name,
            token.role.as_str(),
            &token.secret_sha256,
            token.expires_at,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        audit::record(
            &mut transaction,
            actor,
            "operator-token.create",
            None,
            Some(&token.id),
        )
        .await?;
        let revision = revision::next(&mut transaction).await?;
        self.commit_change(transaction, revision).await?;
        Ok(Some((row.try_into()?, revision)))
    }

    /// One token, with the revision that the catalog had when it was read.
    pub(crate) async fn operator_token(
        &self,
        id: &str,
    ) -> Result<(Option<OperatorToken>, Revision), CatalogError> {
        let mut connection = self.connection().await?;
        // The counter first: what is read afterwards is at least as new.
        let seen_at = revision::current(&mut connection).await?;
        let row = sqlx::query_as!(
            OperatorTokenRow,
            r#"
            select id, name, role, secret_sha256, created_at, expires_at, revoked_at, last_used_at
            from operator_tokens
            where id = $1
            "#,
            id,
        )
        .fetch_optional(&mut *connection)
        .await?;
        Ok((row.map(TryInto::try_into).transpose()?, seen_at))
    }

    /// A page of tokens in the order of their ids, revoked ones included.
    pub(crate) async fn operator_tokens(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<OperatorToken>, CatalogError> {
        let mut connection = self.connection().await?;
        let rows = sqlx::query_as!(
            OperatorTokenRow,
            r#"
            select id, name, role, secret_sha256, created_at, expires_at, revoked_at, last_used_at
            from operator_tokens
            where id > coalesce($1, '')
            order by id
            limit $2
            "#,
            after,
            i64::from(limit) + 1,
        )
        .fetch_all(&mut *connection)
        .await?;
        let tokens = rows
            .into_iter()
            .map(TryInto::try_into)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Page::from_one_more(tokens, limit))
    }

    /// Revokes a token; again, it stays revoked as it was. Answers the token and the change's revision, which is zero when
    /// there was nothing to change.
    pub(crate) async fn revoke_operator_token(
        &self,
        id: &str,
        actor: &Actor,
    ) -> Result<Option<(OperatorToken, Revision)>, CatalogError> {
        let mut transaction = self.begin().await?;
        let revoked = sqlx::query!(
            "update operator_tokens set revoked_at = now() where id = $1 and revoked_at is null",
            id,
        )
        .execute(&mut *transaction)
        .await?;
        let row = sqlx::query_as!(
            OperatorTokenRow,
            r#"
            select id, name, role, secret_sha256, created_at, expires_at, revoked_at, last_used_at
            from operator_tokens
            where id = $1
            "#,
            id,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let mut revision = Revision::default();
        if revoked.rows_affected() == 1 {
            audit::record(&mut transaction, actor, "operator-token.revoke", None, Some(id)).await?;
            revision = revision::next_of_identity(&mut transaction).await?;
        }
        self.commit_change(transaction, revision).await?;
        Ok(Some((row.try_into()?, revision)))
    }

    /// Notes when tokens and API keys were used last, by their ids.
    pub(crate) async fn note_last_use(
        &self,
        ids: &[String],
        times: &[DateTime<Utc>],
    ) -> Result<(), CatalogError> {
        let mut connection = self.connection().await?;
        sqlx::query!(
            r#"
            with used as (
                select * from unnest($1::text[], $2::timestamptz[]) as used (id, at)
            ),
            tokens as (
                update operator_tokens t
                set last_used_at = used.at
                from used
                where t.id = used.id and (t.last_used_at is null or t.last_used_at < used.at)
            )
            update api_keys k
            set last_used_at = used.at
            from used
            where k.id = used.id and (k.last_used_at is null or k.last_used_at < used.at)
            "#,
            ids,
            times,
        )
        .execute(&mut *connection)
        .await?;
        Ok(())
    }
}
