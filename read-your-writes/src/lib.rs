#![doc = include_str!("../README.md")]

mod consistency;
mod lsn;
mod position;

pub use consistency::Consistency;
pub use lsn::{Lsn, ParseLsnError};
pub use position::{Position, Timeline};
