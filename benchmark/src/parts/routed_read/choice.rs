//! The choice of a node for a read, without the read.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use futures::FutureExt;
use read_your_writes::{
    Cluster, Consistency, Lsn, NodeSpec, Position, Positions, ReadSettings, Session, Timeline,
};

use super::Extent;
use crate::stats::as_float;

/// Choices in a block, so that reading the clock does not count.
const BLOCK: u32 = 20_000;

/// Means of blocks, in nanoseconds: with two replicas and a position that both have reached.
pub(super) async fn measure(extent: Extent) -> anyhow::Result<Vec<f64>> {
    let servers = sandbox::Cluster::builder().replicas(2).start();
    let servers = servers.await.context("the servers do not start")?;
    let specs = servers.nodes().iter().enumerate().map(|(index, node)| NodeSpec {
        name: node.name().into(),
        probe: node.connect_options("postgres"),
        is_primary: index == 0,
        payload: (),
    });
    let cluster = Cluster::start("main".into(), specs.collect(), ReadSettings::default());
    let begun = Instant::now();
    while cluster
        .status()
        .iter()
        .filter(|node| node.eligible.is_ok())
        .count()
        < 2
    {
        if begun.elapsed() > Duration::from_secs(30) {
            bail!("the replicas do not become eligible: {:?}", cluster.status());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let name: Arc<str> = "main".into();
    let mut positions = Positions::default();
    positions.raise(&name, Position::now(Timeline(1), Lsn::from_bytes(1)));
    let mut blocks = Vec::new();
    for _ in 0..extent.of(100, 5) {
        let mut chosen = Duration::ZERO;
        for _ in 0..BLOCK / 100 {
            // A session of its own for each hundred: a position that is everywhere is dropped at its first use.
            let sessions: Vec<_> = (0..100).map(|_| Session::new(positions.clone())).collect();
            let started = Instant::now();
            for session in &sessions {
                let choice = cluster.choose(Consistency::Recent.into(), session);
                let choice = choice
                    .now_or_never()
                    .context("a choice from what is known does not wait")?;
                black_box(&choice?);
            }
            chosen += started.elapsed();
        }
        blocks.push(chosen.as_secs_f64() * 1e9 / as_float(BLOCK));
        tokio::task::yield_now().await;
    }
    cluster.stop().await;
    Ok(blocks)
}
