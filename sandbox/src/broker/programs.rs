//! Where RabbitMQ's server and Erlang's `erl_call` are.
//!
//! The packages' commands in `/usr/sbin` are wrappers that insist on the package's own user and folders.
//! The scripts behind them do not: a folder counts when it has those.

use std::env::{split_paths, var_os};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::SandboxError;

/// Where packages put the scripts, as (folder, what an entry's name begins with, folder inside).
const USUAL_PLACES: [(&str, &str, &str); 4] = [
    ("/usr/lib", "rabbitmq", "bin"),                       // Debian, Ubuntu
    ("/usr/lib/rabbitmq/lib", "rabbitmq_server-", "sbin"), // Red Hat
    ("/opt", "rabbitmq", "sbin"),                          // containers, built from source
    ("/usr/local", "rabbitmq", "sbin"),
];

/// The programs a broker needs.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) server: PathBuf,
    pub(super) erl_call: PathBuf,
}

impl Programs {
    /// Looks in `RABBITMQ_BIN`, in every folder of `PATH`, and where packages put RabbitMQ.
    pub(super) fn find() -> Result<Self, SandboxError> {
        let path = var_os("PATH").unwrap_or_default();
        Ok(Self {
            server: server(var_os("RABBITMQ_BIN").as_deref(), &path)?,
            erl_call: erl_call(&path).ok_or(SandboxError::ErlCallNotFound)?,
        })
    }
}

fn server(chosen: Option<&OsStr>, path: &OsStr) -> Result<PathBuf, SandboxError> {
    let (searched, found) = match chosen.filter(|dir| !dir.is_empty()) {
        // A wrong setting is reported, and never quietly replaced by another place.
        Some(dir) => (
            format!("RABBITMQ_BIN={}", dir.display()),
            server_in(Path::new(dir)),
        ),
        None => (
            "RABBITMQ_BIN, PATH, /usr/lib/rabbitmq/bin, /opt/rabbitmq*/sbin and the like".to_owned(),
            split_paths(path)
                .chain(usual_folders())
                .find_map(|dir| server_in(&dir)),
        ),
    };
    found.ok_or(SandboxError::BrokerNotFound { searched })
}

/// The server's script in a folder, if its companion that knows all defaults is there too: where a link
/// leads counts, since that is where the script looks.
fn server_in(dir: &Path) -> Option<PathBuf> {
    let script = dir.join("rabbitmq-server").canonicalize().ok()?;
    let real = script.ends_with("rabbitmq-server") && script.with_file_name("rabbitmq-env").is_file();
    real.then_some(script)
}

fn usual_folders() -> impl Iterator<Item = PathBuf> {
    USUAL_PLACES.iter().flat_map(|(folder, prefix, inside)| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(move |entry| {
                let name = entry.file_name();
                name.as_encoded_bytes().starts_with(prefix.as_bytes())
            })
            .map(move |entry| entry.path().join(inside))
    })
}

/// A small program in C that asks a node to evaluate something, in milliseconds where `rabbitmqctl`
/// takes seconds.
fn erl_call(path: &OsStr) -> Option<PathBuf> {
    split_paths(path).find_map(|dir| {
        let beside_erl = || {
            let erl = dir.join("erl").canonicalize().ok()?;
            Some(erl.with_file_name("erl_call"))
        };
        [Some(dir.join("erl_call")), beside_erl()]
            .into_iter()
            .flatten()
            .find(|program| program.is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_counts_only_with_the_real_scripts() {
        let folder = tempfile::tempdir().unwrap();
        let found = || server(Some(folder.path().as_os_str()), OsStr::new(""));
        std::fs::write(folder.path().join("rabbitmq-server"), "").unwrap();
        let error = found().unwrap_err().to_string();
        assert!(error.contains("apt-get install rabbitmq-server"), "{error}");
        std::fs::write(folder.path().join("rabbitmq-env"), "").unwrap();
        assert!(found().is_ok());
    }
}
