//! HTTP requests by several callers at once.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use reqwest::{RequestBuilder, Response};

use crate::stats::as_float;

/// So many requests by all callers: how many in a second, and how many answers `counts` says yes to.
///
/// # Errors
///
/// When a request is not answered with `200`.
pub async fn per_second(
    request: &RequestBuilder,
    callers: usize,
    requests: usize,
    counts: fn(&Response) -> bool,
) -> anyhow::Result<(f64, u64)> {
    let again = || {
        let request = request.try_clone();
        request.context("a request without a body can be repeated")
    };
    let started = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..callers {
        let request = again()?;
        tasks.push(tokio::spawn(async move {
            let mut counted = 0;
            for _ in 0..requests / callers {
                let request = request.try_clone().context("it has been repeated before")?;
                let response = request.send().await?;
                counted += u64::from(counts(&response));
                ensure!(response.status() == 200, "{}", response.text().await?);
                response.bytes().await?;
            }
            Ok(counted)
        }));
    }
    let mut counted = 0;
    for task in futures::future::join_all(tasks).await {
        counted += task??;
    }
    let took: Duration = started.elapsed();
    let per_second = as_float(requests as u64) / took.as_secs_f64();
    Ok((per_second.round(), counted))
}
