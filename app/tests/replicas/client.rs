//! A client that keeps its position, as browsers and scripts do.

use reqwest::{Method, RequestBuilder, header::SET_COOKIE};
use serde_json::{Value, json};

use crate::{
    common::{Answer, Responses},
    world::Instance,
};

/// How a client keeps its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carry {
    Cookie,
    Header,
    /// Not at all.
    Nothing,
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
    carry: Carry,
    pub(crate) token: Option<String>,
}

impl Client {
    pub(crate) fn new(http: reqwest::Client, key: &str, carry: Carry) -> Self {
        Self {
            http,
            base: String::new(),
            key: key.to_owned(),
            carry,
            token: None,
        }
    }

    /// The same client, whose next request goes to this instance.
    pub(crate) fn at(mut self, instance: &Instance) -> Self {
        self.base = instance.url("/v1");
        self
    }

    pub(crate) fn go_to(&mut self, instance: &Instance) {
        self.base = instance.url("/v1");
    }

    /// Sends a request, and takes over what the answer says about the position.
    pub(crate) async fn send(&mut self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let answer = self.send_only(method, path, body).await;
        self.take(&answer);
        answer
    }

    /// Sends a request without taking over anything from the answer.
    pub(crate) async fn send_only(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        self.request(method, path, body).answer().await
    }

    /// Sends a write that can be repeated, without taking over anything from the answer.
    pub(crate) async fn send_keyed(&self, path: &str, body: &Value, key: &str) -> Answer {
        let request = self.request(Method::POST, path, Some(body));
        request.header("idempotency-key", key).answer().await
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> RequestBuilder {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .bearer_auth(&self.key);
        if let Some(token) = &self.token {
            request = match self.carry {
                Carry::Cookie => request.header("cookie", format!("tenantry_position={token}")),
                Carry::Header => request.header("tenantry-position", token),
                Carry::Nothing => request,
            };
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        request
    }

    /// Takes over what an answer says about the position.
    pub(crate) fn take(&mut self, answer: &Answer) {
        match self.carry {
            Carry::Cookie => {
                for cookie in answer.headers.get_all(SET_COOKIE) {
                    let cookie = cookie.to_str().unwrap();
                    let Some(rest) = cookie.strip_prefix("tenantry_position=") else {
                        continue;
                    };
                    let (value, attributes) = rest.split_once(';').unwrap();
                    self.token = (!attributes.contains("Max-Age=0")).then(|| value.to_owned());
                }
            }
            Carry::Header => {
                let token = answer.header("tenantry-position");
                self.token = (!token.is_empty()).then(|| token.to_owned());
            }
            Carry::Nothing => {}
        }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    /// Makes an invoice and says its id.
    pub(crate) async fn invoice(&mut self, customer: &str) -> String {
        let new = json!({ "customer": customer, "amount_cents": 100, "currency": "EUR" });
        let invoice = self.send(Method::POST, "/invoices", Some(&new)).await.expect(201);
        invoice["id"].as_str().unwrap().to_owned()
    }

    /// Ids on the first page of the list, and who served it.
    pub(crate) async fn list(&mut self) -> (Vec<String>, String) {
        let answer = self.get("/invoices?limit=200").await;
        let list = answer.expect(200);
        let items = list["items"].as_array().unwrap();
        let ids = items
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, served_by(&answer))
    }
}

pub(crate) fn served_by(answer: &Answer) -> String {
    answer.header("tenantry-served-by").to_owned()
}
