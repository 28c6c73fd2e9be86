//! Answers kept for requests that are sent again under the same key.

use std::time::Duration;

use super::{Catalog, CatalogError, instances::interval};

/// How long an answer is kept.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// What a key means at the moment.
#[derive(Debug)]
pub enum Idempotent {
    /// Never seen: the caller does the work and stores the answer with [`IdempotencyLease`].
    New(IdempotencyLease),
    /// Done before: the answer of then.
    Stored {
        /// HTTP status.
        status: u16,
        /// Body, byte for byte.
        body: Vec<u8>,
    },
    /// Another request with this key is at work right now.
    InProgress,
    /// The key was used for another request.
    OtherBody,
}

/// The right to do the work of a key and to store its answer.
#[derive(Debug)]
pub struct IdempotencyLease {
    catalog: Catalog,
    scope: String,
    key: String,
}

fn owner(scope: &str, key: &str) -> Vec<u8> {
    format!("idempotency:{scope}\n{key}").into_bytes()
}

impl Catalog {
    /// Claims a key within its scope (who, method and path). `fingerprint` tells requests apart. The claim ends by itself
    /// after `lease`, should the process end before the work does.
    pub(crate) async fn begin_idempotent(
        &self,
        scope: &str,
        key: &str,
        fingerprint: &[u8; 32],
        lease: Duration,
    ) -> Result<Idempotent, CatalogError> {
        let mut transaction = self.begin().await?;
        sqlx::query!(
            "delete from idempotency_keys where created_at < now() - $1::interval",
            interval(KEPT_FOR)
        )
        .execute(&mut *transaction)
        .await?;
        let claimed = sqlx::query!(
            r#"
            insert into idempotency_keys (scope, key, fingerprint, lease_until)
            values ($1, $2, $3, now() + $4::interval)
            on conflict (scope, key) do update
            set lease_until = excluded.lease_until
            where idempotency_keys.status is null
                and idempotency_keys.fingerprint = excluded.fingerprint
                and idempotency_keys.lease_until < now()
            "#,
            scope,
            key,
            fingerprint,
            interval(lease),
        )
        .execute(&mut *transaction)
        .await?;
        let stored = sqlx::query!(
            "select fingerprint, status, response_sealed from idempotency_keys where scope = $1 and key = $2",
            scope,
            key,
        )
        .fetch_one(&mut *transaction)
        .await?;
        transaction.commit().await?;
        if claimed.rows_affected() == 1 {
            let lease = IdempotencyLease {
                catalog: self.clone(),
                scope: scope.to_owned(),
                key: key.to_owned(),
            };
            return Ok(Idempotent::New(lease));
        }
        if stored.fingerprint != fingerprint {
            return Ok(Idempotent::OtherBody);
        }
        let (Some(status), Some(sealed)) = (stored.status, stored.response_sealed) else {
            return Ok(Idempotent::InProgress);
        };
        Ok(Idempotent::Stored {
            status: status.unsigned_abs(),
            body: self.keys.open(&owner(scope, key), &sealed.into())?,
        })
    }
}

impl IdempotencyLease {
    /// Stores the answer for everybody who comes with the same key.
    pub async fn finish(self, status: u16, body: &[u8]) -> Result<(), CatalogError> {
        let sealed = self.catalog.keys.seal(&owner(&self.scope, &self.key), body);
        let mut connection = self.catalog.connection().await?;
        sqlx::query!(
            r#"
            update idempotency_keys
            set status = $3, response_sealed = $4, lease_until = null
            where scope = $1 and key = $2
            "#,
            self.scope,
            self.key,
            i16::try_from(status).unwrap_or(i16::MAX),
            sealed.as_bytes(),
        )
        .execute(&mut *connection)
        .await?;
        Ok(())
    }

    /// Forgets the key: the work was not done and may be tried again under it.
    pub async fn abandon(self) -> Result<(), CatalogError> {
        let mut connection = self.catalog.connection().await?;
        sqlx::query!(
            "delete from idempotency_keys where scope = $1 and key = $2 and status is null",
            self.scope,
            self.key,
        )
        .execute(&mut *connection)
        .await?;
        Ok(())
    }
}
