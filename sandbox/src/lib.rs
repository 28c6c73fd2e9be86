#![doc = include_str!("../README.md")]
//!
//! This crate owns servers, their processes, folders and ports. It refuses to know what they are used for.

mod account;
mod binaries;
mod broker;
mod builder;
mod cluster;
mod error;
mod folder;
mod guardian;
mod logfile;
mod node;
mod pidfile;
mod port;
mod process;
mod proxy;
mod secret;
mod settings;
mod start;
mod state;
mod template;
mod tool;
mod wait;

pub use binaries::{Binaries, ServerVersion};
pub use broker::{Broker, BrokerBuilder, BrokerConnection, BrokerQueue, BrokerRoute};
pub use builder::ClusterBuilder;
pub use cluster::Cluster;
pub use error::SandboxError;
pub use node::Node;
pub use proxy::Proxy;
