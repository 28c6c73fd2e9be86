//! The watch over nodes, on real servers that are frozen, killed, cut off, promoted and mistaken for others.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod choosing;
mod faults;
mod mistakes;
mod support;
