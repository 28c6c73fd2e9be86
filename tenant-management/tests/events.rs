//! Instances hear of each other's changes at once, by either way; and what word does not bring, something else does.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use lapin::{
    BasicProperties, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};
use sandbox::Broker;
use sqlx::Executor;
use support::{Wishes, World, eventually, fresh_name, operator, request};
use tenant_management::{BrokerSettings, FollowSettings, Tenancy, TenantId};

/// The broker of this process. It lives on a runtime of its own, since each test's runtime ends with the test.
fn broker() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(|| {
        let start = || {
            let runtime = Box::leak(Box::new(
                tokio::runtime::Runtime::new().expect("a runtime starts"),
            ));
            runtime
                .block_on(Broker::builder().start())
                .expect("a broker starts")
        };
        std::thread::spawn(start)
            .join()
            .expect("the broker's thread does not panic")
    })
}

/// The shared broker, with an exchange for one test.
fn exchange(name: &str) -> BrokerSettings {
    BrokerSettings::new(&broker().url().into(), name).unwrap()
}

async fn instances(world: &World, wishes: &Wishes, count: usize) -> Vec<Tenancy> {
    let mut instances = Vec::new();
    for _ in 0..count {
        instances.push(world.instance(wishes.clone()).await);
    }
    instances
}

async fn shut_down(instances: Vec<Tenancy>) {
    for instance in instances {
        instance.shut_down(Duration::from_secs(5)).await;
    }
}

fn id(name: &str) -> TenantId {
    TenantId::parse_reference(name).unwrap()
}

/// Until every instance hears: before that, word goes to nobody.
async fn all_hear(instances: &[Tenancy]) {
    for instance in instances {
        eventually("it hears", async || problem(instance).await.is_none()).await;
    }
}

async fn problem(instance: &Tenancy) -> Option<String> {
    let parts = instance.readiness().await;
    parts
        .into_iter()
        .find(|part| part.part == "events")
        .unwrap()
        .problem
}

/// Each of some creations is in every table before it is answered.
async fn every_table_has_each_tenant_when_it_is_answered(instances: &[Tenancy]) {
    let mut waited = Vec::new();
    for round in 0..10 {
        let name = fresh_name();
        let begun = Instant::now();
        let control = instances[round % instances.len()].control();
        let created = control.create_tenant(&request(&name), &operator()).await.unwrap();
        waited.push(begun.elapsed());
        let propagation = &created.propagation;
        let everybody = u32::try_from(instances.len()).unwrap();
        assert_eq!(
            (propagation.live_instances, propagation.applied_instances),
            (everybody, everybody)
        );
        assert!(propagation.pending.is_empty());
        for instance in instances {
            // In the table: nobody had to be asked.
            assert!(instance.table().get(&id(&name)).is_some());
        }
        let control = instances[(round + 1) % instances.len()].control();
        let suspended = control.suspend_tenant(&id(&name), &operator()).await.unwrap();
        assert!(suspended.newly && suspended.propagation.pending.is_empty());
        for instance in instances {
            assert_eq!(
                instance.table().get(&id(&name)).unwrap().state.as_str(),
                "SUSPENDED"
            );
        }
    }
    waited.sort();
    println!(
        "{:?} in the middle, {:?} at most",
        waited[waited.len() / 2],
        waited.last().unwrap()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn by_the_catalog_every_instance_knows_before_the_answer() {
    let world = World::start().await;
    let instances = instances(&world, &world.wishes().without_timers(), 3).await;
    all_hear(&instances).await;
    every_table_has_each_tenant_when_it_is_answered(&instances).await;
    shut_down(instances).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_a_broker_every_instance_knows_before_the_answer() {
    let world = World::start().await;
    let wishes = world
        .wishes()
        .without_timers()
        .with_broker(exchange("every-instance"));
    let instances = instances(&world, &wishes, 3).await;
    all_hear(&instances).await;
    every_table_has_each_tenant_when_it_is_answered(&instances).await;
    let queues = broker().queues().await.unwrap();
    assert!(
        queues
            .iter()
            .all(|queue| queue.exclusive && queue.auto_delete && !queue.durable),
        "{queues:?}"
    );
    shut_down(instances).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_lost_its_connection_to_the_catalog_listens_again_and_misses_nothing() {
    let world = World::start().await;
    let instances = instances(&world, &world.wishes().without_timers(), 2).await;
    let mut admin = world.admin("postgres").await;
    for _ in 0..3 {
        admin
            .execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tenantry/catalog'")
            .await
            .unwrap();
        let name = fresh_name();
        // The first attempt may run into one of the connections that have ended.
        eventually("a tenant is created", async || {
            let control = instances[0].control();
            control.create_tenant(&request(&name), &operator()).await.is_ok()
        })
        .await;
        eventually("the other instance has heard of it", async || {
            instances[1].table().get(&id(&name)).is_some()
        })
        .await;
    }
    shut_down(instances).await;
}

/// Word that comes again and again, late, out of order, of revisions that do not exist, and that is no word.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_broker_delivers_only_the_catalog_is_believed() {
    let world = World::start().await;
    let wishes = world.wishes().without_timers().with_broker(exchange("nonsense"));
    let instances = instances(&world, &wishes, 2).await;
    all_hear(&instances).await;
    let connection = Connection::connect(&broker().url(), ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await
        .unwrap();
    let nonsense: [&[u8]; 7] = [
        b"3",
        b"2",
        b"2",
        b"9223372036854775807",
        b"-1",
        b"",
        &[0xff; 2000],
    ];
    for round in 0..3 {
        for body in nonsense {
            let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
            let sent = channel.basic_publish(
                "nonsense".into(),
                "catalog.revision".into(),
                options,
                body,
                properties,
            );
            sent.await.unwrap().await.unwrap();
        }
        let name = fresh_name();
        let control = instances[round % 2].control();
        let created = control.create_tenant(&request(&name), &operator()).await.unwrap();
        assert!(
            created.propagation.pending.is_empty(),
            "{:?}",
            created.propagation
        );
        let revisions: Vec<_> = instances
            .iter()
            .map(|instance| instance.table().revision())
            .collect();
        assert_eq!(revisions[0], revisions[1]);
        assert_eq!(
            created.value.revision.0,
            world.count("select revision from catalog_revision").await
        );
        for instance in &instances {
            assert_eq!(problem(instance).await, None);
            assert_eq!(instance.table().get(&id(&name)).unwrap().uuid, created.value.uuid);
        }
    }
    shut_down(instances).await;
}

/// The broker is up, and every message goes nowhere: renewing the lease finds what changed.
#[tokio::test(flavor = "multi_thread")]
async fn when_all_word_is_dropped_renewing_the_lease_brings_the_news() {
    let world = World::start().await;
    let mut wishes = world.wishes().without_timers();
    wishes.follow.renew = FollowSettings::default().renew;
    let one = world.instance(wishes.clone().with_broker(exchange("here"))).await;
    let other = world.instance(wishes.with_broker(exchange("elsewhere"))).await;
    for _ in 0..3 {
        let name = fresh_name();
        let created = one
            .control()
            .create_tenant(&request(&name), &operator())
            .await
            .unwrap();
        assert!(
            created.propagation.pending.is_empty(),
            "within the wait of the answer"
        );
        assert!(other.table().get(&id(&name)).is_some());
    }
    shut_down(vec![one, other]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_not_there_is_reported_and_holds_nobody_up() {
    let world = World::start().await;
    let instance = world.instance(world.wishes().told_nothing()).await;
    eventually("it is reported", async || {
        problem(&instance)
            .await
            .is_some_and(|problem| problem.contains("127.0.0.1:1 cannot be reached"))
    })
    .await;
    let begun = Instant::now();
    let created = instance
        .control()
        .create_tenant(&request(&fresh_name()), &operator())
        .await
        .unwrap();
    assert!(created.propagation.pending.is_empty());
    println!("created in {:?}", begun.elapsed());
    shut_down(vec![instance]).await;
}

/// The broker's certificate is signed by an authority that no system knows.
#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_broker_is_trusted_by_its_authority_alone() {
    let world = World::start().await;
    let broker = Broker::builder().tls(true).start().await.unwrap();
    let settings = BrokerSettings::new(&broker.tls_url().into(), "encrypted").unwrap();
    let stranger = world
        .instance(world.wishes().without_timers().with_broker(settings.clone()))
        .await;
    eventually("the unknown authority is reported", async || {
        problem(&stranger)
            .await
            .is_some_and(|problem| problem.contains("cannot be reached"))
    })
    .await;
    shut_down(vec![stranger]).await;

    let trusting = settings.trusting(broker.ca_certificate().unwrap().to_owned());
    let wishes = world.wishes().without_timers().with_broker(trusting);
    let instances = instances(&world, &wishes, 2).await;
    all_hear(&instances).await;
    every_table_has_each_tenant_when_it_is_answered(&instances).await;
    shut_down(instances).await;
}
