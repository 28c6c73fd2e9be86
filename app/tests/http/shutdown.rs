//! How an instance ends: in order, and in bounded time.

use std::time::{Duration, Instant};

use reqwest::{Method, header::CONTENT_TYPE};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::common::{OPERATOR_TOKEN, Responses, TestApp, eventually, slow_body};

#[tokio::test(flavor = "multi_thread")]
async fn it_says_so_first_and_finishes_what_it_has_begun() {
    let app = TestApp::builder().set("http.shutdown_delay", "1s").start().await;
    let (parts, body) = slow_body();
    let request = app
        .control(Method::POST, "/tenants")
        .header(CONTENT_TYPE, "application/json")
        .body(body);
    let in_flight = tokio::spawn(request.answer());
    parts.send(b"{\"id\":").unwrap();
    eventually("the request is in flight", async || {
        let metrics = app.get("/metrics").answer().await.text;
        metrics.lines().any(|line| {
            line.strip_prefix("tenantry_http_requests_in_flight ")
                .is_some_and(|n| n != "0" && n != "1")
        })
    })
    .await;

    let TestApp { service, client, .. } = app;
    let address = service.address();
    let stopping = tokio::spawn(service.stop());
    eventually("readiness ends", async || {
        let answer = client.get(format!("http://{address}/readyz")).answer().await;
        let body = answer.json();
        let listener = body["parts"]
            .as_array()
            .unwrap()
            .iter()
            .find(|part| part["part"] == "listener");
        answer.status == 503 && listener.unwrap()["ready"] == false
    })
    .await;
    eventually("no more connections are taken", async || {
        TcpStream::connect(address).await.is_err()
    })
    .await;
    assert!(!stopping.is_finished(), "the request in flight is waited for");

    parts.send(b"\"acme\"}").unwrap();
    drop(parts);
    in_flight.await.unwrap().expect(201);
    tokio::time::timeout(Duration::from_secs(10), stopping)
        .await
        .expect("it has ended")
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_not_wait_for_ever() {
    let app = TestApp::builder()
        .set("http.shutdown_grace", "300ms")
        .set("http.body_timeout", "60s")
        .start()
        .await;
    let mut idle = TcpStream::connect(app.service.address()).await.unwrap();
    let mut endless = TcpStream::connect(app.service.address()).await.unwrap();
    let head = format!(
        "POST /control/v1/tenants HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {OPERATOR_TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\nexpect: 100-continue\r\n\r\n"
    );
    endless.write_all(head.as_bytes()).await.unwrap();
    let mut said = [0; 12];
    endless.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"HTTP/1.1 100");

    let started = Instant::now();
    app.service.stop().await;
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    for stream in [&mut idle, &mut endless] {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(1), stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "the connection is closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_taken_is_named() {
    let app = TestApp::start().await;
    let address = app.service.address().to_string();
    let config = crate::common::config(
        &app.catalog,
        &[("TENANTRY__HTTP__LISTEN".to_owned(), address.clone())],
    );
    let error = app::serve::start(config).await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot listen on {address}: ")),
        "{error}"
    );
}
