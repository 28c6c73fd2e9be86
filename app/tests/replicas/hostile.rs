//! Positions that nobody has handed out, or for somebody else, are ignored and counted; they never fail a request and never
//! keep reads on the primary.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use read_your_writes::{
    Lsn, Position, PositionLayer, PositionSettings, Positions, Session, Timeline, TokenKeys,
};
use tenant_management::KeyRing;
use tower::{Layer, Service, service_fn};

use crate::{
    client::{Carry, Client, served_by},
    common::eventually,
    world::{MASTER_KEY, World},
};

/// The token that a service with these keys answers a write with.
async fn token(keys: TokenKeys, cluster: &str, position: Position) -> String {
    let cluster: Arc<str> = cluster.into();
    let mut service =
        PositionLayer::new(PositionSettings::new(keys)).layer(service_fn(|request: http::Request<()>| {
            let session: &Session = request.extensions().get().unwrap();
            session.wrote(&cluster, position);
            async { Ok::<_, std::convert::Infallible>(http::Response::new(())) }
        }));
    let response = service.call(http::Request::new(())).await.unwrap();
    response.headers()["tenantry-position"]
        .to_str()
        .unwrap()
        .to_owned()
}

fn keys() -> TokenKeys {
    let (current, _) = KeyRing::new(&MASTER_KEY.to_owned().into(), [])
        .unwrap()
        .derive("positions of clients");
    TokenKeys::new(current, [])
}

fn at(timeline: u32, lsn: u64) -> Position {
    Position::now(Timeline(timeline), Lsn::from_bytes(lsn))
}

async fn read_with(client: &Client, token: &str) -> String {
    let mut client = client.clone();
    client.token = Some(token.to_owned());
    let answer = client.get("/invoices").await;
    answer.expect(200);
    served_by(&answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_that_are_not_the_clients_own_are_ignored_and_counted() {
    let world = World::start().await;
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    instance.replicas_serve().await;
    let good = token(keys(), "main", at(1, 1)).await;
    let bytes = URL_SAFE_NO_PAD.decode(&good).unwrap();
    let mut flipped = bytes.clone();
    flipped[12] ^= 1;
    let far = Position {
        written_at: u64::MAX,
        ..at(1, u64::MAX)
    };
    let mut expired = at(1, u64::MAX);
    expired.written_at -= 3_600_000;
    let hostile = [
        ("malformed", "x".to_owned()),
        ("malformed", good[..10].to_owned()),
        ("malformed", "%%%".to_owned()),
        ("forged", URL_SAFE_NO_PAD.encode(&bytes[..bytes.len() - 1])),
        ("forged", URL_SAFE_NO_PAD.encode(flipped)),
        (
            "forged",
            token(TokenKeys::new([9; 32], []), "main", at(1, u64::MAX)).await,
        ),
        ("oversized", "A".repeat(8 << 10)),
        ("expired", token(keys(), "main", far).await),
        ("expired", token(keys(), "main", expired).await),
    ];
    for carry in [Carry::Cookie, Carry::Header] {
        let client = instance.client(&key, carry);
        for (outcome, token) in &hostile {
            let label = format!("outcome=\"{outcome}\"");
            let labels = [label.as_str()];
            let before = instance.metric("tenantry_position_total", &labels).await;
            // A replica of a busy machine may be too stale for a moment; a position that counted would keep all of them away.
            eventually(&format!("a replica serves: {outcome} by {carry:?}"), async || {
                read_with(&client, token).await.starts_with("replica-")
            })
            .await;
            let counted = instance.metric("tenantry_position_total", &labels).await;
            assert!(counted > before, "{outcome} by {carry:?} is not counted");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_that_cannot_be_reached_do_not_stick() {
    let world = World::start().await;
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    instance.replicas_serve().await;
    let mut long_ago = at(1, 1 << 60);
    long_ago.written_at -= 60_000;
    for (what, position) in [
        ("far in the future of the log", at(1, 1 << 60)),
        ("the same, written a minute ago", long_ago),
        ("a timeline to come", at(7, 1)),
        ("a timeline of the past", at(0, 1)),
    ] {
        let mut client = instance.client(&key, Carry::Cookie);
        client.token = Some(token(keys(), "main", position).await);
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            let (_, by) = client.list().await;
            if by.starts_with("replica-") && client.token.is_none() {
                break;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{what}: still served by {by}"
            );
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_of_an_unknown_cluster_means_the_primary_and_one_of_another_cluster_nothing() {
    let world = World::start().await;
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    instance.replicas_serve().await;
    let client = instance.client(&key, Carry::Header);
    let unknown = token(keys(), "elsewhere", at(1, 1)).await;
    assert_eq!(read_with(&client, &unknown).await, "primary");
    let mut positions = Positions::default();
    positions.raise(&"main".into(), at(1, 1));
    let reached = token(keys(), "main", at(1, 1)).await;
    assert!(read_with(&client, &reached).await.starts_with("replica-"));
}
