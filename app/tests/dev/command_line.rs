//! The command line against a running service.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::harness::{Dev, LIMIT, get, program, tenantry, text};

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_does_what_the_api_does() {
    let mut dev = Dev::new();
    dev.start(&["--replicas", "0"]);
    let ready = dev.ready().await;

    // Tenants.
    let create = [
        "tenants",
        "create",
        "initech",
        "--display-name",
        "Initech GmbH",
        "--region",
        "eu",
        "--label",
        "tier=gold",
    ];
    let created = tenantry(&ready, &[&create[..], &["--output", "json"]].concat());
    assert_eq!(created.status.code(), Some(0), "{}", text(&created.stderr));
    let tenant: Value = serde_json::from_slice(&created.stdout).unwrap();
    assert_eq!(
        (&tenant["state"], &tenant["labels"]),
        (&json!("CREATED"), &json!({ "tier": "gold" }))
    );
    assert_eq!(
        tenantry(&ready, &create).status.code(),
        Some(0),
        "the same again is no error"
    );

    let listed = tenantry(&ready, &["tenants", "list", "--label", "tier=gold", "-o", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["uuid"], tenant["uuid"]);
    let table = tenantry(&ready, &["tenants", "list"]);
    let table = text(&table.stdout);
    assert!(
        table.starts_with("ID ") && table.lines().count() == 4 && !table.contains(" \n"),
        "{table}"
    );
    let shown = tenantry(&ready, &["tenants", "show", "INITECH"]);
    assert!(
        text(&shown.stdout).contains("Initech GmbH"),
        "{}",
        text(&shown.stdout)
    );

    let suspended = tenantry(&ready, &["tenants", "suspend", "initech", "-o", "json"]);
    let suspended: Value = serde_json::from_slice(&suspended.stdout).unwrap();
    assert_eq!(
        (&suspended["state"], &suspended["propagation"]["pending"]),
        (&json!("SUSPENDED"), &json!([]))
    );
    let resumed = tenantry(&ready, &["tenants", "resume", "initech"]);
    assert!(
        text(&resumed.stdout).contains("CREATED"),
        "{}",
        text(&resumed.stdout)
    );
    let instances = tenantry(&ready, &["instances"]);
    let instances = text(&instances.stdout);
    assert!(
        instances.starts_with("ID ") && instances.lines().count() == 2,
        "{instances}"
    );

    // Keys.
    let key = tenantry(
        &ready,
        &[
            "api-keys", "create", "initech", "--name", "ci", "--role", "viewer", "--output", "json",
        ],
    );
    let key: Value = serde_json::from_slice(&key.stdout).unwrap();
    assert_eq!(
        get(&ready, "/v1/whoami", &key["secret"]).await.1["role"],
        "viewer"
    );
    let keys = tenantry(&ready, &["api-keys", "list", "initech"]);
    let secret = key["secret"].as_str().unwrap();
    assert!(text(&keys.stdout).contains("viewer") && !text(&keys.stdout).contains(secret));
    let revoked = tenantry(
        &ready,
        &["api-keys", "revoke", "initech", key["id"].as_str().unwrap()],
    );
    assert_eq!(revoked.status.code(), Some(0), "{}", text(&revoked.stderr));
    assert_eq!(get(&ready, "/v1/whoami", &key["secret"]).await.0, 401);

    // Operators.
    let token = tenantry(
        &ready,
        &["operator-tokens", "create", "watcher", "--output", "json"],
    );
    let token: Value = serde_json::from_slice(&token.stdout).unwrap();
    assert_eq!(token["role"], "read");
    let tokens = tenantry(&ready, &["operator-tokens", "list"]);
    let tokens = text(&tokens.stdout);
    assert!(tokens.contains("watcher") && !tokens.contains("tno_"), "{tokens}");
    let revoked = tenantry(
        &ready,
        &["operator-tokens", "revoke", token["id"].as_str().unwrap()],
    );
    assert!(text(&revoked.stdout).contains("is revoked"));

    // People.
    let invited = tenantry(
        &ready,
        &[
            "users",
            "invite",
            "initech",
            "ann@initech.example",
            "--role",
            "admin",
            "-o",
            "json",
        ],
    );
    let invited: Value = serde_json::from_slice(&invited.stdout).unwrap();
    assert!(invited["secret"].as_str().unwrap().starts_with("tni_"));
    let users = tenantry(&ready, &["users", "list", "initech"]);
    assert!(text(&users.stdout).contains("tenantry users invite initech"));
    let removed = tenantry(&ready, &["users", "remove", "initech", "nobody"]);
    assert_eq!(removed.status.code(), Some(1));

    // What was done.
    let audit = tenantry(&ready, &["audit", "--action", "operator-token.revoke"]);
    let audit = text(&audit.stdout);
    assert!(
        audit.starts_with("AT ") && audit.contains("operator:configured") && audit.lines().count() == 2,
        "{audit}"
    );

    // The rest.
    let clusters = tenantry(&ready, &["clusters", "list"]);
    assert!(
        text(&clusters.stdout).contains("main"),
        "{}",
        text(&clusters.stdout)
    );
    let config = tenantry(
        &ready,
        &["config", "check", "--config", ready["config"].as_str().unwrap()],
    );
    assert_eq!(config.status.code(), Some(0));
    assert!(!text(&config.stdout).contains(ready["operator_token"].as_str().unwrap()));

    // Refusals.
    for (code, says, arguments) in [
        (1, "Unknown tenant (404)", &["tenants", "show", "nobody"][..]),
        (
            1,
            "Tenant exists (409)",
            &["tenants", "create", "initech", "--display-name", "Other"],
        ),
        (
            1,
            "No suitable cluster (409)",
            &["tenants", "create", "hooli", "--cluster", "nowhere"],
        ),
        (
            1,
            "Not found (404)",
            &["operations", "show", "00000000-0000-0000-0000-000000000000"],
        ),
        (
            1,
            "Start one with `tenantry dev`",
            &["tenants", "list", "--url", "http://127.0.0.1:1"],
        ),
        (
            1,
            "Credential required (401)",
            &["tenants", "list", "--operator-token", "wrong"],
        ),
        (2, "lower-case letters", &["tenants", "create", "Not_An_Id"]),
        (2, "KEY=VALUE", &["tenants", "create", "hooli", "--label", "tier"]),
        (
            2,
            "cannot be read",
            &["config", "check", "--config", "/nowhere.toml"],
        ),
        (2, "Usage:", &["tenants", "explode"]),
    ] {
        let refused = tenantry(&ready, arguments);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(
            told.contains(says) && refused.stdout.is_empty(),
            "{arguments:?}: {told}"
        );
    }

    // Another instance can be added with the file that this one runs with.
    let busy = ready["api_url"]
        .as_str()
        .unwrap()
        .strip_prefix("http://")
        .unwrap();
    let serve = ["serve", "--config", ready["config"].as_str().unwrap()];
    let taken = program()
        .args(serve)
        .env("TENANTRY__HTTP__LISTEN", busy)
        .output()
        .unwrap();
    assert_eq!(taken.status.code(), Some(1));
    assert!(
        text(&taken.stderr).contains("cannot listen"),
        "{}",
        text(&taken.stderr)
    );
    let mut second = program()
        .args(serve)
        .env("TENANTRY__HTTP__LISTEN", "127.0.0.1:0")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + LIMIT;
    let mut tenant = 0;
    loop {
        // Each creation waits a bounded time for the instances that are there. The second one asks for changes every few
        // seconds, so sooner or later it has one in time.
        let created = tenantry(
            &ready,
            &["tenants", "create", &format!("next{tenant}"), "--output", "json"],
        );
        let created: Value = serde_json::from_slice(&created.stdout).unwrap();
        if created["propagation"]["live_instances"] == 2 && created["propagation"]["pending"] == json!([]) {
            break;
        }
        assert!(Instant::now() < deadline, "{created}");
        tenant += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(
        Command::new("kill")
            .arg(second.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    assert!(second.wait().unwrap().success());

    dev.signal("TERM");
    assert!(dev.ended().await.success(), "{}", dev.log());
    dev.nothing_left().await;
}
