//! How long it takes until a tenant has been created, against what PostgreSQL alone takes to copy a database.

mod arms;
mod section;

use serde::{Deserialize, Serialize};

use self::arms::Arms;
pub use self::section::section;
use super::Extent;

/// What was measured, in milliseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
    /// One entry for each number of creations at once.
    pub levels: Vec<Level>,
}

/// Creations that begin at the same moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Level {
    /// How many.
    pub at_once: usize,
    /// `create_tenant` while a spare is ready for each of them.
    pub with_spare_ms: Vec<f64>,
    /// `create_tenant` of an instance that keeps no spares.
    pub without_spare_ms: Vec<f64>,
    /// `create database … template …` of the same template, on a connection that is open already.
    pub bare_ms: Vec<f64>,
    /// A transaction that inserts one row: what waiting for the disk costs.
    pub commit_ms: Vec<f64>,
}

/// Measures.
///
/// # Errors
///
/// When a server cannot be had, or something was not created.
pub async fn measure(extent: Extent) -> anyhow::Result<Data> {
    let mut levels = Vec::new();
    for (at_once, rounds) in [
        (1, extent.of(50, 3)),
        (4, extent.of(12, 2)),
        (16, extent.of(4, 1)),
    ] {
        levels.push(level(at_once, rounds).await?);
    }
    Ok(Data { levels })
}

/// A level has a server of its own. Its arms take turns, there and back. Nothing is dropped meanwhile: a file system that
/// gives freed blocks back to the device at once makes the next creation wait for it.
async fn level(at_once: usize, rounds: usize) -> anyhow::Result<Level> {
    let mut arms = Arms::set_up(at_once).await?;
    let mut level = Level {
        at_once,
        ..Level::default()
    };
    // The first of each opens connections.
    arms.with_spare().await?;
    arms.without_spare().await?;
    for round in 0..rounds {
        eprintln!("{at_once} at once, round {} of {rounds}", round + 1);
        arms.stock_is_full().await?;
        for arm in if round % 2 == 0 { [0, 1, 2] } else { [2, 1, 0] } {
            match arm {
                0 => level.with_spare_ms.extend(arms.with_spare().await?),
                1 => level.without_spare_ms.extend(arms.without_spare().await?),
                _ => level.bare_ms.extend(arms.bare().await?),
            }
            // Taking spares has others made; that must not get in the way of the next arm.
            arms.stock_is_full().await?;
            level.commit_ms.push(arms.commit().await?);
        }
    }
    arms.shut_down().await;
    Ok(level)
}
