//! A tenant and what its clients ask for.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::common::{Answer, Responses, TestApp, cluster};

/// A service that waits for connections as long as it takes: what is tested here are not time limits, and many tests open
/// many connections at once on a machine that may have other things to do.
pub(crate) async fn patient_app() -> TestApp {
    let app = TestApp::builder()
        .set("pools.connect_timeout", "60s")
        .set("pools.acquire_timeout", "60s");
    app.start().await
}

/// The two ways to the same invoices.
pub(crate) const WAYS: [&str; 2] = ["/invoices", "/routed/invoices"];

/// A tenant in service, and the keys to it.
pub(crate) struct Tenant<'a> {
    pub(crate) app: &'a TestApp,
    pub(crate) member: String,
    pub(crate) viewer: String,
}

impl<'a> Tenant<'a> {
    pub(crate) async fn new(app: &'a TestApp, id: &str) -> Self {
        app.tenant(id).await;
        Self {
            app,
            member: app.key(id, "member").await,
            viewer: app.key(id, "viewer").await,
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.app.v1(method, path, &self.member)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path).answer().await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.request(Method::POST, path).json(body).answer().await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.request(Method::PUT, path).json(body).answer().await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.request(Method::PATCH, path).json(body).answer().await
    }

    /// A new invoice.
    pub(crate) async fn invoice(&self, amount: i64) -> Value {
        self.post("/invoices", &new_invoice(amount)).await.expect(201)
    }

    pub(crate) async fn pay(&self, invoice: &Value, amount: i64, reference: &str) -> Answer {
        let payment = json!({ "invoice_id": invoice["id"], "amount_cents": amount, "reference": reference });
        self.post("/webhooks/payments", &payment).await
    }

    /// What the audit log has, oldest first: action and subject.
    pub(crate) async fn log(&self) -> Vec<(String, Value)> {
        let page = self.get("/audit-log?limit=200").await.expect(200);
        let entries = page["items"].as_array().unwrap().iter().rev();
        entries
            .map(|entry| {
                (
                    entry["action"].as_str().unwrap().to_owned(),
                    entry["subject"].clone(),
                )
            })
            .collect()
    }

    /// Runs a statement in the tenant's database as nobody else can.
    pub(crate) async fn execute(&self, statement: String) {
        let who = self.get("/whoami").await.expect(200);
        let options = cluster()
            .primary()
            .connect_options(who["database"].as_str().unwrap());
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        connection.execute(AssertSqlSafe(statement)).await.unwrap();
    }
}

pub(crate) fn new_invoice(amount: i64) -> Value {
    json!({ "customer": "Initech", "amount_cents": amount, "currency": "EUR" })
}

/// The path of one invoice.
pub(crate) fn at(way: &str, invoice: &Value) -> String {
    format!("{way}/{}", invoice["id"].as_str().unwrap())
}
