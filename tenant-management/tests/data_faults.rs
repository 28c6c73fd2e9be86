//! Connections that die, servers that restart, and the error that each kind of failure has.

mod pool_support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use pool_support::{
    LIMIT, World, eventually,
    notes::{add_note, limits, notes, tenant_with_notes},
    run,
};
use sqlx::{Connection, Executor};
use tenant_management::{
    data::{Consistency, DataError, TenantDb},
    pool::PoolLimits,
};

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_died_while_idle_are_not_noticed_by_anybody() {
    let world = World::start().await;
    let (_, pool, db) = tenant_with_notes(&world).await;
    add_note(&db, "one").await.expect("a write writes");
    let mut admin = world.admin().await;
    let kill = "select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name like 'tenantry/%'";
    for round in 0..3 {
        // Given: some idle connections, all of which the server ends.
        let taken = [pool.acquire(db.route()).await, pool.acquire(db.route()).await];
        for mut connection in taken
            .into_iter()
            .map(|connection| connection.expect("there is room"))
        {
            connection.execute("select 1").await.expect("it runs");
        }
        admin.execute(kill).await.expect("the administrator can do it");
        // When, then: whatever comes next succeeds.
        match round {
            0 => assert_eq!(notes(&db).await.expect("a read reads"), ["one"]),
            1 => add_note(&db, "two").await.expect("a write writes"),
            _ => {
                let count = db
                    .snapshot(Consistency::Strict, async |mut conn| {
                        let count = "select count(*) from notes";
                        Ok::<i64, DataError>(sqlx::query_scalar(count).fetch_one(&mut *conn).await?)
                    })
                    .await;
                assert_eq!(count.expect("a snapshot reads"), 2);
            }
        }
    }
    admin.close().await.expect("the administrator can leave");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_dies_in_the_middle_is_an_error_and_nothing_runs_twice() {
    let world = World::start().await;
    let (_, _, db) = tenant_with_notes(&world).await;
    add_note(&db, "one").await.expect("a write writes");
    let mut admin = world.admin().await;
    let admin = tokio::sync::Mutex::new(&mut admin);
    let runs = AtomicU32::new(0);
    let kill = async |pid: i32| {
        let mut admin = admin.lock().await;
        sqlx::query("select pg_terminate_backend($1, 10000)")
            .bind(pid)
            .execute(&mut **admin)
            .await
            .expect("the administrator can do it");
    };
    let written = db
        .write(async |mut tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            sqlx::query("insert into notes (text) values ('lost')")
                .execute(&mut *tx)
                .await?;
            kill(tx.backend_pid()).await;
            sqlx::query("insert into notes (text) values ('lost')")
                .execute(&mut *tx)
                .await?;
            Ok::<_, DataError>(())
        })
        .await;
    assert!(matches!(written, Err(DataError::Unavailable(_))), "{written:?}");
    let unknown = db
        .write(async |mut tx| {
            runs.fetch_add(1, Ordering::SeqCst);
            sqlx::query("insert into notes (text) values ('lost')")
                .execute(&mut *tx)
                .await?;
            kill(tx.backend_pid()).await;
            Ok::<_, DataError>(())
        })
        .await;
    assert!(matches!(unknown, Err(DataError::CommitUnknown(_))), "{unknown:?}");
    let read = db
        .read(Consistency::Strict, async |mut conn| {
            runs.fetch_add(1, Ordering::SeqCst);
            let _: i32 = sqlx::query_scalar("select 1").fetch_one(&mut *conn).await?;
            kill(conn.backend_pid()).await;
            Ok::<i32, DataError>(sqlx::query_scalar("select 2").fetch_one(&mut *conn).await?)
        })
        .await;
    assert!(matches!(read, Err(DataError::Unavailable(_))), "{read:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    assert_eq!(notes(&db).await.expect("a read reads"), ["one"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_is_used_again_without_an_error() {
    let world = World::start().await;
    let (_, _, db) = tenant_with_notes(&world).await;
    add_note(&db, "one").await.expect("a write writes");
    world
        .cluster
        .primary()
        .restart()
        .await
        .expect("the server restarts");
    assert_eq!(notes(&db).await.expect("a read reads"), ["one"]);
    world
        .cluster
        .primary()
        .restart()
        .await
        .expect("the server restarts");
    add_note(&db, "two").await.expect("a write writes");
    world.end().await;
}

#[tokio::test]
async fn each_kind_of_failure_has_its_own_error() {
    let world = World::start().await;
    let route = world.tenant("acme").await;
    let limits = PoolLimits {
        statement_timeout: Duration::from_millis(200),
        acquire_timeout: Duration::from_millis(500),
        ..limits()
    };
    let pool = world.pool(2, limits);
    let db = TenantDb::new(Arc::clone(&route), pool.clone());
    let answer = |sql: &'static str| {
        let db = db.clone();
        async move {
            db.read(Consistency::Strict, async |mut conn| {
                Ok(conn.execute(sql).await.map(|_| ())?)
            })
            .await
        }
    };
    eventually("the tenant is reached", async || answer("select 1").await.is_ok()).await;

    let slow = answer("select pg_sleep(10)").await;
    assert!(matches!(slow, Err(DataError::StatementTimeout)), "{slow:?}");
    let wrong = answer("select nonsense").await;
    assert!(matches!(wrong, Err(DataError::Sql(_))), "{wrong:?}");

    let taken = pool.acquire(&route).await.expect("it is idle");
    let busy = answer("select 1").await;
    assert!(matches!(busy, Err(DataError::Busy { .. })), "{busy:?}");
    assert!(busy.is_err_and(|error| error.retry_after().is_some()));
    drop(taken);

    let mut admin = world.admin().await;
    run(
        &mut admin,
        format!("drop database {} with (force)", route.uuid.physical_name()),
    )
    .await;
    admin.close().await.expect("the administrator can leave");
    eventually("the tenant is gone", async || {
        matches!(answer("select 1").await, Err(DataError::TenantGone))
    })
    .await;

    world.cluster.primary().stop().await.expect("the server stops");
    let globex = TenantDb::new(pool_support::next_generation(&route), pool);
    let down = globex
        .read(Consistency::Strict, async |mut conn| {
            Ok(conn.execute("select 1").await.map(|_| ())?)
        })
        .await;
    assert!(matches!(down, Err(DataError::Unavailable(_))), "{down:?}");
    assert!(down.is_err_and(|error| error.retry_after().is_some()));
    world.tasks.shut_down(LIMIT).await;
}
