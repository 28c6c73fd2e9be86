//! The Tenantry service: configuration, composition, HTTP API, command line and the sample feature.
//!
//! A library only so that tests and benchmarks can start the service in their own process; nothing below imports it.

pub mod cli;
pub mod config;
pub mod dev;
pub mod http;
pub mod sample;
pub mod serve;
pub mod telemetry;
