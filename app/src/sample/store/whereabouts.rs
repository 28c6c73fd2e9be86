//! Which database a tenant's request reaches, as the database itself tells it.

use read_your_writes::Consistency;
use tenant_management::data::{DataError, TenantDb};

/// What a database says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// Its name.
    pub database: String,
    /// The UUID of the tenant that it was made for, as it is marked.
    pub database_tenant: Option<String>,
}

/// Asks the tenant's database which one it is.
pub async fn whereabouts(db: &TenantDb) -> Result<Whereabouts, DataError> {
    db.read(Consistency::Recent, async |mut conn| {
        let whereabouts = sqlx::query_as!(
            Whereabouts,
            r#"
            select current_database()::text as "database!", current_setting('tenantry.tenant', true) as database_tenant
            "#,
        )
        .fetch_one(&mut conn)
        .await?;
        Ok(whereabouts)
    })
    .await
}
