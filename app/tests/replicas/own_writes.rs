//! Nobody sees a state from before their own write: by cookie and by header, across instances, whatever replicas do.

use reqwest::Method;
use serde_json::json;

use crate::{
    client::{Carry, Client, served_by},
    common::eventually,
    world::{Instance, World},
};

/// Everything a user does after a write, on two instances in turn: what was written is there, and `served` served it.
async fn sees_its_writes(client: &mut Client, instances: &[Instance; 2], served: &[&str]) {
    let customer = "Initech";
    let mut known = Vec::new();
    for round in 0..4 {
        client.go_to(&instances[round % 2]);
        let id = client.invoice(customer).await;
        known.push(id.clone());
        client.go_to(&instances[(round + 1) % 2]);
        let (listed, by) = client.list().await;
        assert!(
            known.iter().all(|id| listed.contains(id)),
            "round {round}, by {by}: {listed:?}"
        );
        assert!(
            served.contains(&by.as_str()),
            "the list came from {by}, not from {served:?}"
        );
        let answer = client.get(&format!("/invoices/{id}")).await;
        answer.expect(200);
        assert!(served.contains(&served_by(&answer).as_str()), "{answer:?}");

        client.go_to(&instances[round % 2]);
        let setting = json!({ "include_today": round % 2 == 0 });
        client
            .send(Method::PUT, "/reports/settings", Some(&setting))
            .await
            .expect(200);
        client.go_to(&instances[(round + 1) % 2]);
        let answer = client.get("/reports/monthly").await;
        assert_eq!(answer.expect(200)["include_today"], setting["include_today"]);
        assert!(served.contains(&served_by(&answer).as_str()), "{answer:?}");
        let profile =
            json!({ "display_name": format!("Round {round}"), "notification_email": "a@example.com" });
        client
            .send(Method::PUT, "/profile", Some(&profile))
            .await
            .expect(200);
        let answer = client.get("/profile").await;
        assert_eq!(answer.expect(200)["display_name"], profile["display_name"]);
        assert!(served.contains(&served_by(&answer).as_str()), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_replay_paused_and_resumed_nothing_is_ever_missing() {
    let world = World::start().await;
    let instances = [world.instance().await, world.instance().await];
    let key = instances[0].tenant("acme").await;
    for carry in [Carry::Cookie, Carry::Header] {
        let mut client = instances[0].client(&key, carry);
        for instance in &instances {
            instance.replicas_serve().await;
        }
        world.pause().await;
        sees_its_writes(&mut client, &instances, &["primary"]).await;
        assert!(client.token.is_some());

        world.replica(0).resume_replay().await.unwrap();
        world
            .replica(0)
            .wait_for_replay(&world.cluster.primary().current_lsn().await.unwrap())
            .await
            .unwrap();
        for instance in &instances {
            instance.eligible(&["replica-1"], true).await;
        }
        for instance in &instances {
            client.go_to(instance);
            eventually("one replica has caught up and serves", || {
                let mut client = client.clone();
                async move { client.list().await.1 == "replica-1" }
            })
            .await;
        }
        for round in 0..20 {
            client.go_to(&instances[round % 2]);
            let (listed, by) = client.list().await;
            assert_eq!(
                (by.as_str(), listed.len() >= 4),
                ("replica-1", true),
                "round {round}"
            );
        }

        world.replica(1).resume_replay().await.unwrap();
        for instance in &instances {
            instance.replicas_serve().await;
        }
        for instance in &instances {
            client.go_to(instance);
            eventually("replicas serve and the position is gone", || {
                let mut client = client.clone();
                async move {
                    let (_, by) = client.list().await;
                    by.starts_with("replica-") && client.token.is_none()
                }
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_position_a_client_sees_the_past() {
    // What the tests above would see if positions were not carried: they can fail.
    // Time enough for a machine that runs all tests at once.
    let world = World::start().await.set("reads.max_staleness", "20s");
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    let mut client = instance.client(&key, Carry::Nothing);
    client.invoice("Initech").await;
    world.cluster.wait_caught_up().await.unwrap();
    instance.replicas_serve().await;
    world.pause().await;
    let id = client.invoice("Initech").await;
    let (listed, by) = client.list().await;
    assert!(!listed.contains(&id) && by.starts_with("replica-"), "{by}");
    client
        .get(&format!("/invoices/{id}"))
        .await
        .problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_repeated_because_its_answer_was_lost_is_seen() {
    let world = World::start().await;
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    world.cluster.wait_caught_up().await.unwrap();
    instance.replicas_serve().await;
    world.pause().await;
    let mut client = instance.client(&key, Carry::Cookie);
    let new = json!({ "customer": "Initech", "amount_cents": 1, "currency": "EUR" });
    let lost = client.send_keyed("/invoices", &new, "once").await.expect(201);
    let again = client.send_keyed("/invoices", &new, "once").await;
    assert_eq!(again.expect(201)["id"], lost["id"]);
    client.take(&again);
    let (listed, by) = client.list().await;
    assert!(
        listed.contains(&lost["id"].as_str().unwrap().to_owned()),
        "by {by}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn eventual_reads_stay_on_replicas_and_strict_ones_on_the_primary() {
    // Time enough for a machine that runs all tests at once.
    let world = World::start().await.set("reads.max_staleness", "20s");
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    instance.replicas_serve().await;
    let mut client = instance.client(&key, Carry::Cookie);
    let id = client.invoice("Initech").await;
    world.pause().await;
    let answer = client.get("/audit-log").await;
    answer.expect(200);
    assert!(served_by(&answer).starts_with("replica-"), "{answer:?}");
    let staleness: u64 = answer.header("tenantry-staleness-ms").parse().unwrap();
    assert!(staleness <= 20_000, "{staleness}");
    let payment = json!({ "invoice_id": id, "amount_cents": 1, "reference": "p-1" });
    let answer = client
        .send(Method::POST, "/webhooks/payments", Some(&payment))
        .await;
    answer.expect(200);
    assert_eq!(served_by(&answer), "primary");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_writes_at_once_are_both_seen_whichever_answer_arrives_last() {
    let world = World::start().await;
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    for carry in [Carry::Cookie, Carry::Header] {
        for (round, reversed) in [false, true, false, true, false, true].into_iter().enumerate() {
            world.resume().await;
            instance.replicas_serve().await;
            let mut client = instance.client(&key, carry);
            if round >= 2 {
                // A session that has written before.
                client.invoice("Initech").await;
            }
            world.pause().await;
            let new = json!({ "customer": "Globex", "amount_cents": 1, "currency": "EUR" });
            let (one, other) = tokio::join!(
                client.send_only(Method::POST, "/invoices", Some(&new)),
                client.send_only(Method::POST, "/invoices", Some(&new)),
            );
            let ids = [one.expect(201)["id"].clone(), other.expect(201)["id"].clone()];
            let mut answers = [one, other];
            if reversed {
                answers.reverse();
            }
            for answer in &answers {
                client.take(answer);
            }
            let (listed, by) = client.list().await;
            for id in &ids {
                let id = id.as_str().unwrap().to_owned();
                assert!(listed.contains(&id), "{carry:?}, reversed {reversed}, by {by}");
            }
        }
    }
}
