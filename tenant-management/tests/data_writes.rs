//! A write is committed or an error.

mod pool_support;

use std::sync::Arc;

use pool_support::{
    World, eventually,
    notes::{add_note, notes, tenant_with_notes},
    run,
};
use sqlx::{ConnectOptions, Connection, Executor};
use tenant_management::data::{Consistency, DataError};

#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("no")]
    No,
    #[error(transparent)]
    Data(#[from] DataError),
}

impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        Self::Data(error.into())
    }
}

#[tokio::test]
async fn a_write_is_committed_or_an_error() {
    let world = World::start().await;
    let (_, pool, db) = tenant_with_notes(&world).await;
    let insert = "insert into notes (text) values ($1)";

    // Ok is committed.
    add_note(&db, "kept").await.expect("a write writes");

    // An error of the caller's own type rolls back and comes back.
    let refused: Result<(), Refusal> = db
        .write(async |mut tx| {
            sqlx::query(insert).bind("refused").execute(&mut *tx).await?;
            Err(Refusal::No)
        })
        .await;
    assert!(matches!(refused, Err(Refusal::No)), "{refused:?}");

    // Ok after a statement has failed would be rolled back by the server without a word.
    let swallowed = db
        .write(async |mut tx| {
            sqlx::query(insert).bind("swallowed").execute(&mut *tx).await?;
            let _ = sqlx::query("select 1 / 0").execute(&mut *tx).await;
            Ok::<_, DataError>(())
        })
        .await;
    assert!(
        matches!(swallowed, Err(DataError::TransactionFailed)),
        "{swallowed:?}"
    );

    // Unless the failure was inside of a savepoint.
    let saved = db
        .write(async |mut tx| {
            sqlx::query(insert).bind("saved").execute(&mut *tx).await?;
            tx.execute("savepoint here").await?;
            let _ = sqlx::query("select 1 / 0").execute(&mut *tx).await;
            tx.execute("rollback to savepoint here").await?;
            Ok::<_, DataError>(())
        })
        .await;
    saved.expect("a savepoint was returned to");

    // The closure cannot end the transaction behind the layer's back.
    for sql in ["commit", "rollback", "end; begin", "begin"] {
        let ended = db
            .write(async |mut tx| {
                sqlx::query(insert).bind("ended").execute(&mut *tx).await?;
                tx.execute(sqlx::raw_sql(sql)).await?;
                Ok::<_, DataError>(())
            })
            .await;
        assert!(matches!(ended, Err(DataError::Misplaced(_))), "{sql}: {ended:?}");
    }

    // A connection that the closure keeps is not committed.
    let mut kept = None;
    let stolen = db
        .write(async |mut tx| {
            sqlx::query(insert).bind("stolen").execute(&mut *tx).await?;
            kept = Some(tx);
            Ok::<_, DataError>(())
        })
        .await;
    assert!(matches!(stolen, Err(DataError::TransactionFailed)), "{stolen:?}");
    drop(kept);

    assert_eq!(notes(&db).await.expect("a read reads"), ["kept", "saved"]);
    eventually("nothing is open", async || {
        pool.stats().in_use == 0 && pool.stats().closing == 0
    })
    .await;
    world.end().await;
}

#[tokio::test]
async fn a_commit_that_fails_is_an_error() {
    // Given: a constraint that is checked when the transaction is committed.
    let world = World::start().await;
    let (route, _, db) = tenant_with_notes(&world).await;
    let mut admin = world
        .admin_options(&route.uuid.physical_name())
        .connect()
        .await
        .expect("the administrator can");
    run(
        &mut admin,
        "alter table notes add unique (text) deferrable initially deferred".to_owned(),
    )
    .await;
    admin.close().await.expect("the administrator can leave");
    add_note(&db, "one").await.expect("a write writes");
    let before = db
        .read(Consistency::Strict, async |conn| {
            Ok::<_, DataError>(conn.backend_pid())
        })
        .await;
    // When.
    let twice = add_note(&db, "one").await;
    // Then: an error, and the connection is as good as before.
    assert!(
        matches!(&twice, Err(DataError::Sql(error)) if error.to_string().contains("duplicate")),
        "{twice:?}"
    );
    let after = db
        .read(Consistency::Strict, async |conn| {
            Ok::<_, DataError>(conn.backend_pid())
        })
        .await;
    assert_eq!(before.expect("a read reads"), after.expect("a read reads"));
    assert_eq!(notes(&db).await.expect("a read reads"), ["one"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_write_is_rolled_back() {
    let world = World::start().await;
    let (_, pool, db) = tenant_with_notes(&world).await;
    let inserted = Arc::new(tokio::sync::Notify::new());
    let writing = tokio::spawn({
        let (db, inserted) = (db.clone(), Arc::clone(&inserted));
        async move {
            db.write(async |mut tx| {
                sqlx::query("insert into notes (text) values ('dropped')")
                    .execute(&mut *tx)
                    .await?;
                inserted.notify_one();
                std::future::pending::<()>().await;
                Ok::<_, DataError>(())
            })
            .await
        }
    });
    inserted.notified().await;
    writing.abort();
    assert!(writing.await.is_err_and(|error| error.is_cancelled()));
    eventually("its place is free", async || {
        pool.stats().in_use == 0 && pool.stats().closing == 0
    })
    .await;
    assert!(notes(&db).await.expect("a read reads").is_empty());
    world.end().await;
}
