//! Invitations, and the users that they make.

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Executor;

use crate::{
    browser::{PASSWORD, accept, by, fresh_address, join, log_in, person, session, whoami},
    common::{Responses, TestApp},
    sessions::app,
};

async fn invite(app: &TestApp, key: &str, email: &str, role: &str) -> Value {
    app.v1(Method::POST, "/invitations", key)
        .json(&json!({"email": email, "role": role}))
        .answer()
        .await
        .expect(201)
}

fn secret(invited: &Value) -> &str {
    invited["secret"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_makes_a_user_once() {
    let app = app().await;
    app.tenant("acme").await;
    let key = app.key("acme", "admin").await;
    let email = fresh_address();
    let invited = invite(&app, &key, &email.to_uppercase(), "member").await;
    assert_eq!(
        (&invited["email"], &invited["role"]),
        (&json!(email), &json!("member"))
    );
    assert!(secret(&invited).starts_with("tni_"));
    let list = app
        .v1(Method::GET, "/invitations", &key)
        .answer()
        .await
        .expect(200);
    assert_eq!(list["items"][0]["id"], invited["id"]);
    assert!(list["items"][0].get("secret").is_none());

    accept(&app, secret(&invited), "short")
        .await
        .problem(422, "invalid-body");
    let accepted = accept(&app, secret(&invited), PASSWORD).await.expect(200);
    assert_eq!(
        (&accepted["tenant"], &accepted["user"]["role"]),
        (&json!("acme"), &json!("member"))
    );
    accept(&app, secret(&invited), PASSWORD)
        .await
        .problem(404, "not-found");
    let list = app
        .v1(Method::GET, "/invitations", &key)
        .answer()
        .await
        .expect(200);
    assert_eq!(list["items"], json!([]));
    let users = app.v1(Method::GET, "/users", &key).answer().await.expect(200);
    assert_eq!(users["items"], json!([accepted["user"]]));
    log_in(&app, &email, PASSWORD).answer().await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_given_out_and_still_counts_is_an_invitation() {
    let app = app().await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    let (key, other) = (app.key("acme", "admin").await, app.key("globex", "admin").await);
    let email = fresh_address();
    let replaced = invite(&app, &key, &email, "admin").await;
    let withdrawn = invite(&app, &key, &email, "viewer").await;
    accept(&app, secret(&replaced), PASSWORD)
        .await
        .problem(404, "not-found");

    let path = format!("/invitations/{}", withdrawn["id"].as_str().unwrap());
    app.v1(Method::DELETE, &path, &other)
        .answer()
        .await
        .problem(404, "not-found");
    app.v1(Method::DELETE, &path, &key).answer().await.expect(200);
    app.v1(Method::DELETE, &path, &key)
        .answer()
        .await
        .problem(404, "not-found");
    accept(&app, secret(&withdrawn), PASSWORD)
        .await
        .problem(404, "not-found");

    let expired = invite(&app, &key, &email, "viewer").await;
    let mut catalog = app.catalog_connection().await;
    catalog
        .execute("update invitations set expires_at = now()")
        .await
        .unwrap();
    accept(&app, secret(&expired), PASSWORD)
        .await
        .problem(404, "not-found");

    // The id of one with the secret of another, with a checksum that is right.
    let (one, two) = (
        invite(&app, &key, &fresh_address(), "viewer").await,
        invite(&app, &key, &fresh_address(), "admin").await,
    );
    let (one, two): (Vec<&str>, Vec<&str>) = (
        secret(&one).split('_').collect(),
        secret(&two).split('_').collect(),
    );
    let body = format!("tni_{}_{}", two[1], one[2]);
    let mixed = format!("{body}_{:08x}", crc32fast::hash(body.as_bytes()));
    for made_up in [mixed.as_str(), "tni_", "", &key] {
        accept(&app, made_up, PASSWORD).await.problem(404, "not-found");
    }
}

/// Who has an account proves it: whoever gets hold of an invitation cannot take the person's other tenants over.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_an_account_accepts_with_its_password() {
    let app = app().await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    let email = fresh_address();
    let user = join(&app, &email, "acme", "viewer").await;
    let key = app.key("globex", "admin").await;
    let invited = invite(&app, &key, &email, "admin").await;
    accept(&app, secret(&invited), "a password of somebody else")
        .await
        .problem(401, "unauthenticated");
    log_in(&app, &email, "a password of somebody else")
        .answer()
        .await
        .problem(401, "unauthenticated");
    let accepted = accept(&app, secret(&invited), PASSWORD).await.expect(200);
    assert_eq!(accepted["user"]["id"], user.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn admins_manage_the_users_of_their_own_tenant() {
    let app = app().await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    let (_, admin) = person(&app, "acme", "admin").await;
    let (email, member) = person(&app, "acme", "member").await;
    let stranger = fresh_address();
    let strangers_id = join(&app, &stranger, "globex", "viewer").await;
    let users = by(&app, &admin, Method::GET, "/v1/users")
        .answer()
        .await
        .expect(200);
    let emails: Vec<&str> = users["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|user| user["email"].as_str().unwrap())
        .collect();
    assert_eq!(emails.len(), 2);
    assert!(emails.contains(&email.as_str()) && !emails.contains(&stranger.as_str()));
    let user = users["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|user| user["email"] == email.as_str())
        .unwrap();
    let path = format!("/v1/users/{}", user["id"].as_str().unwrap());

    let change = |session: &str, path: &str, role: &str| {
        by(&app, session, Method::PATCH, path).json(&json!({ "role": role }))
    };
    change(&member, &path, "admin")
        .answer()
        .await
        .problem(403, "forbidden");
    change(&admin, &path, "owner")
        .answer()
        .await
        .problem(422, "invalid-body");
    change(&admin, &path, "viewer").answer().await.expect(200);
    assert_eq!(whoami(&app, &member).await.expect(200)["role"], "viewer");

    for unknown in [format!("/v1/users/{strangers_id}"), "/v1/users/nobody".to_owned()] {
        change(&admin, &unknown, "admin")
            .answer()
            .await
            .problem(404, "not-found");
        by(&app, &admin, Method::DELETE, &unknown)
            .answer()
            .await
            .problem(404, "not-found");
    }
    by(&app, &admin, Method::DELETE, &path).answer().await.expect(200);
    whoami(&app, &member).await.problem(401, "unauthenticated");
    by(&app, &admin, Method::DELETE, &path)
        .answer()
        .await
        .problem(404, "not-found");
    let left = session(&app, &email, None).await;
    whoami(&app, &left).await.problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn admins_manage_the_keys_of_their_own_tenant() {
    let app = app().await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    let (_, admin) = person(&app, "acme", "admin").await;
    let wanted = json!({"name": "ci", "role": "member"});
    let made = by(&app, &admin, Method::POST, "/v1/api-keys")
        .json(&wanted)
        .header("idempotency-key", "once")
        .answer()
        .await;
    let key = made.expect(201);
    let again = by(&app, &admin, Method::POST, "/v1/api-keys")
        .json(&wanted)
        .header("idempotency-key", "once")
        .answer()
        .await;
    assert_eq!(again.expect(201)["secret"], key["secret"]);
    assert_eq!(
        made.header("location"),
        format!("/v1/api-keys/{}", key["id"].as_str().unwrap())
    );
    let secret = key["secret"].as_str().unwrap();
    assert_eq!(app.whoami(secret).await.expect(200)["tenant"], "acme");

    let path = format!("/v1/api-keys/{}", key["id"].as_str().unwrap());
    let other = app.key("globex", "admin").await;
    app.v1(Method::DELETE, path.trim_start_matches("/v1"), &other)
        .answer()
        .await
        .problem(404, "not-found");
    app.v1(Method::GET, "/api-keys", secret)
        .answer()
        .await
        .problem(403, "forbidden");
    let list = by(&app, &admin, Method::GET, "/v1/api-keys")
        .answer()
        .await
        .expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let revoked = by(&app, &admin, Method::DELETE, &path).answer().await.expect(200);
    assert_eq!(revoked["propagation"]["pending"], json!([]));
    app.whoami(secret).await.problem(401, "unauthenticated");
}
