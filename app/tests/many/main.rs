//! Many instances, each a process of its own, on one catalog: what they agree on, and what happens to them when the broker, the
//! catalog or one of them goes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod broker;
mod catalog;
mod convergence;
mod frozen;
mod instance;
mod restart;
mod start;
mod world;
