//! What reading from a replica with a position costs: the choice of a node alone, and a whole request against one of a plain
//! pool.

mod choice;
mod section;
mod service;

use reqwest::Response;
use serde::{Deserialize, Serialize};

pub use self::section::section;
use self::service::{Arm, Services};
use super::Extent;
use crate::load;

/// Callers at once.
pub const CALLERS: usize = 16;

/// What was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Data {
    /// Time of one choice, in nanoseconds: means of blocks.
    pub choice_ns: Vec<f64>,
    /// Requests per second of the service that reads by a plain pool.
    pub plain: Vec<f64>,
    /// Requests per second of the service that reads by route, position and replica.
    pub routed: Vec<f64>,
    /// Requests of the second kind that a replica has served.
    pub by_replica: u64,
    /// All of the second kind.
    pub routed_requests: u64,
}

/// Measures. The two services take turns.
///
/// # Errors
///
/// When a server cannot be had, or a request fails.
pub async fn measure(extent: Extent) -> anyhow::Result<Data> {
    let mut data = Data {
        choice_ns: choice::measure(extent).await?,
        ..Data::default()
    };
    let services = Services::start().await?;
    let requests = extent.of(4_000, 200);
    // The first of each opens connections.
    for arm in [Arm::Plain, Arm::Routed] {
        block(&services, arm, requests).await?;
    }
    for round in 0..extent.of(30, 2) {
        for arm in if round % 2 == 0 {
            [Arm::Plain, Arm::Routed]
        } else {
            [Arm::Routed, Arm::Plain]
        } {
            let (per_second, by_replica) = block(&services, arm, requests).await?;
            match arm {
                Arm::Plain => data.plain.push(per_second),
                Arm::Routed => {
                    data.routed.push(per_second);
                    data.by_replica += by_replica;
                    data.routed_requests += requests as u64;
                }
            }
        }
    }
    services.stop().await;
    Ok(data)
}

/// So many requests by all callers: how many in a second, and how many of them a replica has served.
async fn block(services: &Services, arm: Arm, requests: usize) -> anyhow::Result<(f64, u64)> {
    let by_replica = |response: &Response| {
        let served = response.headers().get("tenantry-served-by");
        served.is_some_and(|by| by.as_bytes().starts_with(b"replica"))
    };
    load::per_second(&services.request(arm), CALLERS, requests, by_replica).await
}
