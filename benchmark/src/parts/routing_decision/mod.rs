//! The routing table of the service, without any server: look-ups, changes and memory.
//!
//! [`look_ups`], [`changes`] and [`memory`] measure; [`fleet`] makes rows as an instance reads them from the catalog.

pub mod changes;
pub mod fleet;
pub mod look_ups;
pub mod memory;
mod section;

use serde::{Deserialize, Serialize};

pub use self::section::section;
use super::Extent;

/// Tenants in the table whose look-ups are measured.
pub const TENANTS: usize = 100_000;

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
    /// Look-ups in a table of [`TENANTS`].
    pub look_ups: look_ups::Data,
    /// Changes of one row in tables of different size.
    pub changes: changes::Data,
    /// Memory for tenants that nobody uses.
    pub memory: memory::Data,
}

/// Measures.
///
/// # Errors
///
/// When the process that weighs a table cannot be started.
pub fn measure(extent: Extent) -> anyhow::Result<Data> {
    Ok(Data {
        look_ups: look_ups::measure(extent),
        changes: changes::measure(extent),
        memory: memory::measure(extent)?,
    })
}
