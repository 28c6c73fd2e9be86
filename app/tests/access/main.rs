//! The right people get in, and only to their own tenant: every operation and every kind of credential.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
mod common;

mod attacks;
mod audit;
mod browser;
mod invitations;
mod issuer;
mod limits;
mod matrix;
mod operators;
mod origins;
mod revocation;
mod sessions;
mod slow_senders;
mod walk;
