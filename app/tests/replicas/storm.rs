//! Many sessions that write and read while replicas stop and go on at random.
//!
//! `STORM_SECONDS` says for how long (default 8); `make soak` takes a minute in a release build and asks for 20,000 reads.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use rand::RngExt;
use reqwest::Method;
use serde_json::json;

use crate::{
    client::{Carry, Client, served_by},
    world::World,
};

const SESSIONS: usize = 32;
const TENANTS: usize = 4;

#[derive(Debug, Default)]
struct Tally {
    reads: AtomicU64,
    stale: AtomicU64,
    on_replicas: AtomicU64,
    refused: AtomicU64,
    ending: AtomicBool,
}

impl Tally {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

async fn random_pause(milliseconds: std::ops::Range<u64>) {
    let pause = rand::rng().random_range(milliseconds);
    tokio::time::sleep(Duration::from_millis(pause)).await;
}

/// Each replica stops and goes on by itself.
async fn stop_and_go(world: &World, tally: &Tally) {
    let replicas = world.cluster.replicas().iter();
    let each = replicas.map(|replica| async move {
        while !tally.ending.load(Ordering::Relaxed) {
            random_pause(20..1200).await;
            replica.pause_replay().await.unwrap();
            random_pause(20..1500).await;
            replica.resume_replay().await.unwrap();
        }
    });
    futures::future::join_all(each).await;
}

async fn session(mut client: Client, tally: Arc<Tally>) {
    let new = json!({ "customer": "Initech", "amount_cents": 1, "currency": "EUR" });
    while !tally.ending.load(Ordering::Relaxed) {
        let answer = client.send(Method::POST, "/invoices", Some(&new)).await;
        if answer.status == 503 {
            Tally::count(&tally.refused);
            continue;
        }
        let id = answer.expect(201)["id"].as_str().unwrap().to_owned();
        // At once, and after a while.
        for wait in [0, 0, 400] {
            if wait > 0 {
                random_pause(0..wait).await;
            }
            let answer = client.get(&format!("/invoices/{id}")).await;
            Tally::count(&tally.reads);
            match answer.status.as_u16() {
                200 => {}
                404 => Tally::count(&tally.stale),
                503 => Tally::count(&tally.refused),
                _ => panic!("{answer:?}"),
            }
            if served_by(&answer).starts_with("replica-") {
                Tally::count(&tally.on_replicas);
            }
        }
    }
}

async fn storm(world: World, seconds: u64) -> Tally {
    let instances = [world.instance().await, world.instance().await];
    let tally = Arc::new(Tally::default());
    let mut sessions = Vec::new();
    let mut keys = Vec::new();
    for tenant in 0..TENANTS {
        keys.push(instances[0].tenant(&format!("tenant-{tenant}")).await);
    }
    for instance in &instances {
        instance.replicas_serve().await;
    }
    for number in 0..SESSIONS {
        let carry = if number % 2 == 0 {
            Carry::Cookie
        } else {
            Carry::Header
        };
        let client = instances[number / 2 % 2].client(&keys[number % TENANTS], carry);
        sessions.push(tokio::spawn(session(client, Arc::clone(&tally))));
    }
    let weather = stop_and_go(&world, &tally);
    let end = async {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        tally.ending.store(true, Ordering::Relaxed);
    };
    tokio::join!(weather, end);
    for session in sessions {
        session.await.unwrap();
    }
    Arc::into_inner(tally).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_read_of_many_sessions_is_stale_while_replicas_stop_and_go() {
    let seconds = number("STORM_SECONDS", 8);
    let tally = storm(World::start().await, seconds).await;
    let [reads, stale, on_replicas, refused] =
        [&tally.reads, &tally.stale, &tally.on_replicas, &tally.refused]
            .map(|counter| counter.load(Ordering::Relaxed));
    println!("{reads} reads in {seconds} s: {stale} stale, {on_replicas} on replicas, {refused} refused");
    assert_eq!(stale, 0);
    assert!(reads >= number("STORM_READS", 500), "{reads} reads");
    assert!(
        on_replicas > reads / 20,
        "{on_replicas} of {reads} reads on replicas"
    );
    assert!(refused <= reads / 10, "{refused} of {reads} refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_short_window_alone_reads_are_stale() {
    let world = World::start().await;
    let world = world.set("reads.mode", "window").set("reads.window", "100ms");
    let tally = storm(world, number("STORM_SECONDS", 8)).await;
    let (reads, stale) = (tally.reads.into_inner(), tally.stale.into_inner());
    println!("{reads} reads with a window of 100 ms: {stale} stale");
    assert!(
        stale > 0,
        "none of {reads} reads was stale: this measurement could not see one"
    );
}
