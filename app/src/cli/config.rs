//! `tenantry config …`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{failure::Failure, output::print};
use crate::config::Config;

/// `tenantry config …`
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Validate a configuration file with this environment's overrides, and print what is in effect, secrets hidden.
    #[command(after_help = "\
Examples:
  tenantry config check --config tenantry.toml
  TENANTRY__POOLS__IDLE_TIMEOUT=30s tenantry config check --config tenantry.toml")]
    Check(ConfigFile),
}

/// Which configuration file.
#[derive(Debug, Args)]
pub(super) struct ConfigFile {
    /// The configuration file; every key in it can be overridden by TENANTRY__SECTION__KEY
    #[arg(long = "config", value_name = "FILE")]
    path: PathBuf,
}

impl ConfigFile {
    /// The settings in effect. Settings that cannot be used are wrong configuration.
    pub(super) fn load(&self) -> Result<Config, Failure> {
        Config::load(&self.path).map_err(Failure::usage)
    }
}

pub(super) fn run(command: &ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check(file) => print(file.load()?.effective().trim_end()),
    }
}
