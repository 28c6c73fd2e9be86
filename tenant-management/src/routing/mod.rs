//! Which tenant lives where, as every request asks it.
//!
//! [`table`] holds immutable snapshots that are replaced whole; [`follower`] keeps the table up with the catalog;
//! [`resolver`] answers requests, and asks the catalog once when the table does not know a name. There is no default route,
//! and no type that could hold one.

pub(crate) mod digest;
pub(crate) mod follower;
pub mod resolver;
mod snapshot;
pub mod table;
