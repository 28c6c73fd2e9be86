//! Where clusters live on disk, and who may use a folder.
//!
//! A cluster's folder holds one data folder and one log per node. It is either temporary, below
//! `tenantry-sandbox-<uid>/` in `SANDBOX_TMPDIR` or the system's temporary folder, or one that the caller
//! named and that is kept. A lock in it says that somebody uses it; without a holder it is abandoned.
//! Refuses to know what is in a data folder.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::geteuid;
use rand::distr::{Alphanumeric, SampleString};

use crate::account::Account;
use crate::error::{Doing, SandboxError};
use crate::guardian::{Guardian, Orders};
use crate::state::State;
use crate::wait;

/// How long another process gets to finish with a folder: a guardian may be stopping servers in it.
const LOCK_LIMIT: Duration = Duration::from_secs(20);

/// The folder of one cluster, for this process alone.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    /// Shared with the guardian: the folder is in use until both are done.
    lock: File,
    /// Not shared: tells an owner who lives from a guardian that is still cleaning up.
    _owner: File,
    /// This start made the folder.
    pub(crate) created: bool,
}

impl Root {
    /// Makes a new folder that is removed in the end.
    pub(crate) async fn temporary(account: &Account) -> Result<Self, SandboxError> {
        let base = base(account)?;
        account.check_reach(&base)?;
        let swept = base.clone();
        tokio::task::spawn_blocking(move || sweep(&swept))
            .await
            .expect("sweeping does not panic and is not cancelled");
        let id = Alphanumeric.sample_string(&mut rand::rng(), 10);
        let fresh = base.join(format!("new-{id}"));
        let path = base.join(format!("run-{id}"));
        create_folder(&fresh, account.passage_mode())?;
        let (lock, owner) = (open_lock(&fresh, LOCK)?, open_lock(&fresh, OWNER)?);
        lock.lock()
            .and_then(|()| owner.lock())
            .doing(|| format!("lock {}", fresh.display()))?;
        // Only now under the name that others look for: there is no moment without the lock.
        fs::rename(&fresh, &path).doing(|| format!("rename {}", fresh.display()))?;
        Ok(Self {
            path,
            lock,
            _owner: owner,
            created: true,
        })
    }

    /// Takes a folder that is kept, made here if need be. Servers that were left running in it by an
    /// owner who was killed are stopped.
    pub(crate) async fn kept(path: &Path, account: &Account) -> Result<Self, SandboxError> {
        let path = std::path::absolute(path).doing(|| format!("find {}", path.display()))?;
        let created = !path.exists();
        if created {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).doing(|| format!("create {}", parent.display()))?;
            }
            create_folder(&path, account.passage_mode())?;
        }
        // Resolved, because the guardian recognises servers by the folder's name.
        let path = path
            .canonicalize()
            .doing(|| format!("resolve {}", path.display()))?;
        account.check_reach(&path)?;

        if !is_ours(&path)? {
            return Err(SandboxError::NotASandbox { path });
        }

        let (lock, owner) = (open_lock(&path, LOCK)?, open_lock(&path, OWNER)?);
        let busy = || SandboxError::FolderBusy { path: path.clone() };
        if !try_lock(&owner).doing(|| format!("lock {}", path.display()))? {
            return Err(busy());
        }
        let free = wait::until(LOCK_LIMIT, || try_lock(&lock).map(|locked| locked.then_some(())));
        free.await
            .doing(|| format!("lock {}", path.display()))?
            .ok_or_else(busy)?;

        let (root, held) = (
            path.clone(),
            lock.try_clone().doing(|| "share a lock".to_owned())?,
        );
        tokio::task::spawn_blocking(move || Guardian::clear_up(&root, &held, Orders::Keep))
            .await
            .expect("clearing up does not panic and is not cancelled")?;
        Ok(Self {
            path,
            lock,
            _owner: owner,
            created,
        })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Posts a guardian that shares this folder's lock.
    pub(crate) fn guard(&self, orders: Orders) -> Result<Guardian, SandboxError> {
        Guardian::post(&self.path, &self.lock, orders)
    }
}

/// The folder below which everything temporary is, one per user so that nobody trips over another.
pub(crate) fn base(account: &Account) -> Result<PathBuf, SandboxError> {
    let uid = geteuid().as_raw();
    let temp = std::env::var_os("SANDBOX_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let temp = temp
        .canonicalize()
        .doing(|| format!("find the temporary folder {}", temp.display()))?;
    let base = temp.join(format!("tenantry-sandbox-{uid}"));
    match DirBuilder::new().mode(account.passage_mode()).create(&base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).doing(|| format!("create {}", base.display()));
        }
        _ => {}
    }
    // The name can be guessed, and everybody can write to the folder above.
    let found = fs::symlink_metadata(&base).doing(|| format!("look at {}", base.display()))?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o022 != 0 {
        return Err(SandboxError::UnsafeFolder { path: base });
    }
    Ok(base)
}

/// Removes what is left of clusters whose owner and guardian were both killed.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let begun = name.as_encoded_bytes().starts_with(b"run-");
        // Killed before it had its lock and its name, which takes no time: by now it would have them.
        let stillborn = name.as_encoded_bytes().starts_with(b"new-") && is_old(&path);
        if !begun && !stillborn {
            continue;
        }
        // No lock can be had: in use, or removed a moment ago.
        let Ok(lock) = open_lock(&path, LOCK) else {
            continue;
        };
        if lock.try_lock().is_err() {
            continue;
        }
        tracing::info!(folder = %path.display(), "Removing what an interrupted sandbox left behind.");
        if let Err(error) = Guardian::clear_up(&path, &lock, Orders::Remove) {
            tracing::warn!(folder = %path.display(), %error, "An abandoned sandbox was not removed.");
        }
    }
}

fn is_old(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|found| found.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > Duration::from_mins(1)))
}

const LOCK: &str = "lock";
const OWNER: &str = "owner";

/// Whether a sandbox may put its files here: it is a sandbox already, or empty.
fn is_ours(folder: &Path) -> Result<bool, SandboxError> {
    let entries = fs::read_dir(folder).doing(|| format!("read {}", folder.display()))?;
    let locks = [LOCK, OWNER].map(OsString::from);
    Ok(State::is_in(folder) || entries.flatten().all(|entry| locks.contains(&entry.file_name())))
}

fn open_lock(folder: &Path, name: &str) -> Result<File, SandboxError> {
    let path = folder.join(name);
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path);
    opened.doing(|| format!("open {}", path.display()))
}

fn try_lock(lock: &File) -> io::Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Makes a folder with exactly this mode, whatever the caller's umask is.
pub(crate) fn create_folder(path: &Path, mode: u32) -> Result<(), SandboxError> {
    fs::create_dir(path)
        .and_then(|()| fs::set_permissions(path, PermissionsExt::from_mode(mode)))
        .doing(|| format!("create {}", path.display()))
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?
        .write_all(content)
}
