//! What it costs to know who asks: a read with an API key against the same read by anybody.

mod section;
mod service;

use serde::{Deserialize, Serialize};

pub use self::section::section;
use self::service::{Arm, Service};
use super::Extent;
use crate::load;

/// Callers at once.
pub const CALLERS: usize = 16;

/// What was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Data {
    /// Reads per second by anybody.
    pub open: Vec<f64>,
    /// Reads per second with an API key.
    pub by_key: Vec<f64>,
}

/// Measures. The two kinds of requests take turns.
///
/// # Errors
///
/// When a server cannot be had, or a request fails.
pub async fn measure(extent: Extent) -> anyhow::Result<Data> {
    let mut data = Data::default();
    let service = Service::start().await?;
    let requests = extent.of(4_000, 200);
    let (open, by_key) = (service.request(Arm::Open), service.request(Arm::ByKey));
    // The first of each opens connections.
    for request in [&open, &by_key] {
        load::per_second(request, CALLERS, requests, |_| true).await?;
    }
    for round in 0..extent.of(30, 2) {
        let turns = [(&open, Arm::Open), (&by_key, Arm::ByKey)];
        let turns = if round % 2 == 0 {
            turns
        } else {
            [turns[1], turns[0]]
        };
        for (request, arm) in turns {
            let (per_second, _) = load::per_second(request, CALLERS, requests, |_| true).await?;
            match arm {
                Arm::Open => data.open.push(per_second),
                Arm::ByKey => data.by_key.push(per_second),
            }
        }
    }
    service.stop().await;
    Ok(data)
}
