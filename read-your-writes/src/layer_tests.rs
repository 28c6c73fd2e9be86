use std::{convert::Infallible, sync::Arc};

use tower::{ServiceExt, service_fn};

use super::*;
use crate::{Lsn, Position, ServedBy, Timeline};

fn layer() -> PositionLayer {
    PositionLayer::new(PositionSettings::new(TokenKeys::new([7; 32], [])))
}

fn at(lsn: u64) -> Position {
    Position::now(Timeline(1), Lsn::from_bytes(lsn))
}

fn main_cluster() -> Arc<str> {
    "main".into()
}

/// What a client keeps between its requests.
#[derive(Clone, Default)]
struct Client {
    cookie: Option<String>,
    header: Option<HeaderValue>,
}

impl Client {
    fn request(&self) -> Request<()> {
        let mut request = Request::new(());
        let mut cookies = "theme=dark".to_owned();
        if let Some(cookie) = &self.cookie {
            cookies += &format!("; tenantry_position={cookie}");
        }
        request.headers_mut().insert(COOKIE, cookies.parse().unwrap());
        if let Some(header) = &self.header {
            request.headers_mut().insert("tenantry-position", header.clone());
        }
        request
    }

    /// Takes over what a response says, as a browser does.
    fn take_cookie(&mut self, headers: &HeaderMap) {
        for cookie in headers.get_all(SET_COOKIE) {
            let (pair, attributes) = cookie.to_str().unwrap().split_once(';').unwrap();
            let value = pair.strip_prefix("tenantry_position=").unwrap();
            assert!(
                attributes.contains("HttpOnly") && attributes.contains("Secure"),
                "{attributes}"
            );
            self.cookie = (!attributes.contains("Max-Age=0")).then(|| value.to_owned());
        }
    }
}

/// Sends a request to a handler that works with its session.
async fn send(layer: &PositionLayer, client: &Client, handler: impl Fn(&Session)) -> HeaderMap {
    let handler = &handler;
    let service = layer.layer(service_fn(|request: Request<()>| async move {
        handler(request.extensions().get().expect("each request has a session"));
        Ok::<_, Infallible>(Response::new(()))
    }));
    let response = service.oneshot(client.request()).await.unwrap();
    response.headers().clone()
}

/// What a request knows when it arrives.
async fn known(layer: &PositionLayer, client: &Client) -> Option<Position> {
    let known = parking_lot::Mutex::new(None);
    send(layer, client, |session| *known.lock() = session.position("main")).await;
    known.into_inner()
}

#[tokio::test]
async fn a_write_is_known_to_the_next_request_by_cookie_and_by_header() {
    let written = at(10);
    let headers = send(&layer(), &Client::default(), |session| {
        session.wrote(&main_cluster(), written);
    })
    .await;
    // Another instance with the same keys.
    let mut browser = Client::default();
    browser.take_cookie(&headers);
    assert_eq!(known(&layer(), &browser).await, Some(written));
    let script = Client {
        header: headers.get("tenantry-position").cloned(),
        cookie: None,
    };
    assert_eq!(known(&layer(), &script).await, Some(written));
    assert_eq!(known(&layer(), &Client::default()).await, None);
}

#[tokio::test]
async fn of_cookie_and_header_the_greater_counts() {
    let (layer, main) = (layer(), main_cluster());
    let mut client = Client::default();
    let earlier = send(&layer, &client, |session| session.wrote(&main, at(10))).await;
    let other = PositionLayer::new(layer.carrier.settings.clone());
    let later = send(&other, &client, |session| session.wrote(&main, at(20))).await;
    for (cookie, header) in [(&earlier, &later), (&later, &earlier)] {
        client.take_cookie(cookie);
        client.header = header.get("tenantry-position").cloned();
        assert_eq!(known(&other, &client).await.unwrap().lsn, Lsn::from_bytes(20));
    }
}

#[tokio::test]
async fn two_writes_at_once_are_both_known_whichever_answer_comes_last() {
    let main = main_cluster();
    for has_session in [false, true] {
        for reversed in [false, true] {
            let layer = layer();
            let mut client = Client::default();
            if has_session {
                let headers = send(&layer, &client, |session| session.wrote(&main, at(1))).await;
                client.take_cookie(&headers);
            }
            // Both begin before either is answered.
            let barrier = tokio::sync::Barrier::new(2);
            let write = |lsn| {
                let (barrier, main) = (&barrier, &main);
                let service = layer.layer(service_fn(move |request: Request<()>| async move {
                    barrier.wait().await;
                    let session: &Session = request.extensions().get().unwrap();
                    session.wrote(main, at(lsn));
                    Ok::<_, Infallible>(Response::new(()))
                }));
                service.oneshot(client.request())
            };
            let (one, other) = tokio::join!(write(10), write(20));
            let mut answers = [one.unwrap(), other.unwrap()];
            if reversed {
                answers.reverse();
            }
            for answer in &answers {
                client.take_cookie(answer.headers());
            }
            let known = known(&layer, &client).await;
            assert_eq!(
                known.map(|known| known.lsn),
                Some(Lsn::from_bytes(20)),
                "session {has_session}, reversed {reversed}"
            );
        }
    }
}

#[tokio::test]
async fn a_reached_position_is_taken_away_and_an_unchanged_one_is_not_sent_again() {
    let (layer, main) = (layer(), main_cluster());
    let mut client = Client::default();
    let written = at(10);
    let headers = send(&layer, &client, |session| session.wrote(&main, written)).await;
    client.take_cookie(&headers);
    let headers = send(&layer, &client, |_| {}).await;
    assert!(!headers.contains_key(SET_COOKIE) && headers.contains_key("tenantry-position"));
    let headers = send(&layer, &client, |session| {
        assert!(session.replace(&main, written, None));
    })
    .await;
    assert!(!headers.contains_key("tenantry-position"));
    client.take_cookie(&headers);
    assert_eq!(client.cookie, None);
    assert_eq!(known(&layer, &client).await, None);
}

#[tokio::test]
async fn a_token_is_not_taken_away_from_a_session_that_writes_meanwhile() {
    let (layer, main) = (layer(), main_cluster());
    let mut client = Client::default();
    let written = at(10);
    let headers = send(&layer, &client, |session| session.wrote(&main, written)).await;
    client.take_cookie(&headers);
    // The read is answered before the write, and its answer arrives after the write's.
    let read = send(&layer, &client, |session| {
        session.replace(&main, written, None);
    })
    .await;
    let write = send(&layer, &client, |session| session.wrote(&main, at(20))).await;
    client.take_cookie(&write);
    client.take_cookie(&read);
    assert_eq!(client.cookie, None);
    assert_eq!(known(&layer, &client).await.unwrap().lsn, Lsn::from_bytes(20));
}

#[tokio::test]
async fn what_cannot_be_read_is_ignored() {
    let layer = layer();
    let foreign = PositionLayer::new(PositionSettings::new(TokenKeys::new([8; 32], [])));
    let headers = send(&foreign, &Client::default(), |session| {
        session.wrote(&main_cluster(), at(10));
    })
    .await;
    let foreign = headers["tenantry-position"].to_str().unwrap().to_owned();
    for token in ["", "x", "%%%", &foreign, &foreign[1..], &"A".repeat(8 << 10)] {
        let client = Client {
            cookie: Some(token.to_owned()),
            header: Some(token.parse().unwrap()),
        };
        assert_eq!(known(&layer, &client).await, None, "{token}");
    }
}

#[tokio::test]
async fn positions_end_with_their_life_and_do_not_come_from_the_far_future() {
    let (layer, main) = (layer(), main_cluster());
    let now = at(10).written_at;
    for written_at in [now - 601_000, now + 700_000, u64::MAX] {
        let position = Position { written_at, ..at(10) };
        let headers = send(&layer, &Client::default(), |session| {
            session.wrote(&main, position);
        })
        .await;
        let client = Client {
            cookie: None,
            header: headers.get("tenantry-position").cloned(),
        };
        let other = PositionLayer::new(layer.carrier.settings.clone());
        assert_eq!(known(&other, &client).await, None, "{written_at}");
    }
}

#[tokio::test]
async fn the_response_says_who_served() {
    let headers = send(&layer(), &Client::default(), |session| {
        session.served(
            ServedBy::Replica("replica-1".into()),
            Some(Duration::from_millis(12)),
        );
        session.served(ServedBy::Primary, None);
    })
    .await;
    assert_eq!(headers["tenantry-served-by"], "replica-1, primary");
    assert_eq!(headers["tenantry-staleness-ms"], "12");
}
