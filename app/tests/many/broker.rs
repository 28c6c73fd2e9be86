//! A broker that stops, was never there, refuses, is cut off, or takes no messages: requests do not notice, and instances agree.

use std::time::{Duration, Instant};

use sandbox::Broker;

use crate::{
    instance::Instance,
    world::{Way, World, eventually, from_environment, shared_broker},
};

/// With a lost word there is a renewal of the lease, each second, within the wait of the answer.
async fn provisions_and_agrees(instances: &[Instance], tenants: std::ops::Range<u32>, prefix: &str) {
    for number in tenants {
        let tenant = format!("{prefix}-{number}");
        let asked = &instances[number as usize % instances.len()];
        let begun = Instant::now();
        let created = asked.create(&tenant).await;
        assert_eq!(created.status, 201, "{created:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        let key = asked.key(&tenant).await;
        for instance in instances {
            let me = instance.whoami(&key).await;
            assert_eq!(
                (me.status, &me.body["database_tenant"]),
                (200, &created.body["uuid"]),
                "{me:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_goes_and_comes_back_while_tenants_are_created() {
    let away = Duration::from_secs(from_environment("AWAY_SECONDS", 8));
    let broker = Broker::builder().start().await.unwrap();
    let world = World::new(Way::Broker(broker.url())).await;
    let instances = world.instances(3).await;
    provisions_and_agrees(&instances, 0..3, "before").await;
    broker.stop().await.unwrap();
    let begun = Instant::now();
    let mut number = 0;
    while begun.elapsed() < away {
        provisions_and_agrees(&instances, number..number + 1, "without").await;
        number += 1;
    }
    for instance in &instances {
        let part = instance.part("events").await;
        assert_eq!(
            (&part["ready"], &part["essential"]),
            (&false.into(), &false.into()),
            "{part}"
        );
    }
    broker.start().await.unwrap();
    for instance in &instances {
        instance.hears().await;
    }
    provisions_and_agrees(&instances, 0..3, "after").await;
    let lines = instances[0].lines_with("Changes of other instances are not heard of at once");
    assert!((1..10).contains(&lines), "{lines} lines:\n{}", instances[0].log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_said_clearly_and_not_over_and_over() {
    let url = shared_broker()
        .url()
        .replacen(":", ":wrong-", 2)
        .replacen("amqp:wrong-", "amqp:", 1);
    let world = World::new(Way::Broker(url)).await;
    let mut instance = world.begin(&[]);
    instance.answers().await;
    eventually("it is said", async || instance.lines_with("ACCESS_REFUSED") > 0).await;
    provisions_and_agrees(std::slice::from_ref(&instance), 0..3, "all-the-same").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(instance.lines_with("ACCESS_REFUSED") <= 4, "{}", instance.log());
    assert!(
        !instance.log().contains("wrong-"),
        "the password stays out of the log"
    );
    let part = instance.part("events").await;
    assert!(
        part["problem"].as_str().unwrap().contains("ACCESS_REFUSED"),
        "{part}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_was_never_there_holds_no_start_up() {
    let world = World::new(Way::Broker("amqp://guest:guest@127.0.0.1:1/%2f".to_owned())).await;
    let instances = [world.instance().await, world.instance().await];
    provisions_and_agrees(&instances, 0..3, "alone").await;
    let part = instances[1].part("events").await;
    assert!(
        part["problem"]
            .as_str()
            .unwrap()
            .contains("127.0.0.1:1 cannot be reached"),
        "{part}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut_while_word_is_under_way() {
    let broker = shared_broker();
    let proxy = broker.proxy().await.unwrap();
    let world = World::new(Way::Broker(proxy.url())).await;
    let instances = world.instances(2).await;
    for round in 0..4 {
        let creating = provisions_and_agrees(&instances, round..round + 1, "cut");
        let cutting = async {
            // Somewhere between the commit and the confirmation, a little later each time.
            tokio::time::sleep(Duration::from_millis(3 * u64::from(round))).await;
            proxy.cut().await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            proxy.restore().await;
        };
        tokio::join!(creating, cutting);
    }
    for instance in &instances {
        instance.hears().await;
    }
    provisions_and_agrees(&instances, 10..12, "whole").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_short_of_memory_takes_no_word_and_stops_nobody() {
    let broker = Broker::builder().start().await.unwrap();
    let world = World::new(Way::Broker(broker.url())).await;
    let instances = world.instances(2).await;
    provisions_and_agrees(&instances, 0..2, "before").await;
    broker.memory_alarm(true).await.unwrap();
    provisions_and_agrees(&instances, 0..4, "during").await;
    broker.memory_alarm(false).await.unwrap();
    for instance in &instances {
        instance.hears().await;
    }
    provisions_and_agrees(&instances, 0..2, "after").await;
}
