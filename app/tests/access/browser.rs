//! A person with a browser: keeps cookies, and says on whose behalf it sends a request.

use std::sync::atomic::{AtomicU32, Ordering};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::common::{Answer, OPERATOR_TOKEN, Responses, TestApp};

/// The password of every person, which is obviously an example.
pub(crate) const PASSWORD: &str = "an example, not a password";

/// An address that no other person of this process has.
pub(crate) fn fresh_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("person-{}@example.com", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Makes a person a user of a tenant, with [`PASSWORD`]. Answers their id.
pub(crate) async fn join(app: &TestApp, email: &str, tenant: &str, role: &str) -> String {
    let invited = app
        .request(Method::POST, "/v1/invitations")
        .bearer_auth(OPERATOR_TOKEN)
        .header("x-tenant-id", tenant)
        .json(&json!({"email": email, "role": role}))
        .answer()
        .await
        .expect(201);
    let accepted = accept(app, invited["secret"].as_str().unwrap(), PASSWORD)
        .await
        .expect(200);
    assert_eq!(accepted["tenant"], tenant);
    accepted["user"]["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn accept(app: &TestApp, secret: &str, password: &str) -> Answer {
    app.request(Method::POST, "/v1/invitations/accept")
        .json(&json!({"secret": secret, "password": password}))
        .answer()
        .await
}

/// A request to log in.
pub(crate) fn log_in(app: &TestApp, email: &str, password: &str) -> RequestBuilder {
    app.request(Method::POST, "/v1/session")
        .json(&json!({"email": email, "password": password}))
}

/// The session that an answer has set, as `name=value`.
pub(crate) fn session_of(answer: &Answer) -> String {
    let cookies = answer.headers.get_all("set-cookie").iter();
    let cookie = cookies
        .map(|cookie| cookie.to_str().unwrap())
        .find(|cookie| cookie.starts_with("tenantry_session="));
    let cookie = cookie.unwrap_or_else(|| panic!("no session in {answer:?}"));
    cookie.split(';').next().unwrap().to_owned()
}

/// Logs in, in the only tenant that `tenant` names, or in all.
pub(crate) async fn session(app: &TestApp, email: &str, tenant: Option<&str>) -> String {
    let mut request = log_in(app, email, PASSWORD);
    if let Some(tenant) = tenant {
        request = request.header("x-tenant-id", tenant);
    }
    let answer = request.answer().await;
    answer.expect(201);
    session_of(&answer)
}

/// A person who belongs to one tenant, logged in.
pub(crate) async fn person(app: &TestApp, tenant: &str, role: &str) -> (String, String) {
    let email = fresh_address();
    join(app, &email, tenant, role).await;
    let session = session(app, &email, None).await;
    (email, session)
}

/// A request that a browser sends with its session, from a page of the service itself.
pub(crate) fn by(app: &TestApp, session: &str, method: Method, path: &str) -> RequestBuilder {
    let origin = format!("http://{}", app.service.address());
    app.request(method, path)
        .header("cookie", session)
        .header("origin", origin)
}

/// `GET /v1/whoami` with a session.
pub(crate) async fn whoami(app: &TestApp, session: &str) -> Answer {
    by(app, session, Method::GET, "/v1/whoami").answer().await
}

/// `GET /v1/session`.
pub(crate) async fn own(app: &TestApp, session: &str) -> Value {
    by(app, session, Method::GET, "/v1/session")
        .answer()
        .await
        .expect(200)
}
