//! The `tenantry` program. What it can do stands in [`app::cli`].

use std::process::ExitCode;

use app::cli::Cli;
use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    // Takes the crash points to arm from the environment.
    #[cfg(feature = "failpoints")]
    let _crash_points = fail::FailScenario::setup();
    Cli::parse().run().await
}
