//! Reads cannot write, cost one statement, and see one moment when they ask for it.

mod pool_support;

use std::sync::{Arc, Mutex};

use pool_support::{
    World, eventually,
    notes::{add_note, notes, tenant_with_notes},
};
use sqlx::Executor;
use tenant_management::data::{Consistency, DataError, ReadConnection};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

const LEVELS: [Consistency; 3] = [Consistency::Strict, Consistency::Recent, Consistency::Eventual];

async fn insert(conn: &mut ReadConnection) -> Result<(), DataError> {
    sqlx::query("insert into notes (text) values ('smuggled')")
        .execute(conn)
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_read_cannot_write_on_any_level() {
    let world = World::start().await;
    let (_, _, db) = tenant_with_notes(&world).await;
    // Given: a connection that a write has used before.
    add_note(&db, "written").await.expect("a write writes");
    for level in LEVELS {
        let read = db.read(level, async |mut conn| insert(&mut conn).await).await;
        assert!(matches!(read, Err(DataError::ReadOnlyViolation)), "{read:?}");
        let snapshot = db.snapshot(level, async |mut conn| insert(&mut conn).await).await;
        assert!(
            matches!(snapshot, Err(DataError::ReadOnlyViolation)),
            "{snapshot:?}"
        );
    }
    // And nothing that would make it able to is even sent.
    for sql in [
        "begin read write",
        "set default_transaction_read_only = off",
        "select set_config('default_transaction_read_only', 'off', false)",
        "set transaction read write",
        "select 1; begin read write; insert into notes values ('smuggled'); commit",
        "do $$ begin perform set_config('transaction_read_only', 'off', true); end $$",
    ] {
        let read = db
            .read(Consistency::Strict, async |mut conn| {
                assert_eq!(conn.statements(), 0);
                let answer = conn.execute(sqlx::raw_sql(sql)).await;
                assert_eq!(conn.statements(), 0, "{sql}");
                Ok::<_, DataError>(answer.map(|_| ())?)
            })
            .await;
        assert!(matches!(read, Err(DataError::Misplaced(_))), "{sql}: {read:?}");
    }
    assert_eq!(notes(&db).await.expect("a read reads"), ["written"]);
    world.end().await;
}

/// Keeps the fields of errors that are logged.
#[derive(Clone, Default)]
struct ErrorLog(Arc<Mutex<Vec<String>>>);

impl Subscriber for ErrorLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        struct Fields<'l>(&'l mut Vec<String>);
        impl Visit for Fields<'_> {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0.push(format!("{field}={value:?}"));
            }
        }
        event.record(&mut Fields(&mut self.0.lock().expect("no test panics with it")));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_read_that_tries_to_write_is_logged_with_the_place_of_the_call() {
    let world = World::start().await;
    let (_, _, db) = tenant_with_notes(&world).await;
    let log = ErrorLog::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let before = line!();
    let read = db
        .read(Consistency::Recent, async |mut conn| insert(&mut conn).await)
        .await;
    let after = line!();
    drop(guard);
    assert!(matches!(read, Err(DataError::ReadOnlyViolation)), "{read:?}");
    let fields = log.0.lock().expect("no test panics with it").join(" ");
    let is_named = |line| fields.contains(&format!("tests/data_reads.rs:{line}:"));
    assert!((before..after).any(is_named), "{fields}");
    assert!(fields.contains("tenant.id=\"acme\""), "{fields}");
    world.end().await;
}

#[tokio::test]
async fn a_snapshot_sees_one_moment() {
    let world = World::start().await;
    let (_, _, db) = tenant_with_notes(&world).await;
    let count = "select count(*) from notes";
    let seen = db
        .snapshot(Consistency::Strict, async |mut conn| {
            let before: i64 = sqlx::query_scalar(count).fetch_one(&mut *conn).await?;
            add_note(&db, "in between").await?;
            let after: i64 = sqlx::query_scalar(count).fetch_one(&mut *conn).await?;
            Ok::<_, DataError>((before, after))
        })
        .await;
    assert_eq!(seen.expect("a snapshot reads"), (0, 0));
    let seen = db
        .read(Consistency::Strict, async |mut conn| {
            let before: i64 = sqlx::query_scalar(count).fetch_one(&mut *conn).await?;
            add_note(&db, "in between").await?;
            let after: i64 = sqlx::query_scalar(count).fetch_one(&mut *conn).await?;
            Ok::<_, DataError>((before, after))
        })
        .await;
    assert_eq!(seen.expect("a read reads"), (1, 2));
    world.end().await;
}

#[tokio::test]
async fn a_read_is_one_statement_and_a_write_two_more() {
    // Given: a server that counts statements, and a connection that knows the query.
    let world = World::start_with(&[("log_statement", "all"), ("log_min_duration_statement", "-1")]).await;
    let (route, _, db) = tenant_with_notes(&world).await;
    notes(&db).await.expect("a read reads");
    let logged = || {
        let log =
            std::fs::read_to_string(world.cluster.primary().log_path()).expect("the server keeps a log");
        let of_tenant = format!("{}@", route.uuid.physical_name());
        let statement = |line: &&str| {
            line.contains(&of_tenant) && (line.contains("execute") || line.contains("statement:"))
        };
        log.lines().filter(statement).count()
    };
    // When, then: one statement for a read.
    let before = logged();
    let sent = db
        .read(Consistency::Recent, async |mut conn| {
            let _: Vec<String> = sqlx::query_scalar("select text from notes order by text")
                .fetch_all(&mut *conn)
                .await?;
            Ok::<_, DataError>(conn.statements())
        })
        .await;
    assert_eq!(sent.expect("a read reads"), 1);
    eventually("the statement is logged", async || logged() > before).await;
    assert_eq!(logged() - before, 1);

    // For a write, begin and commit besides its own; `commit` travels with the question whether anything was written.
    let sent = db
        .write(async |mut tx| {
            sqlx::query("insert into notes (text) values ('x')")
                .execute(&mut *tx)
                .await?;
            Ok::<_, DataError>(tx.statements())
        })
        .await;
    assert_eq!(sent.expect("a write writes"), 2);
    eventually("the write is logged", async || logged() - before >= 4).await;
    assert_eq!(logged() - before, 4);
    world.end().await;
}
