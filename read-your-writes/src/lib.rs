#![doc = include_str!("../README.md")]

mod cluster;
mod consistency;
mod fault;
mod layer;
mod lsn;
pub mod metrics;
mod position;
mod recollection;
mod session;
mod settings;
mod token;

pub use cluster::{
    Chosen, Cluster, FallbackRefused, Ineligible, Node, NodeSpec, NodeStatus, ReadError, Reason,
};
pub use consistency::{Consistency, ReadLevel};
pub use fault::Fault;
pub use layer::{Carried, PositionLayer, PositionService, PositionSettings};
pub use lsn::{LogGeometry, Lsn, ParseLsnError};
pub use position::{Position, Positions, Timeline};
pub use session::{ServedBy, Session, Summary};
pub use settings::{Mode, ReadSettings};
pub use token::{LONGEST_TOKEN, SessionId, TokenFault, TokenKeys};
