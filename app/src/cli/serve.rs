//! `tenantry serve`

use clap::Args;

use super::{config::ConfigFile, failure::Failure};
use crate::serve;

/// Arguments of `tenantry serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenantry serve --config tenantry.toml
  TENANTRY__HTTP__LISTEN=127.0.0.1:9001 tenantry serve --config tenantry.toml

Ctrl-C and SIGTERM stop it in an orderly way: it answers what it was asked first.")]
pub(super) struct ServeArguments {
    #[command(flatten)]
    config: ConfigFile,
}

pub(super) async fn run(arguments: ServeArguments) -> Result<(), Failure> {
    let config = arguments.config.load()?;
    serve::run(config).await.map_err(Failure::operation)
}
