//! The service over HTTP: what every operation shares, and how the routes are put together.
//!
//! Refuses to know how a listener works and where settings come from; see [`crate::serve`] and [`crate::config`].

mod access_log;
mod api_keys;
mod client_address;
mod control;
mod cors;
mod health;
pub mod idempotency;
pub mod json;
mod limits;
mod metrics;
mod openapi;
mod people;
pub mod problem;
pub mod query;
pub mod request_id;
mod router;
mod security_headers;
mod state;
pub mod validate;

pub use router::{Routes, routes};
pub use state::{AppState, Limits};
