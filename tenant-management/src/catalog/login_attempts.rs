//! How often somebody has tried to log in, counted for all instances together.
//!
//! The generic cell rate algorithm (ITU-T I.371): a key's allowance is whole at a moment that each attempt pushes forward;
//! when that is too far ahead, the attempt is refused. Refuses to know what a key stands for.

use std::time::Duration;

use super::{Catalog, CatalogError, instances::interval};

/// How many attempts are allowed.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// At once, after a quiet time.
    pub at_once: u32,
    /// One more each.
    pub every: Duration,
}

impl Catalog {
    /// Counts an attempt under a key. `Some`: it is one too many, and how long to wait for the next.
    pub(crate) async fn count_attempt(
        &self,
        key_sha256: &[u8; 32],
        allowance: Allowance,
    ) -> Result<Option<Duration>, CatalogError> {
        let mut connection = self.connection().await?;
        let ahead = allowance.every * allowance.at_once.saturating_sub(1);
        let counted = sqlx::query!(
            r#"
            insert into login_attempts as attempts (key_sha256, whole_at)
            values ($1, now() + $2::interval)
            on conflict (key_sha256) do update
            set whole_at = greatest(attempts.whole_at, now()) + $2::interval
            where attempts.whole_at <= now() + $3::interval
            "#,
            key_sha256,
            interval(allowance.every),
            interval(ahead),
        )
        .execute(&mut *connection)
        .await?;
        if counted.rows_affected() == 1 {
            return Ok(None);
        }
        let seconds = sqlx::query_scalar!(
            r#"
            select extract(epoch from whole_at - now() - $2::interval)::float8 as "seconds!"
            from login_attempts
            where key_sha256 = $1
            "#,
            key_sha256,
            interval(ahead),
        )
        .fetch_optional(&mut *connection)
        .await?;
        Ok(Some(Duration::from_secs_f64(
            seconds.unwrap_or(0.0).clamp(0.0, 86_400.0),
        )))
    }

    /// Forgets the attempts under a key.
    pub(crate) async fn forget_attempts(&self, key_sha256: &[u8; 32]) -> Result<(), CatalogError> {
        let mut connection = self.connection().await?;
        sqlx::query!("delete from login_attempts where key_sha256 = $1", key_sha256)
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// Removes keys whose allowance is whole again, at most `limit` of them.
    pub(crate) async fn remove_forgiven_attempts(&self, limit: u32) -> Result<u64, CatalogError> {
        let mut connection = self.connection().await?;
        let removed = sqlx::query!(
            r#"
            delete from login_attempts
            where key_sha256 in (select key_sha256 from login_attempts where whole_at < now() limit $1)
            "#,
            i64::from(limit),
        )
        .execute(&mut *connection)
        .await?;
        Ok(removed.rows_affected())
    }
}
