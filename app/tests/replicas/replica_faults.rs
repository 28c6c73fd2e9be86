//! A replica that fails under a read, and a tenant that goes away under one.

use std::time::Duration;

use read_your_writes::{Consistency, Session};
use sandbox::Cluster;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};
use tenant_management::{
    TenantDb, TenantId,
    data::{DataError, ReadConnection},
};

use crate::{
    client::{Carry, Client},
    common::eventually,
    world::{Instance, World},
};

async fn db(instance: &Instance, tenant: &str, session: Session) -> TenantDb {
    let tenancy = instance.service.tenancy();
    let route = tenancy
        .resolve(&TenantId::parse_reference(tenant).unwrap())
        .await
        .unwrap();
    tenancy.db(route, session).unwrap()
}

/// Counts invoices, and takes its time.
async fn slow_count(conn: &mut ReadConnection) -> Result<i64, DataError> {
    let row = sqlx::query("select count(*) as n from invoices, pg_sleep(2)")
        .fetch_one(conn)
        .await?;
    Ok(row.try_get("n")?)
}

async fn on_primary(world: &World, database: &str, statement: &str) {
    let options = world.cluster.primary().connect_options(database);
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    connection.execute(AssertSqlSafe(statement)).await.unwrap();
    connection.close().await.unwrap();
}

/// Waits until a replica works on such a statement.
async fn runs_on_a_replica(world: &World, part: &str) {
    eventually(&format!("{part} runs on a replica"), || async {
        for replica in world.cluster.replicas() {
            let options = replica.connect_options("postgres");
            let mut connection = PgConnection::connect_with(&options).await.unwrap();
            let running: i64 = sqlx::query_scalar(
                "select count(*) from pg_stat_activity where state = 'active' and query like $1 and pid <> pg_backend_pid()",
            )
            .bind(format!("%{part}%"))
            .fetch_one(&mut connection)
            .await
            .unwrap();
            if running > 0 {
                return true;
            }
        }
        false
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_replay_cancels_is_answered_by_the_primary() {
    // Cancelled as soon as it is in the way.
    let builder = Cluster::builder()
        .replicas(1)
        .setting("max_standby_streaming_delay", "0");
    let world = World::with(builder).await;
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    instance.eligible(&["replica-1"], true).await;
    let mut client = instance.client(&key, Carry::Header);
    for _ in 0..3 {
        client.invoice("Initech").await;
    }
    world.cluster.wait_caught_up().await.unwrap();
    let session = Session::default();
    let db = db(&instance, "acme", session.clone()).await;
    let database = db.uuid().physical_name();
    let reading = tokio::spawn(async move {
        db.read(Consistency::Recent, async |mut conn| slow_count(&mut conn).await)
            .await
    });
    runs_on_a_replica(&world, "pg_sleep(2)").await;
    on_primary(&world, &database, "update invoices set customer = 'Hooli'").await;
    on_primary(&world, &database, "vacuum (freeze, index_cleanup on) invoices").await;
    assert_eq!(reading.await.unwrap().unwrap(), 3);
    let served: Vec<_> = session
        .summary()
        .served
        .iter()
        .map(|by| by.as_str().to_owned())
        .collect();
    assert_eq!(served, ["primary"]);
    let cancelled = instance
        .metric("tenantry_reads_total", &["reason=\"cancelled\""])
        .await;
    assert!(cancelled >= 1.0);
    assert!(
        instance.is_eligible("replica-1").await,
        "the replica has done nothing wrong"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_on_a_replica_that_freezes_or_dies_is_answered_by_the_primary() {
    let world = World::with(Cluster::builder().replicas(1)).await;
    let instance = world.instance().await;
    instance.tenant("acme").await;
    for freeze in [true, false] {
        instance.eligible(&["replica-1"], true).await;
        let db = db(&instance, "acme", Session::default()).await;
        let reading = tokio::spawn(async move {
            db.read(Consistency::Eventual, async |mut conn| {
                slow_count(&mut conn).await
            })
            .await
        });
        runs_on_a_replica(&world, "pg_sleep(2)").await;
        let replica = world.replica(0);
        if freeze {
            replica.freeze().await.unwrap();
        } else {
            replica.kill().await.unwrap();
        }
        let answer = tokio::time::timeout(Duration::from_secs(15), reading).await;
        assert_eq!(
            answer
                .expect("nobody waits for a frozen server")
                .unwrap()
                .unwrap(),
            0
        );
        if freeze {
            replica.thaw().await.unwrap();
        } else {
            replica.start().await.unwrap();
        }
    }
    instance.eligible(&["replica-1"], true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_not_on_the_replicas_yet_is_served_by_the_primary() {
    let world = World::start().await;
    let instance = world.instance().await;
    instance.replicas_serve().await;
    world.pause().await;
    let key = instance.tenant("acme").await;
    // Without a position: the client that asks is not the one that has made the tenant.
    let mut client = instance.client(&key, Carry::Nothing);
    for _ in 0..5 {
        let answer = client.get("/whoami").await;
        answer.expect(200);
        assert_eq!(crate::client::served_by(&answer), "primary");
    }
    world.resume().await;
    eventually("replicas serve the new tenant", || {
        let mut client: Client = client.clone();
        async move { client.list().await.1.starts_with("replica-") }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_dropped_under_a_read_takes_no_node_along() {
    let world = World::start().await;
    let instance = world.instance().await;
    let other = instance.tenant("globex").await;
    instance.tenant("acme").await;
    instance.replicas_serve().await;
    world.cluster.wait_caught_up().await.unwrap();
    let db = db(&instance, "acme", Session::default()).await;
    let database = db.uuid().physical_name();
    let reader = db.clone();
    let reading = tokio::spawn(async move {
        reader
            .read(Consistency::Eventual, async |mut conn| {
                slow_count(&mut conn).await
            })
            .await
    });
    runs_on_a_replica(&world, "pg_sleep(2)").await;
    on_primary(
        &world,
        "postgres",
        &format!("drop database {database} with (force)"),
    )
    .await;
    let ended = reading.await.unwrap();
    assert!(matches!(ended, Err(DataError::TenantGone)), "{ended:?}");
    let again = db
        .read(Consistency::Eventual, async |mut conn| {
            slow_count(&mut conn).await
        })
        .await;
    assert!(matches!(again, Err(DataError::TenantGone)), "{again:?}");
    for node in ["replica-1", "replica-2"] {
        assert!(instance.is_eligible(node).await);
    }
    let mut client = instance.client(&other, Carry::Nothing);
    assert!(client.list().await.1.starts_with("replica-"));
}
