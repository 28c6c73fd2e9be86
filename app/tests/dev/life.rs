//! From the first start to the last trace.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::harness::{Dev, get, program, text};

async fn create_invoice(ready: &Value, key: &Value) -> Value {
    let url = format!("{}/v1/invoices", ready["api_url"].as_str().unwrap());
    let invoice = json!({ "customer": "Initech", "amount_cents": 100, "currency": "EUR" });
    let request = reqwest::Client::new()
        .post(url)
        .bearer_auth(key.as_str().unwrap())
        .json(&invoice);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
    answer.json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_replicas_is_what_the_service_sees() {
    let mut dev = Dev::new();
    for replicas in ["0", "2"] {
        dev.start(&["--replicas", replicas]);
        let ready = dev.ready().await;
        let (status, cluster) = get(&ready, "/control/v1/clusters/main", &ready["operator_token"]).await;
        let nodes = cluster["nodes"].as_array().unwrap();
        let seen: Vec<_> = nodes
            .iter()
            .map(|node| node["address"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(
            (status, nodes.len().to_string()),
            (200, (replicas.parse::<usize>().unwrap() + 1).to_string())
        );
        for url in ready["replica_urls"].as_array().unwrap() {
            assert!(
                seen.iter().any(|address| url.as_str().unwrap().contains(address)),
                "{url} in {seen:?}"
            );
        }
        dev.signal("INT");
        dev.ended().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_again_on_the_same_data_and_leaves_nothing_behind() {
    let mut dev = Dev::new();
    dev.start(&[]);
    let ready = dev.ready().await;

    // What is written is private, and works.
    for name in ["dev.json", "tenantry.toml", "memory.json"] {
        let mode = fs::metadata(dev.data().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(ready["replica_urls"].as_array().unwrap().len(), 1);
    assert_eq!(
        ready["config"],
        dev.data()
            .canonicalize()
            .unwrap()
            .join("tenantry.toml")
            .to_str()
            .unwrap()
    );
    for tenant in ["acme", "globex"] {
        let (status, who) = get(&ready, "/v1/whoami", &ready["tenants"][tenant]).await;
        assert_eq!(
            (status, &who["tenant"], &who["uuid"]),
            (200, &json!(tenant), &who["database_tenant"])
        );
    }
    assert!(
        dev.log().contains("/v1/whoami -H 'Authorization: Bearer tnt_"),
        "{}",
        dev.log()
    );
    let invoice = create_invoice(&ready, &ready["tenants"]["acme"]).await;

    // A second start in the same folder is refused in words, and the first goes on.
    let second = program()
        .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dev.data())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text(&second.stderr).contains("--data-dir"),
        "{}",
        text(&second.stderr)
    );

    dev.signal("KILL");
    dev.ended().await;
    fs::remove_file(dev.data().join("dev.json")).unwrap();
    dev.start(&[]);
    let again = dev.ready().await;
    for same in [
        "operator_token",
        "tenants",
        "primary_url",
        "catalog_url",
        "replica_urls",
    ] {
        assert_eq!(again[same], ready[same], "{same}");
    }
    let id = invoice["id"].as_str().unwrap();
    let (status, found) = get(&again, &format!("/v1/invoices/{id}"), &again["tenants"]["acme"]).await;
    assert_eq!((status, &found), (200, &invoice));
    let (status, _) = get(&again, &format!("/v1/invoices/{id}"), &again["tenants"]["globex"]).await;
    assert_eq!(status, 404);

    dev.signal("INT");
    assert!(dev.ended().await.success(), "{}", dev.log());
    assert!(
        !dev.data().join("dev.json").exists(),
        "what has stopped is not ready"
    );
    dev.nothing_left().await;

    // Forgetting is thorough.
    dev.start(&["--reset", "--replicas", "0", "--operator-token", "chosen-token"]);
    let fresh = dev.ready().await;
    assert_eq!(
        (&fresh["operator_token"], &fresh["replica_urls"]),
        (&json!("chosen-token"), &json!([]))
    );
    assert_ne!(fresh["tenants"], ready["tenants"]);
    let (status, invoices) = get(&fresh, "/v1/invoices", &fresh["tenants"]["acme"]).await;
    assert_eq!(
        (status, invoices),
        (200, json!({ "items": [], "next_cursor": null }))
    );
    dev.signal("TERM");
    assert!(dev.ended().await.success(), "{}", dev.log());
    dev.nothing_left().await;
}

#[tokio::test]
async fn an_address_that_is_taken_is_noticed_first() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = program()
        .args(["dev", "--listen", &address, "--data-dir"])
        .arg(folder.path().join("data"))
        .output();
    let refused = refused.unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("--listen 127.0.0.1:0"),
        "{}",
        text(&refused.stderr)
    );
    assert!(!folder.path().join("data/postgres").exists(), "nothing was begun");
}

#[tokio::test]
async fn without_postgresql_it_says_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let refused = program()
        .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .env("PG_BIN", folder.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("PG_BIN") || text(&refused.stderr).contains("apt-get"),
        "{}",
        text(&refused.stderr)
    );
}
