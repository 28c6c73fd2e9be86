//! The service over HTTP, as a client sees it. One program, so that all of it shares one cluster.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
mod common;

mod control;
mod credentials;
mod description;
mod hostile;
mod idempotency;
mod process;
mod raw;
mod shutdown;
mod surface;
mod without_catalog;
