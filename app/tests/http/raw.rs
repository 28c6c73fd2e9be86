//! What no well-behaved client sends: written to the socket as it is.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::common::{OPERATOR_TOKEN, TestApp};

/// Sends bytes and reads until the service closes the connection.
async fn exchange(app: &TestApp, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(app.service.address()).await.unwrap();
    // The service may refuse before it has read all.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer));
    let _ = read.await.expect("the service closes the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_too_large_is_refused() {
    let app = TestApp::start().await;
    let filler = "x".repeat(9_000);
    let long_path = format!("GET /{filler} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let answer = exchange(&app, long_path.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 414 ") && answer.contains("/problems/uri-too-long"),
        "{answer}"
    );

    let headers: String = (0..4).map(|number| format!("x-{number}: {filler}\r\n")).collect();
    let large_head = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    let answer = exchange(&app, large_head.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 431 ") && answer.contains("/problems/headers-too-large"),
        "{answer}"
    );

    let endless: Vec<u8> = [b"GET / HTTP/1.1\r\nx: ".to_vec(), vec![b'x'; 2_000_000]].concat();
    let answer = exchange(&app, &endless).await;
    assert!(
        answer.starts_with("HTTP/1.1 431 ") || answer.is_empty(),
        "{answer:.200}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_is_refused() {
    let app = TestApp::start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /livez HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n",
    ] {
        let answer = exchange(&app, bytes).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_sends_headers_slowly_is_dropped() {
    let app = TestApp::builder()
        .set("http.header_timeout", "300ms")
        .start()
        .await;
    for beginning in [&b""[..], b"GET /livez HTTP/1.1\r\nhost: local"] {
        let started = Instant::now();
        exchange(&app, beginning).await;
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_makes_nothing() {
    let app = TestApp::start().await;
    let head = format!(
        "POST /control/v1/tenants HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {OPERATOR_TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{\"id\":\"acme\"}}"
    );
    let mut stream = TcpStream::connect(app.service.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(
        answer.is_empty() || answer.contains("/problems/malformed-body"),
        "{answer}"
    );
    assert_eq!(app.count("select count(*) from tenants").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_are_not_one() {
    let app = TestApp::start().await;
    app.tenant("acme").await;
    app.tenant("globex").await;
    let key = app.key("acme", "viewer").await;
    let ask = async |target: &str, hosts: &str| {
        let request = format!(
            "GET {target} HTTP/1.1\r\n{hosts}authorization: Bearer {key}\r\nconnection: close\r\n\r\n"
        );
        exchange(&app, request.as_bytes()).await
    };
    assert!(
        ask("/v1/whoami", "host: acme.localhost\r\n")
            .await
            .starts_with("HTTP/1.1 200 ")
    );
    let twice = ask("/v1/whoami", "host: acme.localhost\r\nhost: globex.localhost\r\n").await;
    assert!(twice.starts_with("HTTP/1.1 400 "), "{twice}");
    let absolute = ask("http://globex.localhost/v1/whoami", "host: acme.localhost\r\n").await;
    assert!(absolute.contains("/problems/wrong-tenant"), "{absolute}");
}
