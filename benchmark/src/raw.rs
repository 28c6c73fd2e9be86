//! Raw files: what a part measured, with its circumstances. Refuses to know what the data mean.

use std::{fs, path::PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::platform::Circumstances;

/// One part's raw file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Raw<T> {
    /// When, where, on what.
    pub circumstances: Circumstances,
    /// What was measured.
    pub data: T,
}

/// The folder of this crate.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn path(part: &str) -> PathBuf {
    home().join("raw").join(format!("{part}.json"))
}

/// Writes a part's raw file.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write<T: Serialize>(part: &str, raw: &Raw<T>) -> anyhow::Result<()> {
    let path = path(part);
    fs::create_dir_all(home().join("raw"))?;
    let text = serde_json::to_string_pretty(raw)? + "\n";
    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Reads a part's raw file. `None`: the part has not been measured.
///
/// # Errors
///
/// When the file is there and is not what this version of the part writes.
pub fn read<T: DeserializeOwned>(part: &str) -> anyhow::Result<Option<Raw<T>>> {
    let path = path(part);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    serde_json::from_str(&text)
        .map(Some)
        .with_context(|| format!("{} is not understood", path.display()))
}
