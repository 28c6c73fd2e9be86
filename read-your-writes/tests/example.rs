//! The example of the README is the one in `examples/`, and does what it says.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, unreachable_pub, reason = "its main function is for people")]
#[path = "../examples/notes.rs"]
mod notes;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request},
};
use sqlx::{Connection, Executor, PgConnection};
use tower::ServiceExt;

async fn send(service: &Router, request: Request<Body>) -> (HeaderMap, Vec<u8>) {
    let response = service.clone().oneshot(request).await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
    let headers = response.headers().clone();
    (
        headers,
        to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec(),
    )
}

fn list(cookie: Option<&str>) -> Request<Body> {
    let mut request = Request::get("/notes");
    if let Some(cookie) = cookie {
        request = request.header("cookie", cookie);
    }
    request.body(Body::empty()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_misses_a_note_of_their_own() {
    let servers = sandbox::Cluster::builder().replicas(1).start().await.unwrap();
    let options = |node: &sandbox::Node| node.connect_options("postgres");
    let mut admin = PgConnection::connect_with(&options(servers.primary()))
        .await
        .unwrap();
    admin
        .execute(
            "create table notes (id bigint generated always as identity primary key, text text not null)",
        )
        .await
        .unwrap();
    let service = notes::notes(options(servers.primary()), options(servers.replica(0)), [7; 32]);
    servers.wait_caught_up().await.unwrap();
    // The replica serves those who have written nothing.
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let (headers, _) = send(&service, list(None)).await;
        if headers["tenantry-served-by"] == "replica-1" {
            break;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "the replica does not serve"
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    servers.replica(0).pause_replay().await.unwrap();
    let (headers, _) = send(
        &service,
        Request::post("/notes").body(Body::from("milk")).unwrap(),
    )
    .await;
    let cookie = headers["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let (headers, body) = send(&service, list(Some(cookie))).await;
    assert_eq!(
        (headers["tenantry-served-by"].to_str().unwrap(), &*body),
        ("primary", &br#"["milk"]"#[..])
    );
    let (headers, body) = send(&service, list(None)).await;
    assert_eq!(
        (headers["tenantry-served-by"].to_str().unwrap(), &*body),
        ("replica-1", &b"[]"[..])
    );
}

#[test]
fn the_readme_shows_it() {
    let (readme, example) = (include_str!("../README.md"), include_str!("../examples/notes.rs"));
    let shown = example.split_once("\n\n").unwrap().1.trim_end();
    assert!(
        readme.contains(shown),
        "README.md shows another example than examples/notes.rs"
    );
}
