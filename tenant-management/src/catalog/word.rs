//! Word of new revisions, by `NOTIFY`.

use std::time::Duration;

use sqlx::{
    Executor,
    postgres::{PgListener, PgPoolOptions},
};

use super::{ACQUIRE_TIMEOUT, Catalog, CatalogError};
use crate::ids::Revision;

/// The channel that [`revision::next`](super::revision::next) speaks on.
const CHANNEL: &str = "tenantry_revision";
/// After so long without word the connection is asked whether it is still one: a listener sends nothing, and would never notice
/// a peer that is gone without a farewell.
const QUIET: Duration = Duration::from_secs(5);

/// A connection that hears of new revisions.
#[derive(Debug)]
pub(crate) struct Word {
    listener: PgListener,
}

impl Catalog {
    /// Listens, on a connection of its own.
    pub(crate) async fn listen(&self) -> Result<Word, CatalogError> {
        let options = self.pool.connect_options().as_ref().clone();
        let own = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options);
        let mut listener = PgListener::connect_with(&own).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(Word { listener })
    }
}

impl Word {
    /// Waits for word and takes all that there is.
    ///
    /// # Errors
    ///
    /// When the connection is lost, and with it perhaps some word.
    pub(crate) async fn heard(&mut self) -> Result<Vec<Option<Revision>>, CatalogError> {
        let lost = |kind: std::io::ErrorKind| CatalogError::from(sqlx::Error::Io(kind.into()));
        let first = loop {
            match tokio::time::timeout(QUIET, self.listener.try_recv()).await {
                Ok(received) => {
                    break received?.ok_or_else(|| lost(std::io::ErrorKind::ConnectionReset))?;
                }
                Err(_quiet) => tokio::time::timeout(ACQUIRE_TIMEOUT, self.listener.execute("select 1"))
                    .await
                    .map_err(|_| lost(std::io::ErrorKind::TimedOut))??,
            };
        };
        let mut word = vec![first];
        word.extend(std::iter::from_fn(|| self.listener.next_buffered()));
        Ok(word
            .iter()
            .map(|word| word.payload().parse().ok().map(Revision))
            .collect())
    }
}
