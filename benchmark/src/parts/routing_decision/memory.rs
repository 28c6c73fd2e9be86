//! What a tenant weighs that nobody uses: the slope between a small table and a large one, each filled in a process of its
//! own, so that nothing else is in the balance.

use std::process::Command;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tenant_management::routing::table::{RouteUpdate, RoutingTable, TableUpdate};

use super::fleet::{Fleet, domain};
use crate::{memory, parts::Extent, stats::as_float};

/// The numbers of tenants that are compared.
pub const SIZES: [usize; 2] = [10_000, 100_000];

/// What the tenants have and how they got into the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum Shape {
    /// A name and nothing else, from one full read.
    Plain,
    /// A domain and an API key each, from one full read.
    WithDomainAndKey,
    /// The same, one tenant after the other, as they arrive while the instance runs.
    OneByOne,
}

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Data {
    /// One entry for each shape.
    pub shapes: Vec<OfShape>,
}

/// Bytes for each tenant of one shape, one sample for each pair of processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OfShape {
    /// Of which shape.
    pub shape: Shape,
    /// As the allocator counts: what was asked for.
    pub heap_bytes: Vec<f64>,
    /// As the kernel counts: what is in physical memory, with what the allocator keeps for itself.
    pub resident_bytes: Vec<f64>,
}

/// What a table weighs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Weight {
    heap_bytes: usize,
    resident_bytes: usize,
}

/// Measures.
pub(super) fn measure(extent: Extent) -> anyhow::Result<Data> {
    let rounds = extent.of(7, 2);
    eprintln!("memory: {rounds} rounds");
    let mut shapes: Vec<OfShape> = Shape::value_variants()
        .iter()
        .map(|shape| OfShape {
            shape: *shape,
            heap_bytes: vec![],
            resident_bytes: vec![],
        })
        .collect();
    for _ in 0..rounds {
        for measured in &mut shapes {
            let [small, large] = SIZES;
            let (light, heavy) = (
                weigh_elsewhere(measured.shape, small)?,
                weigh_elsewhere(measured.shape, large)?,
            );
            let slope = |light: usize, heavy: usize| {
                ((as_float(heavy as u64) - as_float(light as u64)) / as_float((large - small) as u64)).round()
            };
            measured
                .heap_bytes
                .push(slope(light.heap_bytes, heavy.heap_bytes));
            measured
                .resident_bytes
                .push(slope(light.resident_bytes, heavy.resident_bytes));
        }
    }
    Ok(Data { shapes })
}

fn weigh_elsewhere(shape: Shape, tenants: usize) -> anyhow::Result<Weight> {
    let shape = shape.to_possible_value().context("all shapes can be named")?;
    let output = Command::new(std::env::current_exe()?)
        .args(["weigh-table", shape.get_name(), &tenants.to_string()])
        .output()
        .context("this program cannot start itself")?;
    ensure!(
        output.status.success(),
        "the weighing failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Fills a table, and prints what it weighs as JSON.
///
/// # Errors
///
/// When the kernel does not say what is resident.
pub fn weigh_and_print(shape: Shape, tenants: usize) -> anyhow::Result<()> {
    let fleet = Fleet::of(tenants);
    let (heap, resident) = (memory::heap_bytes(), memory::resident_bytes()?);
    let table = match shape {
        Shape::Plain => fleet.table(),
        Shape::WithDomainAndKey => {
            let table = RoutingTable::new();
            table.apply(rows(&fleet, 0..tenants));
            table
        }
        Shape::OneByOne => {
            let table = RoutingTable::new();
            (0..tenants).for_each(|index| table.apply(rows(&fleet, index..index + 1)));
            table
        }
    };
    let weight = Weight {
        heap_bytes: memory::heap_bytes() - heap,
        resident_bytes: memory::resident_bytes()?.saturating_sub(resident),
    };
    ensure!(table.len() == tenants, "the table has all tenants");
    println!("{}", serde_json::to_string(&weight)?);
    Ok(())
}

fn rows(fleet: &Fleet, range: std::ops::Range<usize>) -> TableUpdate {
    TableUpdate {
        routes: range
            .clone()
            .map(|index| RouteUpdate {
                domains: vec![domain(index)],
                ..fleet.row(index, 1)
            })
            .collect(),
        identity: tenant_management::Revision::default(),
        api_keys: range.map(|index| fleet.api_key(index)).collect(),
        complete_to: None,
    }
}
