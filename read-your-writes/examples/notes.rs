//! A service that keeps notes: writes go to the primary, reads to its replica, and nobody misses a note of their own.

use axum::{Extension, Json, Router, extract::State, http::StatusCode, routing::get};
use read_your_writes::{
    Cluster, Consistency, NodeSpec, PositionLayer, PositionSettings, ReadError, ReadSettings, Session,
    TokenKeys,
};
use sqlx::{PgPool, postgres::PgConnectOptions};

type Nodes = Cluster<PgPool>;

/// The service, on a primary and its replica.
pub fn notes(primary: PgConnectOptions, replica: PgConnectOptions, key: [u8; 32]) -> Router {
    let node = |name: &str, options: PgConnectOptions, is_primary| NodeSpec {
        name: name.into(),
        payload: PgPool::connect_lazy_with(options.clone()),
        probe: options,
        is_primary,
    };
    let nodes = vec![node("primary", primary, true), node("replica-1", replica, false)];
    let nodes = Nodes::start("main".into(), nodes, ReadSettings::default());
    let positions = PositionLayer::new(PositionSettings::new(TokenKeys::new(key, [])));
    Router::new()
        .route("/notes", get(list).post(add))
        .layer(positions)
        .with_state(nodes)
}

/// A user wants to see what they have just written, so the read is `Recent`.
async fn list(
    State(nodes): State<Nodes>,
    Extension(session): Extension<Session>,
) -> Result<Json<Vec<String>>, StatusCode> {
    let texts = nodes.read(Consistency::Recent, &session, |pool| async move {
        sqlx::query_scalar("select text from notes order by id")
            .fetch_all(&pool)
            .await
    });
    Ok(Json(texts.await.map_err(status)?))
}

async fn add(
    State(nodes): State<Nodes>,
    Extension(session): Extension<Session>,
    text: String,
) -> Result<StatusCode, StatusCode> {
    let mut connection = nodes
        .primary()
        .payload()
        .acquire()
        .await
        .map_err(|error| failed(&error))?;
    sqlx::query("insert into notes (text) values ($1)")
        .bind(text)
        .execute(&mut *connection)
        .await
        .map_err(|error| failed(&error))?;
    // The insert has been committed. How far the log has got goes into the answer's cookie and header.
    nodes.committed(&mut connection, &session).await;
    Ok(StatusCode::CREATED)
}

fn status(error: ReadError) -> StatusCode {
    match error {
        ReadError::FallbackRefused(_) => StatusCode::SERVICE_UNAVAILABLE,
        ReadError::Sql(error) => failed(&error),
    }
}

fn failed(error: &sqlx::Error) -> StatusCode {
    eprintln!("{error}");
    StatusCode::INTERNAL_SERVER_ERROR
}

/// `PRIMARY_URL=… REPLICA_URL=… cargo run --example notes`
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options =
        |name| -> Result<PgConnectOptions, Box<dyn std::error::Error>> { Ok(std::env::var(name)?.parse()?) };
    // Every instance has the same key; make one with `openssl rand -hex 32` and keep it secret.
    let key = *b"32 bytes, the same everywhere...";
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(
        listener,
        notes(options("PRIMARY_URL")?, options("REPLICA_URL")?, key),
    )
    .await?)
}
