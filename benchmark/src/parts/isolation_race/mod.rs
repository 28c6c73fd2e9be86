//! Whether anybody is answered from somebody else's database while the routing table changes (invariants I1 and I2).
//!
//! [`tables`] has the service's own table and what not to do; [`race`] lets readers and a writer loose on either.

pub mod race;
mod section;
pub mod tables;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::section::section;
use self::{
    race::{Access, Course, Tally},
    tables::{Configuration, Replacement},
};
use super::Extent;

/// What was measured: each configuration with each way to the data, first briefly, then at length.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
    /// A few thousand requests.
    pub brief: Vec<Race>,
    /// A million requests for each table that is replaced whole, half of them each way, and a tenth of that for those that
    /// are known to be broken.
    pub long: Vec<Race>,
}

/// One race.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Race {
    /// Which table.
    pub configuration: Configuration,
    /// Which way to the data.
    pub access: Access,
    /// How its requests ended.
    pub tally: Tally,
}

/// Measures.
///
/// # Errors
///
/// When a server or a tenant cannot be had.
pub async fn measure(extent: Extent) -> anyhow::Result<Data> {
    let course = Course::set_up().await?;
    let (brief, long) = (extent.of(4_000, 1_000), extent.of(500_000, 5_000));
    Ok(Data {
        brief: all(&course, |_| brief).await,
        long: all(&course, |configuration| match configuration.replacement {
            Replacement::Atomic => long,
            Replacement::InPlace => long / 10,
        })
        .await,
    })
}

async fn all(course: &Course, requests: impl Fn(Configuration) -> u64) -> Vec<Race> {
    let mut races = Vec::new();
    for configuration in Configuration::ALL {
        for access in [Access::Handle, Access::Routed] {
            let requests = requests(configuration);
            let tally = course.race(configuration, access, requests, Duration::ZERO).await;
            eprintln!("{configuration:?} {access:?}: {tally:?}");
            races.push(Race {
                configuration,
                access,
                tally,
            });
        }
    }
    races
}
