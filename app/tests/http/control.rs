//! The control plane: tenants, keys, operations, clusters.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::common::{Responses, TestApp, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_created_once_and_shown() {
    let app = TestApp::start().await;
    let request = json!({
        "id": "acme", "display_name": "Acme Corporation", "region": "eu", "cluster": "main",
        "domains": ["Portal.Acme.test"], "labels": {"tier": "gold"},
    });

    let created = app.create(&request).await;
    let tenant = created.expect(201);
    assert_eq!(created.header("location"), "/control/v1/tenants/acme");
    let fields: BTreeSet<&str> = tenant.as_object().unwrap().keys().map(String::as_str).collect();
    let documented = [
        "id",
        "uuid",
        "display_name",
        "state",
        "cluster",
        "region",
        "domains",
        "labels",
        "schema_version",
        "revision",
        "created_at",
        "updated_at",
        "propagation",
    ];
    assert_eq!(fields, documented.into());
    assert_eq!(tenant["state"], "CREATED");
    assert_eq!(tenant["domains"], json!(["portal.acme.test"]));
    assert_eq!(tenant["labels"], json!({"tier": "gold"}));
    assert_eq!(
        (&tenant["cluster"], &tenant["region"]),
        (&json!("main"), &json!("eu"))
    );
    assert_eq!(tenant["propagation"]["live_instances"], 1);
    assert_eq!(tenant["propagation"]["applied_instances"], 1);
    assert_eq!(tenant["propagation"]["pending"], json!([]));
    assert!(tenant["created_at"].as_str().unwrap().ends_with('Z'));

    let again = app.create(&request).await;
    assert_eq!(again.expect(200)["uuid"], tenant["uuid"]);
    assert_eq!(again.header("location"), "/control/v1/tenants/acme");

    for id in ["acme", "ACME"] {
        let shown = app.control(Method::GET, &format!("/tenants/{id}")).answer().await;
        let mut expected = tenant.clone();
        expected.as_object_mut().unwrap().remove("propagation");
        assert_eq!(shown.expect(200), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_with_another_body_is_a_conflict() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    for other in [
        json!({"id": "acme", "display_name": "Other"}),
        json!({"id": "acme", "labels": {"a": "b"}}),
    ] {
        app.create(&other).await.problem(409, "tenant-exists");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_make_one_tenant() {
    let app = TestApp::start().await;
    let other = app.another_instance().await;
    let creations = (0..20).map(|number| {
        let app = if number % 2 == 0 { &app } else { &other };
        async move { app.create(&json!({"id": "acme"})).await }
    });
    let answers = futures::future::join_all(creations).await;
    let newly = answers.iter().filter(|answer| answer.status == 201).count();
    let uuids: BTreeSet<String> = answers
        .iter()
        .map(|answer| {
            assert!(answer.status.is_success(), "{answer:?}");
            answer.json()["uuid"].to_string()
        })
        .collect();
    assert_eq!((newly, uuids.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_not_there_is_a_conflict_and_takes_no_name() {
    let app = TestApp::start().await;
    app.create(&json!({"id": "acme", "region": "mars"}))
        .await
        .problem(409, "no-cluster");
    app.create(&json!({"id": "acme", "cluster": "other"}))
        .await
        .problem(409, "no-cluster");
    assert_eq!(app.count("select count(*) from tenants").await, 0);
    app.create(&json!({"id": "acme", "domains": ["a.test"]}))
        .await
        .expect(201);
    app.create(&json!({"id": "globex", "domains": ["a.test"]}))
        .await
        .problem(409, "domain-taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_can_be_made_in_the_background() {
    let app = TestApp::start().await;
    let request = app
        .control(Method::POST, "/tenants")
        .header("prefer", "respond-async")
        .json(&json!({"id": "acme"}));
    let begun = request.answer().await;
    let operation = begun.expect(202);
    assert_eq!(begun.header("preference-applied"), "respond-async");
    let place = begun.header("location").to_owned();
    assert_eq!(
        place,
        format!("/control/v1/operations/{}", operation["id"].as_str().unwrap())
    );
    assert_eq!(
        (&operation["tenant"], &operation["error"]),
        (&json!("acme"), &Value::Null)
    );

    eventually("the operation succeeds", async || {
        let shown = app
            .get(&place)
            .bearer_auth(crate::common::OPERATOR_TOKEN)
            .answer()
            .await
            .expect(200);
        assert_ne!(shown["state"], "FAILED", "{shown}");
        shown["state"] == "SUCCEEDED"
            && shown["steps"]["done"] == shown["steps"]["total"]
            && !shown["finished_at"].is_null()
    })
    .await;
    assert_eq!(
        app.control(Method::GET, "/tenants/acme")
            .answer()
            .await
            .expect(200)["state"],
        "CREATED"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_from_stock_is_in_service_when_it_is_answered() {
    let app = TestApp::builder().set("provisioning.spares", "2").start().await;
    for (id, prefer) in [("acme", "respond-async"), ("globex", "return=representation")] {
        eventually("a database is in stock", async || {
            app.control(Method::GET, "/clusters/main")
                .answer()
                .await
                .expect(200)["spares"]
                .as_u64()
                >= Some(1)
        })
        .await;
        let request = app
            .control(Method::POST, "/tenants")
            .header("prefer", prefer)
            .json(&json!({ "id": id }));
        let tenant = request.answer().await.expect(201);
        assert_eq!(
            (&tenant["state"], &tenant["propagation"]["applied_instances"]),
            (&json!("CREATED"), &json!(1))
        );
        let key = app.key(id, "viewer").await;
        app.whoami(&key).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_tenant_is_not_sent_twice() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let first = app.control(Method::GET, "/tenants/acme").answer().await;
    let etag = first.header("etag").to_owned();
    assert_eq!(etag, format!("\"{}\"", first.json()["revision"]));
    let again = app
        .control(Method::GET, "/tenants/acme")
        .header("if-none-match", &etag)
        .answer()
        .await;
    assert_eq!(
        (again.status.as_u16(), again.text.as_str(), again.header("etag")),
        (304, "", etag.as_str())
    );
    app.control(Method::GET, "/tenants/acme")
        .header("if-none-match", "\"0\"")
        .answer()
        .await
        .expect(200);
}

/// Reads a whole list, page by page.
async fn all(app: &TestApp, path: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let separator = if path.contains('?') { '&' } else { '?' };
        let page = app
            .control(Method::GET, &format!("{path}{separator}limit=2{cursor}"))
            .answer()
            .await
            .expect(200);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_pages_and_filters() {
    let app = TestApp::start().await;
    for (id, labels) in [
        ("aa", json!({"tier": "gold"})),
        ("bb", json!({"tier": "free"})),
        ("cc", json!({})),
        ("dd", json!({"tier": "gold"})),
        ("ee", json!({"a": "x=y"})),
    ] {
        app.create(&json!({"id": id, "labels": labels})).await.expect(201);
    }
    assert_eq!(all(&app, "/tenants").await, ["aa", "bb", "cc", "dd", "ee"]);
    assert_eq!(all(&app, "/tenants?label=tier").await, ["aa", "bb", "dd"]);
    assert_eq!(all(&app, "/tenants?label=tier%3Dgold").await, ["aa", "dd"]);
    assert_eq!(all(&app, "/tenants?label=a%3Dx%3Dy").await, ["ee"]);
    assert_eq!(all(&app, "/tenants?state=CREATED&cluster=main").await.len(), 5);
    assert_eq!(all(&app, "/tenants?state=SUSPENDED").await.len(), 0);
    assert_eq!(all(&app, "/tenants?cluster=elsewhere").await.len(), 0);
    let page = app
        .control(Method::GET, "/tenants?limit=5")
        .answer()
        .await
        .expect(200);
    assert_eq!(
        page["next_cursor"],
        Value::Null,
        "a last page that is full has no next one"
    );

    let page = app
        .control(Method::GET, "/tenants?limit=1")
        .answer()
        .await
        .expect(200);
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();
    for (path, slug) in [
        (format!("/clusters?cursor={cursor}"), "invalid-cursor"),
        (format!("/tenants/aa/api-keys?cursor={cursor}"), "invalid-cursor"),
        (format!("/tenants?cursor={}", &cursor[1..]), "invalid-cursor"),
        ("/tenants?cursor=".to_owned(), "invalid-cursor"),
        ("/tenants?cursor=%00".to_owned(), "invalid-query"),
        ("/tenants?limit=0".to_owned(), "invalid-query"),
        ("/tenants?limit=201".to_owned(), "invalid-query"),
        ("/tenants?limit=1e2".to_owned(), "invalid-query"),
        ("/tenants?offset=1".to_owned(), "invalid-query"),
        ("/tenants?state=created".to_owned(), "invalid-query"),
        ("/tenants?cluster=%27".to_owned(), "invalid-query"),
        ("/tenants?label=%00".to_owned(), "invalid-query"),
    ] {
        app.control(Method::GET, &path).answer().await.problem(400, slug);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_opens_its_tenant_until_it_is_revoked() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let request = json!({"name": "ci", "role": "member", "expires_at": "2999-12-31T23:59:59Z"});
    let created = app
        .control(Method::POST, "/tenants/acme/api-keys")
        .json(&request)
        .answer()
        .await;
    let key = created.expect(201);
    let id = key["id"].as_str().unwrap();
    let secret = key["secret"].as_str().unwrap();
    assert_eq!(
        created.header("location"),
        format!("/control/v1/tenants/acme/api-keys/{id}")
    );
    assert_eq!(
        (&key["name"], &key["role"], &key["expires_at"]),
        (&json!("ci"), &json!("member"), &json!("2999-12-31T23:59:59Z"))
    );
    assert_eq!(key["propagation"]["applied_instances"], 1);
    assert!(secret.starts_with(&format!("tnt_{id}_")));

    let me = app.whoami(secret).await.expect(200);
    assert_eq!(
        (&me["tenant"], &me["role"], &me["principal"]),
        (&json!("acme"), &json!("member"), &json!(format!("api-key:{id}")))
    );

    let listed = app.control(Method::GET, "/tenants/acme/api-keys").answer().await;
    assert_eq!(listed.expect(200)["items"][0]["id"], id);
    assert!(!listed.text.contains("secret") && !listed.text.contains(&secret[21..50]));

    let path = format!("/tenants/acme/api-keys/{id}");
    let revoked = app.control(Method::DELETE, &path).answer().await.expect(200);
    assert!(revoked["revoked_at"].is_string() && revoked["propagation"]["applied_instances"] == 1);
    app.whoami(secret).await.problem(401, "unauthenticated");
    let again = app.control(Method::DELETE, &path).answer().await.expect(200);
    assert_eq!(
        again["revoked_at"], revoked["revoked_at"],
        "repeating it changes nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn api_keys_are_listed_in_pages_and_only_where_they_belong() {
    let app = TestApp::start().await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    for _ in 0..5 {
        app.key("acme", "viewer").await;
    }
    let ids = all(&app, "/tenants/acme/api-keys").await;
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 5);
    assert!(ids.is_sorted());
    assert!(all(&app, "/tenants/globex/api-keys").await.is_empty());
    app.control(Method::DELETE, &format!("/tenants/globex/api-keys/{}", ids[0]))
        .answer()
        .await
        .problem(404, "not-found");
    app.control(Method::DELETE, "/tenants/acme/api-keys/aaaaaaaaaaaaaaaa")
        .answer()
        .await
        .problem(404, "not-found");
    app.control(Method::DELETE, "/tenants/acme/api-keys/%27")
        .answer()
        .await
        .problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_found() {
    let app = TestApp::start().await;
    for path in [
        "/tenants/nobody",
        "/tenants/nobody/api-keys",
        "/tenants/a%27b",
        "/tenants/www",
        "/tenants/%00",
    ] {
        app.control(Method::GET, path)
            .answer()
            .await
            .problem(404, "unknown-tenant");
    }
    let key = json!({"name": "x", "role": "viewer"});
    app.control(Method::POST, "/tenants/nobody/api-keys")
        .json(&key)
        .answer()
        .await
        .problem(404, "unknown-tenant");
    let no_operation = format!("/operations/{}", uuid::Uuid::now_v7());
    for path in [
        no_operation.as_str(),
        "/operations/x",
        "/clusters/elsewhere",
        "/clusters/%27",
    ] {
        app.control(Method::GET, path)
            .answer()
            .await
            .problem(404, "not-found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_shown_with_their_nodes_and_without_their_passwords() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    let list = app.control(Method::GET, "/clusters").answer().await;
    let cluster = &list.expect(200)["items"][0];
    assert_eq!(
        (&cluster["name"], &cluster["region"], &cluster["tenants"]),
        (&json!("main"), &json!("eu"), &json!(1))
    );
    let node = &cluster["nodes"][0];
    assert_eq!(
        (&node["name"], &node["role"]),
        (&json!("primary"), &json!("primary"))
    );
    let shown = app.control(Method::GET, "/clusters/main").answer().await;
    assert_eq!(shown.expect(200)["name"], "main");
    let url = crate::common::cluster().primary().url("postgres");
    let password = url::Url::parse(&url).unwrap().password().unwrap().to_owned();
    assert!(!list.text.contains(&password) && !shown.text.contains(&password));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_suspended_and_resumed_on_every_instance() {
    let app = TestApp::start().await;
    let other = app.another_instance().await;
    app.tenant("acme").await;
    let key = app.key("acme", "admin").await;
    let command = async |name: &str, tenant: &str| {
        let path = format!("/tenants/{tenant}/{name}");
        app.control(Method::POST, &path).answer().await
    };

    let suspended = command("suspend", "ACME").await.expect(200);
    assert_eq!(
        (&suspended["id"], &suspended["state"]),
        (&json!("acme"), &json!("SUSPENDED"))
    );
    assert_eq!(suspended["propagation"]["applied_instances"], 2, "{suspended}");
    for instance in [&app, &other] {
        instance.whoami(&key).await.problem(403, "tenant-suspended");
    }
    let again = command("suspend", "acme").await.expect(200);
    assert_eq!(again["revision"], suspended["revision"], "nothing has changed");

    let resumed = command("resume", "acme").await.expect(200);
    assert_eq!(
        (&resumed["state"], &resumed["propagation"]["pending"]),
        (&json!("CREATED"), &json!([]))
    );
    for instance in [&app, &other] {
        instance.whoami(&key).await.expect(200);
    }
    command("resume", "acme").await.expect(200);
    let audited = app
        .count("select count(*) from audit_events where action in ('tenant.suspend', 'tenant.resume') and subject = 'acme'")
        .await;
    assert_eq!(audited, 2, "what changes nothing leaves no trace");

    for name in ["suspend", "resume"] {
        command(name, "nobody").await.problem(404, "unknown-tenant");
        app.request(Method::POST, &format!("/control/v1/tenants/acme/{name}"))
            .answer()
            .await
            .problem(401, "unauthenticated");
    }
    let mut catalog = app.catalog_connection().await;
    sqlx::query("update tenants set state = 'FAILED' where slug = 'acme'")
        .execute(&mut catalog)
        .await
        .unwrap();
    command("suspend", "acme").await.problem(409, "wrong-state");
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_listed_with_what_they_have_applied() {
    let app = TestApp::start().await;
    let other = app.another_instance().await;
    app.tenant("acme").await;
    let list = async |query: &str| {
        app.control(Method::GET, &format!("/instances{query}"))
            .answer()
            .await
            .expect(200)
    };
    let listed = list("").await;
    let items = listed["items"].as_array().unwrap();
    assert_eq!((items.len(), &listed["next_cursor"]), (2, &Value::Null));
    for (instance, item) in [&app, &other].into_iter().zip(items) {
        assert_eq!(item["id"], instance.service.tenancy().instance().to_string());
        assert_eq!(item["address"], instance.service.address().to_string());
        assert_eq!((&item["live"], &item["behind"]), (&json!(true), &json!(0)));
        assert_eq!(item["version"], env!("CARGO_PKG_VERSION"));
    }
    let first = list("?limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = list(&format!("?limit=1&cursor={cursor}")).await;
    assert_eq!(
        (&first["items"][0], &second["items"][0]["id"]),
        (&items[0], &items[1]["id"])
    );

    // One that ends without a farewell is missed, and shown for a while.
    let mut catalog = app.catalog_connection().await;
    let gone = "insert into instances (id, address, applied_revision, lease_until)
        values (gen_random_uuid(), 'gone', 1, now() - $1::interval)";
    for ago in ["59 minutes", "61 minutes"] {
        sqlx::query(gone).bind(ago).execute(&mut catalog).await.unwrap();
    }
    let restarted = app.another_instance().await;
    eventually("the one that has been gone for long is forgotten", async || {
        let items = list("").await["items"].as_array().unwrap().clone();
        let dead = items.iter().filter(|item| item["live"] == false).count();
        dead == 1 && items.len() == 4
    })
    .await;
    drop(restarted);
}
