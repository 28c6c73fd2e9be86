//! The futures of reads and writes can be used in handlers on a runtime with several threads.

use std::collections::HashMap;

use sqlx::{FromRow, postgres::PgRow};
use tenant_management::data::{Consistency, DataError, ReadConnection, TenantDb, WriteTransaction, context};

fn assert_send<T: Send>(future: T) -> T {
    future
}

#[derive(Debug, thiserror::Error)]
enum DomainError {
    #[error("no such invoice")]
    NotFound,
    #[error(transparent)]
    Data(#[from] DataError),
}

impl From<sqlx::Error> for DomainError {
    fn from(error: sqlx::Error) -> Self {
        Self::Data(error.into())
    }
}

#[derive(FromRow)]
struct Invoice {
    #[expect(dead_code, reason = "only its type matters here")]
    id: i64,
}

/// A repository that borrows from itself, its arguments and its caller.
struct Invoices {
    table_hint: String,
    limits: HashMap<String, i64>,
}

impl Invoices {
    async fn find(&self, db: &TenantDb, customer: &str, ids: &[i64]) -> Result<Vec<Invoice>, DomainError> {
        db.read(Consistency::Recent, async |mut conn| {
            let limit = self.limits.get(customer).copied().unwrap_or(10);
            let invoices: Vec<Invoice> =
                sqlx::query_as("select id from invoices where customer = $1 limit $2")
                    .bind(customer)
                    .bind(limit)
                    .fetch_all(&mut *conn)
                    .await?;
            let more: Option<Invoice> = sqlx::query_as("select id from invoices where id = any($1)")
                .bind(ids)
                .fetch_optional(&mut *conn)
                .await?;
            more.ok_or(DomainError::NotFound)?;
            Ok(invoices)
        })
        .await
    }

    async fn add(&self, db: &TenantDb, customer: String) -> Result<i64, DomainError> {
        db.write(async |mut tx| {
            audit(&mut tx, &self.table_hint).await?;
            let id: i64 = sqlx::query_scalar("insert into invoices (customer) values ($1) returning id")
                .bind(&customer)
                .fetch_one(&mut *tx)
                .await?;
            sqlx::query("update t set x = $1")
                .bind(customer)
                .execute(&mut *tx)
                .await?;
            Ok(id)
        })
        .await
    }

    async fn count(&self) -> Result<i64, DataError> {
        let db = context::current().expect("the test is about types");
        db.snapshot(Consistency::Eventual, async |mut conn| {
            first(&mut conn).await?;
            let count: i64 = sqlx::query_scalar("select count(*) from invoices")
                .fetch_one(&mut *conn)
                .await?;
            Ok(count)
        })
        .await
    }
}

async fn audit(tx: &mut WriteTransaction, what: &str) -> Result<(), sqlx::Error> {
    sqlx::query("insert into audit (what) values ($1)")
        .bind(what)
        .execute(&mut *tx)
        .await
        .map(|_| ())
}

async fn first(conn: &mut ReadConnection) -> Result<Option<PgRow>, DataError> {
    Ok(sqlx::query("select 1").fetch_optional(conn).await?)
}

/// A handler as a framework wants it: a function whose future is `Send` and `'static`.
async fn handler(db: TenantDb, customer: String) -> Result<usize, DomainError> {
    let invoices = Invoices {
        table_hint: "x".into(),
        limits: HashMap::new(),
    };
    let id = invoices.add(&db, customer.clone()).await?;
    let found = invoices.find(&db, &customer, &[id]).await?;
    let rows = db
        .read(Consistency::Strict, async |mut conn| {
            let name: &str = &customer;
            sqlx::query_as::<_, Invoice>("select id from invoices where customer = $1")
                .bind(name)
                .fetch_all(&mut conn)
                .await
                .map_err(DomainError::from)
        })
        .await?;
    let counted = context::scope(db, async move { invoices.count().await }).await?;
    Ok(found.len() + rows.len() + usize::try_from(counted).unwrap_or_default())
}

fn spawn<F>(_: F)
where
    F: Future<Output = Result<usize, DomainError>> + Send + 'static,
{
}

#[expect(dead_code, reason = "that it compiles is the test")]
fn futures_are_send(db: &TenantDb, customer: &str) {
    spawn(handler(db.clone(), customer.to_owned()));
    drop(assert_send(async move {
        let ids = vec![1_i64];
        let read = assert_send(db.read(Consistency::Recent, async |mut conn| {
            sqlx::query_scalar::<_, i64>("select id from t where x = $1 and y = any($2)")
                .bind(customer)
                .bind(&ids)
                .fetch_all(&mut *conn)
                .await
                .map_err(DataError::from)
        }));
        read.await
    }));
}

#[test]
fn futures_of_reads_and_writes_are_send() {
    // The functions above would not compile otherwise.
}
