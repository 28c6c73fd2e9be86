#![doc = include_str!("../README.md")]

pub mod load;
pub mod memory;
pub mod parts;
pub mod platform;
pub mod raw;
pub mod report;
pub mod stats;
pub mod world;
