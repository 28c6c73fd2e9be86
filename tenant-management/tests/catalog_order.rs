//! Changes of the catalog become visible in the order of their revisions: whoever follows by `revision > cursor` misses
//! none, whatever commits at the same time.

mod support;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use sqlx::{Connection, PgConnection};
use support::{World, fresh_name, operator, request};
use tenant_management::NewApiKey;

/// Writers create API keys, each of which takes a revision; readers follow with a cursor of their own.
#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_never_skips_a_change() {
    let world = Arc::new(World::start().await);
    let tenancy = world.instance(world.wishes()).await;
    let tenant = tenancy
        .control()
        .create_tenant(&request(&fresh_name()), &operator())
        .await
        .unwrap()
        .value;
    let stopped = Arc::new(AtomicBool::new(false));
    let least = std::env::var("ORDER_SECONDS")
        .map_or(Duration::ZERO, |text| Duration::from_secs(text.parse().unwrap()));
    let begun = Instant::now();

    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (world, stopped) = (Arc::clone(&world), Arc::clone(&stopped));
            tokio::spawn(async move {
                let mut catalog = PgConnection::connect_with(&world.catalog).await.unwrap();
                let (mut cursor, mut seen) = (0_i64, BTreeSet::new());
                loop {
                    let last_round = stopped.load(Ordering::SeqCst);
                    let changed: Vec<(i64,)> =
                        sqlx::query_as("select revision from api_keys where revision > $1 order by revision")
                            .bind(cursor)
                            .fetch_all(&mut catalog)
                            .await
                            .unwrap();
                    seen.extend(changed.iter().map(|row| row.0));
                    cursor = changed.last().map_or(cursor, |row| row.0);
                    if last_round {
                        return seen;
                    }
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (tenancy, tenant) = (tenancy.clone(), tenant.uuid);
            tokio::spawn(async move {
                let mut written = 0;
                while written < 50 || begun.elapsed() < least {
                    let index = written;
                    written += 1;
                    let key = NewApiKey {
                        id: format!("key-{writer}-{index}"),
                        name: "a key".to_owned(),
                        role: tenant_management::Role::Viewer,
                        secret_sha256: [0; 32],
                        expires_at: None,
                    };
                    tenancy
                        .control()
                        .create_api_key(tenant, &key, &operator())
                        .await
                        .unwrap();
                }
                written
            })
        })
        .collect();
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    stopped.store(true, Ordering::SeqCst);

    let mut catalog = PgConnection::connect_with(&world.catalog).await.unwrap();
    let all: Vec<(i64,)> = sqlx::query_as("select revision from api_keys")
        .fetch_all(&mut catalog)
        .await
        .unwrap();
    let all: BTreeSet<_> = all.into_iter().map(|row| row.0).collect();
    println!("{written} changes in {:?}", begun.elapsed());
    assert_eq!(all.len(), written, "each change has a revision of its own");
    for reader in readers {
        assert_eq!(reader.await.unwrap(), all);
    }
}

/// An instance of which no word and no timer has made one that knows learns of a tenant when it is first asked for it.
#[tokio::test(flavor = "multi_thread")]
async fn another_instance_serves_a_new_tenant_at_its_first_request() {
    let world = World::start().await;
    let wishes = world.wishes().told_nothing();
    let (one, other) = (world.instance(wishes.clone()).await, world.instance(wishes).await);
    let acme = request("acme").id;
    assert!(
        other.resolve(&acme).await.is_err(),
        "and remembers that it is unknown"
    );

    let created = one
        .control()
        .create_tenant(&request("acme"), &operator())
        .await
        .unwrap();
    assert_eq!(created.propagation.live_instances, 2);
    assert_eq!(
        created.propagation.pending,
        [other.instance()],
        "nobody has told the other one"
    );

    let elsewhere = one
        .control()
        .create_tenant(&request("globex"), &operator())
        .await
        .unwrap();
    let route = other
        .resolve(&elsewhere.value.id)
        .await
        .expect("found by a look-up");
    assert_eq!(route.uuid, elsewhere.value.uuid);
    assert_eq!(other.resolve_uuid(created.value.uuid).await.unwrap().tenant, acme);
}

/// Names that nobody has are asked for once, and not again and again.
#[tokio::test(flavor = "multi_thread")]
async fn misses_share_a_look_up_and_are_remembered() {
    let world = World::start().await;
    let tenancy = world.instance(world.wishes()).await;
    let asks = (0..200).map(|_| {
        let tenancy = tenancy.clone();
        tokio::spawn(async move { tenancy.resolve(&request("nobody").id).await.is_err() })
    });
    for unknown in futures::future::join_all(asks).await {
        assert!(unknown.unwrap());
    }
    assert!(tenancy.resolve(&request("nobody").id).await.is_err());

    let log = std::fs::read_to_string(world.cluster.primary().log_path()).unwrap();
    let look_ups = log
        .lines()
        .filter(|line| line.contains("t.slug = $1 or t.uuid = $2"))
        .count();
    assert_eq!(look_ups, 1, "201 questions for one name");
}
