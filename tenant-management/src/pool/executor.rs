//! sqlx's `Executor` for connections on loan: each statement is inspected, counted and followed to its end.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures::{
    Stream, StreamExt,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};
use sqlx::{
    Describe, Either, Execute, Executor, Postgres, SqlStr,
    error::BoxDynError,
    postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};

use super::{
    connection::TenantConnection,
    watch::{Pending, Watch},
};

type Step = Result<Either<PgQueryResult, PgRow>, sqlx::Error>;

impl<'c> Executor<'c> for &'c mut TenantConnection {
    type Database = Postgres;

    fn fetch_many<'e, 'q, E>(self, query: E) -> BoxStream<'e, Step>
    where
        'c: 'e,
        E: Execute<'q, Postgres>,
        'q: 'e,
        E: 'q,
    {
        let query = Inspected::new(query);
        let (connection, watch) = self.parts();
        match watch.admit(query.sql.as_str()) {
            Ok(pending) => {
                let steps = connection.fetch_many(query);
                Watched {
                    steps,
                    watch,
                    pending,
                    state: Progress::Unsent,
                }
                .boxed()
            }
            Err(refusal) => stream::once(future::ready(Err(refusal.into()))).boxed(),
        }
    }

    fn fetch_optional<'e, 'q, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: Execute<'q, Postgres>,
        'q: 'e,
        E: 'q,
    {
        let query = Inspected::new(query);
        Box::pin(async move {
            let (connection, watch) = self.parts();
            let pending = watch.admit(query.sql.as_str())?;
            followed(watch, pending, connection.fetch_optional(query)).await
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let (connection, watch) = self.parts();
            let pending = watch.admit(sql.as_str())?;
            followed(
                watch,
                pending.without_effect(),
                connection.prepare_with(sql, parameters),
            )
            .await
        })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(async move {
            let (connection, watch) = self.parts();
            let pending = watch.admit(sql.as_str())?;
            followed(watch, pending.without_effect(), connection.describe(sql)).await
        })
    }
}

/// Runs one exchange with the server and notes how it ended. When it is dropped before, the connection stays "busy".
async fn followed<T>(
    watch: &mut Watch,
    pending: Pending,
    exchange: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    watch.started(pending);
    let result = exchange.await;
    match &result {
        Ok(_) => watch.succeeded(pending),
        Err(error) => watch.failed(pending, error),
    }
    result
}

/// A query taken apart, so that its text can be looked at before it is sent.
struct Inspected {
    sql: SqlStr,
    statement: Option<PgStatement>,
    arguments: Option<Result<Option<PgArguments>, BoxDynError>>,
    persistent: bool,
}

impl Inspected {
    fn new<'q>(mut query: impl Execute<'q, Postgres>) -> Self {
        let statement = query.statement().cloned();
        let arguments = Some(query.take_arguments());
        let persistent = query.persistent();
        Self {
            sql: query.sql(),
            statement,
            arguments,
            persistent,
        }
    }
}

impl Execute<'_, Postgres> for Inspected {
    fn sql(self) -> SqlStr {
        self.sql
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.statement.as_ref()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.arguments.take().unwrap_or(Ok(None))
    }

    fn persistent(&self) -> bool {
        self.persistent
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Unsent,
    Running,
    Ended,
}

/// The answers to a statement, and a note of how it ended.
struct Watched<'e> {
    steps: BoxStream<'e, Step>,
    watch: &'e mut Watch,
    pending: Pending,
    state: Progress,
}

impl Stream for Watched<'_> {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        let this = &mut *self;
        if this.state == Progress::Unsent {
            this.watch.started(this.pending);
            this.state = Progress::Running;
        }
        let step = this.steps.poll_next_unpin(cx);
        if this.state == Progress::Running {
            match &step {
                Poll::Pending | Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => {
                    this.watch.failed(this.pending, error);
                    this.state = Progress::Ended;
                }
                Poll::Ready(None) => {
                    this.watch.succeeded(this.pending);
                    this.state = Progress::Ended;
                }
            }
        }
        step
    }
}

/// sqlx's `Executor` for a type with a method `connection(&mut self) -> &mut TenantConnection`, by passing everything on.
macro_rules! execute_on_connection {
    ($type:ty) => {
        impl<'c> sqlx::Executor<'c> for &'c mut $type {
            type Database = sqlx::Postgres;

            fn fetch_many<'e, 'q, E>(
                self,
                query: E,
            ) -> futures::stream::BoxStream<
                'e,
                Result<sqlx::Either<sqlx::postgres::PgQueryResult, sqlx::postgres::PgRow>, sqlx::Error>,
            >
            where
                'c: 'e,
                E: sqlx::Execute<'q, sqlx::Postgres>,
                'q: 'e,
                E: 'q,
            {
                self.connection().fetch_many(query)
            }

            fn fetch_optional<'e, 'q, E>(
                self,
                query: E,
            ) -> futures::future::BoxFuture<'e, Result<Option<sqlx::postgres::PgRow>, sqlx::Error>>
            where
                'c: 'e,
                E: sqlx::Execute<'q, sqlx::Postgres>,
                'q: 'e,
                E: 'q,
            {
                self.connection().fetch_optional(query)
            }

            fn prepare_with<'e>(
                self,
                sql: sqlx::SqlStr,
                parameters: &'e [sqlx::postgres::PgTypeInfo],
            ) -> futures::future::BoxFuture<'e, Result<sqlx::postgres::PgStatement, sqlx::Error>>
            where
                'c: 'e,
            {
                self.connection().prepare_with(sql, parameters)
            }

            fn describe<'e>(
                self,
                sql: sqlx::SqlStr,
            ) -> futures::future::BoxFuture<'e, Result<sqlx::Describe<sqlx::Postgres>, sqlx::Error>>
            where
                'c: 'e,
            {
                self.connection().describe(sql)
            }
        }
    };
}
pub(crate) use execute_on_connection;
