//! The command line of the measurements.

use std::path::Path;

use benchmark::{
    parts::{Extent, Part, routing_decision::memory},
    report,
};
use clap::{Parser, Subcommand};

/// Measures what the project claims.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures, writes raw data, and makes the report from them.
    Run {
        /// Only these parts.
        #[arg(long, value_enum, num_args = 1..)]
        only: Vec<Part>,
        /// A fraction of the runs. Shows the report and keeps nothing.
        #[arg(long)]
        quick: bool,
    },
    /// Makes the report from the raw data.
    Report,
    /// Fills a routing table and says what it weighs; the measurement calls itself for this, so as to begin with an empty
    /// process.
    #[command(hide = true)]
    WeighTable {
        #[arg(value_enum)]
        shape: memory::Shape,
        tenants: usize,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Run { only, quick } => run(only, if quick { Extent::Quick } else { Extent::Full }).await,
        Command::Report => report::write(),
        Command::WeighTable { shape, tenants } => memory::weigh_and_print(shape, tenants),
    }
}

async fn run(only: Vec<Part>, extent: Extent) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        eprintln!("This build is not optimised; its times mean nothing. Use --release.");
    }
    let parts = if only.is_empty() {
        Part::all().collect()
    } else {
        only
    };
    for part in parts {
        eprintln!("== {}", part.name());
        let (circumstances, section) = part.run(extent).await?;
        eprintln!("{}", report::render_section(part, &circumstances, &section)?);
        if extent == Extent::Full {
            report::write()?;
        }
    }
    if extent == Extent::Full {
        eprintln!("{} is up to date.", Path::new("benchmark/RESULTS.md").display());
    }
    Ok(())
}
