//! The counter that orders all changes.

use sqlx::PgConnection;

use super::CatalogError;
use crate::ids::Revision;

/// Takes the next revision. The row stays locked until the transaction ends, so changes commit in the order of their
/// revisions; call it late, so that the lock is short.
pub(super) async fn next(transaction: &mut PgConnection) -> Result<Revision, CatalogError> {
    let revision = sqlx::query_scalar!(
        r#"
        update catalog_revision
        set revision = revision + 1
        returning revision as "revision: Revision"
        "#
    )
    .fetch_one(transaction)
    .await?;
    Ok(revision)
}

/// The revision of the last change that has committed.
pub(super) async fn current(connection: &mut PgConnection) -> Result<Revision, CatalogError> {
    let revision = sqlx::query_scalar!(r#"select revision as "revision: Revision" from catalog_revision"#)
        .fetch_one(connection)
        .await?;
    Ok(revision)
}
