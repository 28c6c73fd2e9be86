//! Reads from replicas, as a client sees them, on real clusters that are paused, cut, killed and promoted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
mod common;

mod client;
mod cost;
mod failover;
mod hostile;
mod lag;
mod overload;
mod own_writes;
mod replica_faults;
mod storm;
mod world;
