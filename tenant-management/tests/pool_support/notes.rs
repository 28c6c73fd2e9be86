//! A tenant with a table of notes, and what tests do with it.

use std::sync::Arc;

use tenant_management::{
    Route,
    data::{Consistency, DataError, TenantDb},
    pool::{NodePool, PoolLimits},
};

use super::{LIMIT, World};

/// Limits that a slow machine does not run into.
pub(crate) fn limits() -> PoolLimits {
    PoolLimits {
        connect_timeout: LIMIT,
        acquire_timeout: LIMIT,
        idle_timeout: LIMIT * 10,
        ..PoolLimits::default()
    }
}

/// A tenant with a table of notes, and a pool to reach it.
pub(crate) async fn tenant_with_notes(world: &World) -> (Arc<Route>, NodePool, TenantDb) {
    let route = world.tenant("acme").await;
    world.notes_table(&route).await;
    let pool = world.pool(4, limits());
    let db = TenantDb::new(Arc::clone(&route), pool.clone());
    (route, pool, db)
}

/// Writes a note.
pub(crate) async fn add_note(db: &TenantDb, text: &str) -> Result<(), DataError> {
    db.write(async |mut tx| {
        sqlx::query("insert into notes (text) values ($1)")
            .bind(text)
            .execute(&mut *tx)
            .await?;
        Ok(())
    })
    .await
}

/// Reads all notes, in alphabetical order.
pub(crate) async fn notes(db: &TenantDb) -> Result<Vec<String>, DataError> {
    db.read(Consistency::Strict, async |mut conn| {
        Ok(sqlx::query_scalar("select text from notes order by text")
            .fetch_all(&mut *conn)
            .await?)
    })
    .await
}
