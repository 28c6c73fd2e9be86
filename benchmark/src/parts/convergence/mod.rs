//! How long a creation takes until every instance serves the tenant, by how many instances and tenants there are.

mod fleet;
mod section;

use serde::{Deserialize, Serialize};

use self::fleet::Fleet;
pub use self::section::section;
use super::Extent;

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
    /// One entry for each combination.
    pub cells: Vec<Cell>,
}

/// How word of changes travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// PostgreSQL's `NOTIFY` on the catalog.
    Notify,
    /// A RabbitMQ broker.
    Broker,
}

/// Creations one after the other, in one combination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// How word travels.
    pub way: Way,
    /// Instances.
    pub instances: usize,
    /// Tenants in the catalog at the start.
    pub present: u32,
    /// Milliseconds from the call to the answer.
    pub created_ms: Vec<f64>,
    /// Milliseconds from the call of a suspension to its answer.
    pub suspended_ms: Vec<f64>,
    /// First requests after the answer: one to each instance for each tenant.
    pub asked: u64,
    /// Of them: not answered, since the instance did not know the tenant.
    pub unknown: u64,
    /// Of them: answered from another database than the tenant's.
    pub wrong: u64,
    /// Requests after the answer to a suspension that found the tenant in service.
    pub not_suspended: u64,
    /// Answers that said that not every instance had applied the change.
    pub pending: u64,
}

/// Measures.
///
/// # Errors
///
/// When a server cannot be had, or something was not created.
pub async fn measure(extent: Extent) -> anyhow::Result<Data> {
    let rounds = extent.of(100, 3);
    let fleets: &[usize] = extent.of(&[3, 10], &[3]);
    let catalogs: &[u32] = extent.of(&[0, 100, 10_000], &[0, 100]);
    let mut cells = Vec::new();
    for way in [Way::Notify, Way::Broker] {
        for &instances in fleets {
            for &present in catalogs {
                eprintln!("{way:?}, {instances} instances, {present} tenants");
                let fleet = Fleet::set_up(way, instances, present).await?;
                cells.push(fleet.measure(rounds).await?);
            }
        }
    }
    Ok(Data { cells })
}
