//! Every operation of the OpenAPI document, with every credential that it should refuse. An operation that this file does not
//! know fails the test: whoever adds one says here who may call it.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    browser::{by, fresh_address, join, person, session},
    common::{Answer, OPERATOR_TOKEN, Responses, TestApp},
    sessions::app,
};

/// Who may call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Anybody.
    Anyone,
    /// Whoever has a session.
    Person,
    /// In the own tenant.
    Viewer,
    Member,
    Admin,
    /// Operators who look.
    Reads,
    /// Operators who change.
    Writes,
}

/// Every operation, by its id.
const OPERATIONS: &[(&str, Who)] = &[
    ("whoami", Who::Viewer),
    ("create_invoice", Who::Member),
    ("list_invoices", Who::Viewer),
    ("show_invoice", Who::Viewer),
    ("change_invoice", Who::Member),
    ("create_invoice_routed", Who::Member),
    ("list_invoices_routed", Who::Viewer),
    ("show_invoice_routed", Who::Viewer),
    ("change_invoice_routed", Who::Member),
    ("show_profile", Who::Viewer),
    ("put_profile", Who::Member),
    ("report_month", Who::Viewer),
    ("put_report_settings", Who::Member),
    ("list_audit_log", Who::Viewer),
    ("receive_payment", Who::Member),
    ("log_in", Who::Anyone),
    ("accept_invitation", Who::Anyone),
    ("show_session", Who::Person),
    ("log_out", Who::Person),
    ("change_password", Who::Person),
    ("list_users", Who::Admin),
    ("change_user", Who::Admin),
    ("remove_user", Who::Admin),
    ("invite", Who::Admin),
    ("list_invitations", Who::Admin),
    ("withdraw_invitation", Who::Admin),
    ("create_own_api_key", Who::Admin),
    ("list_own_api_keys", Who::Admin),
    ("revoke_own_api_key", Who::Admin),
    ("create_tenant", Who::Writes),
    ("list_tenants", Who::Reads),
    ("show_tenant", Who::Reads),
    ("suspend_tenant", Who::Writes),
    ("resume_tenant", Who::Writes),
    ("create_api_key", Who::Writes),
    ("list_api_keys", Who::Reads),
    ("revoke_api_key", Who::Writes),
    ("show_operation", Who::Reads),
    ("list_clusters", Who::Reads),
    ("show_cluster", Who::Reads),
    ("report_orphans", Who::Reads),
    ("list_instances", Who::Reads),
    ("create_operator_token", Who::Writes),
    ("list_operator_tokens", Who::Reads),
    ("revoke_operator_token", Who::Writes),
    ("list_audit_events", Who::Reads),
    ("livez", Who::Anyone),
    ("readyz", Who::Anyone),
    ("metrics", Who::Anyone),
    ("list_problems", Who::Anyone),
    ("show_problem", Who::Anyone),
];

/// An operation of the document.
#[derive(Debug)]
struct Operation {
    id: String,
    method: Method,
    /// With ids of the tenant acme in it.
    path: String,
    schemes: BTreeSet<String>,
    has_body: bool,
}

fn operations(document: &Value, acme: &BTreeMap<&str, String>) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Ok(method) = method.to_uppercase().parse::<Method>() else {
                continue;
            };
            if operation.get("responses").is_none() {
                continue;
            }
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let mut path = path.clone();
            for name in ["id", "key", "name", "token", "slug", "kind"] {
                let hole = format!("{{{name}}}");
                if path.contains(&hole) {
                    let kind = format!("{name} of {path}");
                    let value = acme
                        .iter()
                        .find(|(prefix, _)| kind.starts_with(**prefix))
                        .map_or("something", |(_, value)| value);
                    path = path.replace(&hole, value);
                }
            }
            assert!(
                !path.contains('{'),
                "{path} names something that this test does not know"
            );
            let security = operation["security"].as_array();
            let schemes = security.into_iter().flatten();
            found.push(Operation {
                id,
                method,
                path,
                schemes: schemes
                    .flat_map(|scheme| scheme.as_object().unwrap().keys().cloned())
                    .collect(),
                has_body: operation.get("requestBody").is_some(),
            });
        }
    }
    found
}

impl Operation {
    fn request(&self, app: &TestApp) -> RequestBuilder {
        let request = app.request(self.method.clone(), &self.path);
        if self.has_body {
            request.json(&json!({}))
        } else {
            request
        }
    }
}

/// An answer without what differs between any two.
fn shape(answer: &Answer) -> (u16, String) {
    let mut body = answer.json();
    body.as_object_mut().unwrap().remove("instance");
    (answer.status.as_u16(), body.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_is_only_for_whom_it_is_for() {
    let app = app().await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    let invoice = json!({"customer": "Ann", "amount_cents": 100, "currency": "EUR"});
    let acme_key = app.key("acme", "admin").await;
    let invoice = app
        .v1(Method::POST, "/invoices", &acme_key)
        .json(&invoice)
        .answer()
        .await
        .expect(201);
    let user = join(&app, &fresh_address(), "acme", "viewer").await;
    let invited = json!({"email": fresh_address(), "role": "viewer"});
    let invited = app
        .v1(Method::POST, "/invitations", &acme_key)
        .json(&invited)
        .answer()
        .await
        .expect(201);
    let key_id = acme_key.split('_').nth(1).unwrap().to_owned();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let acme = BTreeMap::from([
        ("id of /v1/invoices", text(&invoice["id"])),
        ("id of /v1/routed/invoices", text(&invoice["id"])),
        ("id of /v1/users", user.clone()),
        ("id of /v1/invitations", text(&invited["id"])),
        ("key of /v1/api-keys", key_id.clone()),
        ("id of /control/v1/tenants", "acme".to_owned()),
        ("key of /control/v1/tenants", key_id),
        ("name of /control/v1/clusters", "main".to_owned()),
        ("slug of /problems", "not-found".to_owned()),
    ]);
    let document = app.get("/openapi.json").answer().await.expect(200);
    let operations = operations(&document, &acme);
    let described: BTreeSet<&str> = operations.iter().map(|operation| operation.id.as_str()).collect();
    let known: BTreeSet<&str> = OPERATIONS.iter().map(|(id, _)| *id).collect();
    assert_eq!(
        described, known,
        "each operation is in OPERATIONS, which says who may call it"
    );

    let (globex_admin, globex_session) = (
        app.key("globex", "admin").await,
        person(&app, "globex", "admin").await.1,
    );
    let (viewer, member) = (app.key("acme", "viewer").await, app.key("acme", "member").await);
    let watcher = json!({"name": "watcher", "role": "read"});
    let watcher = app
        .control(Method::POST, "/operator-tokens")
        .json(&watcher)
        .answer()
        .await
        .expect(201);
    let watcher = text(&watcher["secret"]);
    let both = fresh_address();
    join(&app, &both, "acme", "viewer").await;
    let viewers_session = session(&app, &both, None).await;

    for operation in &operations {
        let at = &operation.id;
        let who = OPERATIONS.iter().find(|(id, _)| id == at).unwrap().1;
        let schemes: Vec<&str> = operation.schemes.iter().map(String::as_str).collect();
        let request = || operation.request(&app);
        let declared: &[&str] = match who {
            Who::Anyone => &[],
            Who::Person => &["session"],
            Who::Viewer | Who::Member | Who::Admin => &["api_key", "jwt", "operator_token", "session"],
            Who::Reads | Who::Writes => &["operator_token"],
        };
        assert_eq!(schemes, declared, "{at}");
        let anonymous = request().answer().await;
        if who == Who::Anyone {
            assert_ne!(anonymous.status, 403, "{at}");
            continue;
        }
        anonymous.problem(401, "unauthenticated");
        request()
            .bearer_auth("nonsense")
            .answer()
            .await
            .problem(401, "unauthenticated");

        match who {
            Who::Reads | Who::Writes => {
                for stranger in [&acme_key, &globex_admin] {
                    request()
                        .bearer_auth(stranger)
                        .answer()
                        .await
                        .problem(401, "unauthenticated");
                }
                let session = by(&app, &globex_session, operation.method.clone(), &operation.path);
                session.answer().await.problem(401, "unauthenticated");
                if who == Who::Writes {
                    request()
                        .bearer_auth(&watcher)
                        .answer()
                        .await
                        .problem(403, "forbidden");
                }
            }
            Who::Person => {
                request()
                    .bearer_auth(&acme_key)
                    .answer()
                    .await
                    .problem(401, "unauthenticated");
                request()
                    .bearer_auth(OPERATOR_TOKEN)
                    .answer()
                    .await
                    .problem(401, "unauthenticated");
            }
            Who::Viewer | Who::Member | Who::Admin => {
                // Another tenant's header: as if that tenant did not exist.
                let mut shapes = BTreeSet::new();
                for tenant in ["acme", "nosuch"] {
                    let named = request().bearer_auth(&globex_admin).header("x-tenant-id", tenant);
                    let answer = named.answer().await;
                    answer.problem(403, "wrong-tenant");
                    shapes.insert(shape(&answer));
                    let named = by(&app, &globex_session, operation.method.clone(), &operation.path);
                    let answer = named.header("x-tenant-id", tenant).answer().await;
                    shapes.insert(shape(&answer));
                }
                assert_eq!(shapes.len(), 1, "{at}: {shapes:?}");
                // Another tenant's thing, by its id: as if it did not exist.
                if operation.path.contains(text(&invoice["id"]).as_str())
                    || operation.path.contains(&user)
                    || operation.path.contains(text(&invited["id"]).as_str())
                {
                    let body = match at.as_str() {
                        "change_user" => json!({"role": "viewer"}),
                        _ => json!({"status": "SENT"}),
                    };
                    let mut shapes = BTreeSet::new();
                    for path in [
                        operation.path.clone(),
                        operation
                            .path
                            .replace(
                                text(&invoice["id"]).as_str(),
                                "0199a3c1-d2e3-7f4a-8b9c-0d1e2f3a4b5c",
                            )
                            .replace(&user, "0199a3c1-d2e3-7f4a-8b9c-0d1e2f3a4b5c")
                            .replace(text(&invited["id"]).as_str(), "aaaaaaaaaaaaaaaa"),
                    ] {
                        let mut request = app
                            .request(operation.method.clone(), &path)
                            .bearer_auth(&globex_admin);
                        if operation.has_body {
                            request = request.json(&body);
                        }
                        shapes.insert(shape(&request.answer().await));
                    }
                    assert_eq!(shapes.len(), 1, "{at}: {shapes:?}");
                    let (status, problem) = shapes.first().unwrap();
                    assert!(matches!(status, 404 | 422), "{at}: {status} {problem}");
                }
                // Too small a role.
                let too_small: &[&String] = match who {
                    Who::Member => &[&viewer],
                    Who::Admin => &[&viewer, &member],
                    _ => &[],
                };
                for key in too_small {
                    request()
                        .bearer_auth(key)
                        .answer()
                        .await
                        .problem(403, "forbidden");
                }
                if !too_small.is_empty() {
                    let mut small = by(&app, &viewers_session, operation.method.clone(), &operation.path);
                    if operation.has_body {
                        small = small.json(&json!({}));
                    }
                    small.answer().await.problem(403, "forbidden");
                    let watching = request().bearer_auth(&watcher).header("x-tenant-id", "acme");
                    watching.answer().await.problem(403, "forbidden");
                }
            }
            Who::Anyone => unreachable!("it was looked at above"),
        }
    }
}
