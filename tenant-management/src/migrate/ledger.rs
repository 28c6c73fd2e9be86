//! refinery's database interface over a sqlx connection, so that the service needs one driver only.

use chrono::{DateTime, Utc};
use refinery::Migration;
use refinery_core::traits::r#async::{AsyncMigrate, AsyncQuery, AsyncTransaction};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

/// A connection as refinery sees it.
pub(super) struct Ledger<'c>(pub(super) &'c mut PgConnection);

impl AsyncTransaction for Ledger<'_> {
    type Error = sqlx::Error;

    async fn execute<'a, T: Iterator<Item = &'a str> + Send + 'a>(
        &'a mut self,
        queries: T,
    ) -> Result<usize, Self::Error> {
        let mut transaction = self.0.begin().await?;
        let mut count = 0;
        for query in queries {
            // Migrations are part of the program, never input.
            sqlx::raw_sql(AssertSqlSafe(query))
                .execute(&mut *transaction)
                .await?;
            count += 1;
        }
        transaction.commit().await?;
        Ok(count)
    }
}

impl AsyncQuery<Vec<Migration>> for Ledger<'_> {
    async fn query<'a>(&'a mut self, query: &'a str) -> Result<Vec<Migration>, Self::Error> {
        let rows = sqlx::query(AssertSqlSafe(query)).fetch_all(&mut *self.0).await?;
        rows.iter().map(applied).collect()
    }
}

impl AsyncMigrate for Ledger<'_> {}

fn applied(row: &sqlx::postgres::PgRow) -> sqlx::Result<Migration> {
    let decode = |error: Box<dyn std::error::Error + Send + Sync>| sqlx::Error::Decode(error);
    let applied_on: String = row.try_get(2)?;
    let applied_on: DateTime<Utc> = applied_on
        .parse()
        .map_err(|error: chrono::ParseError| decode(error.into()))?;
    let applied_on = time::OffsetDateTime::from_unix_timestamp(applied_on.timestamp())
        .map_err(|error| decode(error.into()))?;
    let checksum: String = row.try_get(3)?;
    let checksum = checksum
        .parse()
        .map_err(|error: std::num::ParseIntError| decode(error.into()))?;
    Ok(Migration::applied(
        row.try_get(0)?,
        row.try_get(1)?,
        applied_on,
        checksum,
    ))
}
