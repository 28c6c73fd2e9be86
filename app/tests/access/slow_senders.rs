//! Clients that send their bodies slowly: they hold nothing that others need.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::common::{Responses, TestApp, cluster, eventually};

/// Connections that send slowly.
const SENDERS: usize = 500;

/// Begins a request whose body comes a byte at a time, and answers the first line of what comes back.
async fn trickle(app: &TestApp, credential: Option<&str>) -> String {
    let mut stream = TcpStream::connect(app.service.address()).await.unwrap();
    let credential = credential.map_or_else(String::new, |key| format!("Authorization: Bearer {key}\r\n"));
    let head = format!(
        "POST /v1/invoices HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 1000\r\n{credential}\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let mut answer = [0; 512];
    let sending = async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if writing.write_all(b" ").await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let read = tokio::select! {
        read = reading.read(&mut answer) => match read {
            Ok(read) => read,
            Err(error) => return error.to_string(),
        },
        () = sending => unreachable!("it never ends"),
    };
    let text = String::from_utf8_lossy(&answer[..read]);
    text.lines().next().unwrap_or_default().to_owned()
}

/// A service that answers before the whole body is there closes the connection, and whoever sends on may find it closed before
/// they have read the answer (RFC 9112, section 9.6).
fn all_refused_with(status: &str, answers: &[String]) {
    let closed = |line: &String| line.is_empty() || line.contains("reset") || line.contains("pipe");
    let (refused, others): (Vec<&String>, Vec<&String>) =
        answers.iter().partition(|line| line.contains(status));
    assert!(others.iter().all(|line| closed(line)), "{others:?}");
    assert!(
        refused.len() > SENDERS * 9 / 10,
        "{} answers with {status}",
        refused.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_slow_senders_hold_up_nobody() {
    let app = TestApp::builder()
        .set("http.body_timeout", "6s")
        .set("limits.concurrent_requests", "4")
        .set("limits.requests_per_second", "0")
        .start()
        .await;
    for tenant in ["acme", "globex"] {
        app.tenant(tenant).await;
    }
    let (key, other) = (app.key("acme", "member").await, app.key("globex", "member").await);
    let uuid = app.whoami(&key).await.expect(200)["uuid"]
        .as_str()
        .unwrap()
        .replace('-', "");

    // Without a credential nobody waits for a body.
    let begun = Instant::now();
    let strangers = futures::future::join_all((0..SENDERS).map(|_| trickle(&app, None))).await;
    all_refused_with("401", &strangers);
    assert!(
        begun.elapsed() < Duration::from_secs(6),
        "they were answered before their bodies were there"
    );

    let senders = futures::future::join_all((0..SENDERS).map(|_| trickle(&app, Some(&key))));
    let others = async {
        let in_flight = async || {
            let text = app.get("/metrics").answer().await.text;
            let line = text
                .lines()
                .find(|line| line.starts_with("tenantry_http_requests_in_flight "))
                .unwrap();
            line.split(' ').nth(1).unwrap().parse::<f64>().unwrap()
        };
        eventually("all of them are at it", async || in_flight().await > 450.0).await;
        let mut admin = PgConnection::connect_with(&cluster().primary().connect_options("postgres"))
            .await
            .unwrap();
        let begun = Instant::now();
        let mut asked = 0;
        while begun.elapsed() < Duration::from_secs(1) {
            for key in [&key, &other] {
                app.whoami(key).await.expect(200);
                let invoice = json!({"customer": "Ann", "amount_cents": 100, "currency": "EUR"});
                let made = app
                    .v1(Method::POST, "/invoices", key)
                    .json(&invoice)
                    .answer()
                    .await;
                made.expect(201);
            }
            asked += 1;
        }
        let connections: i64 = sqlx::query_scalar("select count(*) from pg_stat_activity where datname = $1")
            .bind(format!("t_{uuid}"))
            .fetch_one(&mut admin)
            .await
            .unwrap();
        assert!(
            asked > 0 && connections <= 2,
            "{connections} connections to the tenant's database"
        );
    };
    let (answers, ()) = tokio::join!(senders, others);
    all_refused_with("408", &answers);
}
