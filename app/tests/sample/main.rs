//! The sample feature, as a client sees it. One program, so that all of it shares one cluster.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
mod common;

mod audit_log;
mod idempotency;
mod invoices;
mod payments;
mod profile;
mod reports;
mod tenant;
