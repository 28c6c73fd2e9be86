//! What was taken away on one instance is gone on every other one when the answer is there: not a moment later, and whatever the
//! replicas and the broker do.

use chrono::{TimeDelta, Utc};
use reqwest::Method;
use sandbox::{Broker, Cluster};
use serde_json::{Value, json};
use sqlx::Executor;

use crate::{
    browser::{by, fresh_address, join, own, session, whoami},
    common::{Responses, TestApp, TestAppBuilder, eventually},
};

/// With time enough for a machine that has much to do; what is asked is whether all have applied a change.
fn patient() -> TestAppBuilder {
    TestApp::builder()
        .set("http.secure_cookies", "false")
        .set("provisioning.wait_for_instances", "30s")
}

fn applied_by_all(answer: &Value) {
    let propagation = &answer["propagation"];
    assert_eq!(propagation["pending"], json!([]), "{propagation}");
    assert_eq!(propagation["applied_instances"], propagation["live_instances"]);
    assert_eq!(propagation["live_instances"], 2, "{propagation}");
}

async fn all_that_can_be_taken_away(here: &TestApp, there: &TestApp) {
    here.tenant("acme").await;
    let key = here.key("acme", "admin").await;

    // A key.
    let doomed = here.key("acme", "member").await;
    there.whoami(&doomed).await.expect(200);
    let path = format!("/tenants/acme/api-keys/{}", doomed.split('_').nth(1).unwrap());
    applied_by_all(&here.control(Method::DELETE, &path).answer().await.expect(200));
    there.whoami(&doomed).await.problem(401, "unauthenticated");

    // A key whose time is over.
    let soon = Utc::now() + TimeDelta::milliseconds(1500);
    let short = json!({"name": "short", "role": "viewer", "expires_at": soon});
    let short = here.control(Method::POST, "/tenants/acme/api-keys").json(&short);
    let short = short.answer().await.expect(201)["secret"]
        .as_str()
        .unwrap()
        .to_owned();
    eventually("the key expires", async || {
        there.whoami(&short).await.status == 401
    })
    .await;
    assert!(Utc::now() >= soon);

    // An operator's token.
    let token = here.control(Method::POST, "/operator-tokens");
    let token = token
        .json(&json!({"name": "doomed", "role": "write"}))
        .answer()
        .await
        .expect(201);
    let as_operator = || {
        let request = there.request(Method::GET, "/control/v1/tenants/acme");
        request.bearer_auth(token["secret"].as_str().unwrap())
    };
    as_operator().answer().await.expect(200);
    let path = format!("/operator-tokens/{}", token["id"].as_str().unwrap());
    applied_by_all(&here.control(Method::DELETE, &path).answer().await.expect(200));
    as_operator().answer().await.problem(401, "unauthenticated");

    // A session, by logging out; all of them; a part of what they may do; the membership.
    let email = fresh_address();
    let user = join(here, &email, "acme", "admin").await;
    let path = format!("/users/{user}");
    let doomed = session(here, &email, None).await;
    whoami(there, &doomed).await.expect(200);
    applied_by_all(
        &by(here, &doomed, Method::DELETE, "/v1/session")
            .answer()
            .await
            .expect(200),
    );
    whoami(there, &doomed).await.problem(401, "unauthenticated");

    let (one, two) = (
        session(here, &email, None).await,
        session(there, &email, Some("acme")).await,
    );
    for session in [&one, &two] {
        whoami(there, session).await.expect(200);
    }
    let everywhere = by(here, &one, Method::DELETE, "/v1/session?everywhere=true");
    applied_by_all(&everywhere.answer().await.expect(200));
    for session in [&one, &two] {
        whoami(there, session).await.problem(401, "unauthenticated");
    }

    let kept = session(here, &email, None).await;
    by(there, &kept, Method::GET, "/v1/users")
        .answer()
        .await
        .expect(200);
    let lower = here
        .v1(Method::PATCH, &path, &key)
        .json(&json!({"role": "viewer"}));
    applied_by_all(&lower.answer().await.expect(200));
    by(there, &kept, Method::GET, "/v1/users")
        .answer()
        .await
        .problem(403, "forbidden");
    whoami(there, &kept).await.expect(200);
    applied_by_all(&here.v1(Method::DELETE, &path, &key).answer().await.expect(200));
    whoami(there, &kept).await.problem(401, "unauthenticated");
    assert_eq!(own(there, &kept).await["tenants"], json!([]));

    // The tenant's service, for every kind of credential.
    let member = fresh_address();
    join(here, &member, "acme", "member").await;
    let session = session(there, &member, None).await;
    whoami(there, &session).await.expect(200);
    there.whoami(&key).await.expect(200);
    let suspended = here.control(Method::POST, "/tenants/acme/suspend").answer().await;
    applied_by_all(&suspended.expect(200));
    there.whoami(&key).await.problem(403, "tenant-suspended");
    whoami(there, &session).await.problem(403, "tenant-suspended");
    let resumed = here.control(Method::POST, "/tenants/acme/resume").answer().await;
    applied_by_all(&resumed.expect(200));
    there.whoami(&key).await.expect(200);
    whoami(there, &session).await.expect(200);

    // The tenant.
    let mut catalog = here.catalog_connection().await;
    catalog
        .execute(
            "with next as (update catalog_revision set revision = revision + 1 returning revision)
            update tenants set state = 'DELETED', revision = next.revision from next where slug = 'acme'",
        )
        .await
        .unwrap();
    eventually("the tenant is gone", async || {
        there.whoami(&key).await.status != 200
    })
    .await;
    there.whoami(&key).await.problem(401, "unauthenticated");
    whoami(there, &session).await.problem(401, "unauthenticated");
    let operator = there.get("/v1/whoami").bearer_auth(crate::common::OPERATOR_TOKEN);
    let operator = operator.header("x-tenant-id", "acme");
    operator.answer().await.problem(404, "unknown-tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_away_is_gone_on_every_instance() {
    let here = patient().start().await;
    let there = here.another_instance().await;
    all_that_can_be_taken_away(&here, &there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn also_while_replicas_stand_still() {
    let cluster = Cluster::builder().replicas(1).start().await.unwrap();
    let here = patient().servers(&cluster).start().await;
    let there = here.another_instance().await;
    here.tenant("globex").await;
    let key = here.key("globex", "viewer").await;
    eventually("the replica serves", async || {
        here.whoami(&key)
            .await
            .header("tenantry-served-by")
            .starts_with("replica")
    })
    .await;
    cluster.replica(0).pause_replay().await.unwrap();
    all_that_can_be_taken_away(&here, &there).await;
    cluster.replica(0).resume_replay().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn also_while_the_broker_is_down() {
    let broker = Broker::builder().start().await.unwrap();
    let settings = format!("[broker]\nurl = \"{}\"\n", broker.url());
    let here = patient().more(&settings).start().await;
    let there = here.another_instance().await;
    broker.kill().await.unwrap();
    all_that_can_be_taken_away(&here, &there).await;
}

/// An instance that cannot ask the catalog lets known credentials in for a bounded time, and then nobody.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_cut_off_believes_what_it_knows_for_a_bounded_time() {
    let proxy = crate::common::cluster().primary().proxy().await.unwrap();
    let app = TestApp::builder()
        .set("http.secure_cookies", "false")
        .set("security.credentials_believed_for", "6s")
        .start_with_catalog_behind(&proxy)
        .await;
    app.tenant("acme").await;
    let key = app.key("acme", "viewer").await;
    let email = fresh_address();
    join(&app, &email, "acme", "viewer").await;
    let session = session(&app, &email, None).await;
    whoami(&app, &session).await.expect(200);
    proxy.cut().await;
    let begun = std::time::Instant::now();
    app.whoami(&key).await.expect(200);
    whoami(&app, &session).await.expect(200);
    eventually("nobody is let in", async || app.whoami(&key).await.status == 503).await;
    assert!(
        begun.elapsed() > std::time::Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    whoami(&app, &session).await.problem(503, "unavailable");
    proxy.restore().await;
    eventually("it is in contact again", async || {
        app.whoami(&key).await.status == 200
    })
    .await;
    whoami(&app, &session).await.expect(200);
}
