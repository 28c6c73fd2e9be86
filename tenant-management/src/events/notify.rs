//! Word by PostgreSQL's `NOTIFY` on the catalog, which needs nothing but the catalog.

use super::{Ear, EventError, Transport, Word};
use crate::{
    catalog::{Catalog, word},
    ids::Revision,
};

/// The way through the catalog. Whoever takes a revision says so in the same transaction, so that nobody hears of a change
/// that did not happen, or before it did, and there is nothing left to say afterwards.
#[derive(Debug)]
pub(crate) struct ByCatalog {
    pub(crate) catalog: Catalog,
}

impl Transport for ByCatalog {
    type Ear = word::Word;

    async fn listen(&self) -> Result<word::Word, EventError> {
        Ok(self.catalog.listen().await?)
    }

    async fn say(&self, _: Revision) -> Result<(), EventError> {
        Ok(())
    }
}

impl Ear for word::Word {
    async fn hear(&mut self) -> Result<Word, EventError> {
        Ok(self.heard().await?.into_iter().collect())
    }
}
