//! The counter that orders all changes.

use sqlx::{PgConnection, PgTransaction};
use tokio::sync::watch;

use super::{Catalog, CatalogError};
use crate::ids::Revision;

/// Takes the next revision, of which all who [listen](Catalog::listen) hear when the transaction commits. The row stays locked
/// until the transaction ends, so changes commit in the order of their revisions; call it late, so that the lock is short, and
/// end with [`Catalog::commit_change`], so that those hear of it who listen elsewhere.
pub(super) async fn next(transaction: &mut PgConnection) -> Result<Revision, CatalogError> {
    let revision = sqlx::query_scalar!(
        r#"
        with next as (
            update catalog_revision
            set revision = revision + 1
            returning revision
        )
        select revision as "revision: Revision"
        from next, pg_notify('tenantry_revision', revision::text)
        "#
    )
    .fetch_one(transaction)
    .await?;
    Ok(revision)
}

/// Like [`next`], for a change that ends or alters what an instance may believe about somebody: a session, a membership, a
/// password, an operator's token.
pub(super) async fn next_of_identity(transaction: &mut PgConnection) -> Result<Revision, CatalogError> {
    let revision = next(transaction).await?;
    sqlx::query!("update catalog_revision set identity_revision = revision")
        .execute(transaction)
        .await?;
    Ok(revision)
}

/// The revision of the last change that has committed, and that of the last one that was about an identity.
pub(super) async fn current_of_identity(
    connection: &mut PgConnection,
) -> Result<(Revision, Revision), CatalogError> {
    let row = sqlx::query!(
        r#"
        select revision as "revision: Revision", identity_revision as "identity_revision: Revision"
        from catalog_revision
        "#
    )
    .fetch_one(connection)
    .await?;
    Ok((row.revision, row.identity_revision))
}

/// The revision of the last change that has committed.
pub(super) async fn current(connection: &mut PgConnection) -> Result<Revision, CatalogError> {
    let revision = sqlx::query_scalar!(r#"select revision as "revision: Revision" from catalog_revision"#)
        .fetch_one(connection)
        .await?;
    Ok(revision)
}

impl Catalog {
    /// Commits a change that took `revision`, and tells those who tell the other instances.
    pub(super) async fn commit_change(
        &self,
        transaction: PgTransaction<'_>,
        revision: Revision,
    ) -> Result<(), CatalogError> {
        transaction.commit().await?;
        self.committed.send_if_modified(|newest| {
            let newer = revision > *newest;
            *newest = revision.max(*newest);
            newer
        });
        Ok(())
    }

    /// The newest revision that this process has committed, and each newer one.
    pub(crate) fn committed(&self) -> watch::Receiver<Revision> {
        self.committed.subscribe()
    }
}
