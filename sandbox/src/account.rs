//! Which operating-system user the servers run as.
//!
//! PostgreSQL refuses to run as root, and containers usually are root, so root hands its servers to
//! the user `postgres`, and its brokers to `rabbitmq`. Anybody else runs them as themselves. Refuses to
//! know what the programs are.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::unistd::{User, geteuid};

use crate::error::SandboxError;

/// The user that owns data folders and runs servers.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// `None`: the caller's own user.
    other: Option<User>,
}

impl Account {
    /// The caller, or `postgres` (else `nobody`) when the caller is root.
    pub(crate) fn for_servers() -> Result<Self, SandboxError> {
        if !geteuid().is_root() {
            return Ok(Self { other: None });
        }
        Self::first_of(["postgres", "nobody"]).ok_or(SandboxError::NoServerUser)
    }

    /// The caller, or `rabbitmq` (else `nobody`) when the caller is root.
    pub(crate) fn for_brokers() -> Result<Self, SandboxError> {
        if !geteuid().is_root() {
            return Ok(Self { other: None });
        }
        Self::first_of(["rabbitmq", "nobody"]).ok_or(SandboxError::NoBrokerUser)
    }

    fn first_of(names: [&str; 2]) -> Option<Self> {
        let found = names
            .into_iter()
            .find_map(|name| User::from_name(name).ok().flatten());
        found.map(|user| Self { other: Some(user) })
    }

    /// A command that will run as this user, in a process group of its own so that a Ctrl-C in the
    /// terminal reaches the caller only, and without any `PG…` variable that would redirect it.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        // The caller's folder may be closed to the other user, and messages are matched in English.
        command
            .current_dir("/")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .process_group(0);
        if let Some(user) = &self.other {
            command
                .uid(user.uid.as_raw())
                .gid(user.gid.as_raw())
                .env("HOME", "/");
        }
        command
    }

    /// Makes this user the owner of a file or folder.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        match &self.other {
            Some(user) => chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw())),
            None => Ok(()),
        }
    }

    /// Writes a file that only this user (and root) can read.
    pub(crate) fn write_private(&self, path: &Path, content: &str) -> io::Result<()> {
        // Written under another name first: a server that reloads must never see half a file.
        let partial = path.with_extension("partial");
        crate::folder::write_private(&partial, content.as_bytes())?;
        self.give(&partial)?;
        std::fs::rename(&partial, path)
    }

    /// Makes an empty folder that only this user (and root) can enter.
    pub(crate) fn create_private_folder(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)?;
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o700))?;
        self.give(path)
    }

    /// The mode for folders on the way to this user's files: no wider than it must be.
    pub(crate) fn passage_mode(&self) -> u32 {
        if self.other.is_some() { 0o711 } else { 0o700 }
    }

    /// Fails unless this user can get into `folder`.
    pub(crate) fn check_reach(&self, folder: &Path) -> Result<(), SandboxError> {
        let Some(user) = &self.other else { return Ok(()) };
        let entered = self
            .command("test")
            .arg("-x")
            .arg(folder)
            .stderr(Stdio::null())
            .status();
        match entered {
            Ok(status) if status.success() => Ok(()),
            _ => Err(SandboxError::Unreachable {
                path: folder.to_owned(),
                user: user.name.clone(),
            }),
        }
    }
}
