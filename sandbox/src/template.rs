//! A data folder to copy from, because `initdb` takes most of the time a new server needs.
//!
//! One template per user, PostgreSQL version and set of options is kept below the temporary folder. A
//! copy gets an identity of its own: whoever tells clusters apart by their system identifier, as
//! PostgreSQL's replication does, must be able to. Refuses to know who uses the copy.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::{Doing, SandboxError};
use crate::secret;
use crate::{folder, settings, tool, wait};

/// `--no-sync`: durable copies are synced themselves. Checksums, because PostgreSQL 18 has them by
/// default and older versions should behave the same.
const OPTIONS: [&str; 7] = [
    "--username=postgres",
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C.UTF-8",
    "--data-checksums",
    "--no-sync",
    "--no-instructions",
];

/// How long the children of a killed `initdb` may go on.
const LEFTOVER_LIMIT: Duration = Duration::from_secs(10);

/// A data folder that `initdb` made, and the superuser's password in it.
#[derive(Debug)]
pub(crate) struct Template {
    data: PathBuf,
    /// Known to everything this user runs: a copy's password is replaced before anybody uses it.
    pub(crate) password: SecretString,
}

impl Template {
    /// The template for these programs. Made now if there is none; whoever wants it meanwhile waits.
    pub(crate) async fn obtain(account: &Account, binaries: &Binaries) -> Result<Self, SandboxError> {
        let base = folder::base(account)?;
        let mut key = DefaultHasher::new();
        (OPTIONS, binaries.dir(), &binaries.version().text).hash(&mut key);
        let version = binaries.version();
        let path = base.join(format!(
            "initdb-{}.{}-{:016x}",
            version.major,
            version.minor,
            key.finish()
        ));
        if !is_complete(&path) {
            let lock = lock(beside(&path, "lock")).await?;
            if !is_complete(&path) {
                create(account, binaries, &path, &lock).await?;
            }
        }
        let password_file = path.join("password");
        let password = fs::read_to_string(&password_file);
        let password = password.doing(|| format!("read {}", password_file.display()))?;
        Ok(Self {
            data: path.join("data"),
            password: password.into(),
        })
    }

    /// Makes `target` a fresh data folder, and a `durable` one safe on disk.
    pub(crate) async fn copy(
        &self,
        account: &Account,
        binaries: &Binaries,
        target: &Path,
        durable: bool,
    ) -> Result<(), SandboxError> {
        let (source, copy, owner) = (self.data.clone(), target.to_owned(), account.clone());
        tokio::task::spawn_blocking(move || copy_folder(&source, &copy, &owner))
            .await
            .expect("copying does not panic and is not cancelled")
            .doing(|| format!("copy {} to {}", self.data.display(), target.display()))?;
        new_identity(target).doing(|| format!("give {} an identity", target.display()))?;

        // Begins the write-ahead log anew, under the new identity.
        let mut reset = account.command(binaries.program("pg_resetwal"));
        reset.arg("--force").arg(data_argument(target));
        tool::run(reset).await?;

        if durable {
            let mut sync = account.command(binaries.program("initdb"));
            sync.arg("--sync-only").arg(data_argument(target));
            tool::run(sync).await?;
        }
        Ok(())
    }
}

/// The option that names a node's data folder, to all programs. As one word: the guardian looks for it.
pub(crate) fn data_argument(data: &Path) -> OsString {
    let mut argument = OsString::from("-D");
    argument.push(data);
    argument
}

async fn create(
    account: &Account,
    binaries: &Binaries,
    path: &Path,
    lock: &File,
) -> Result<(), SandboxError> {
    tracing::info!(version = %binaries.version(), "Preparing a data folder for this version of PostgreSQL, once.");
    let partial = beside(path, "partial");
    // Whoever made this was killed. What it had started may need a moment to notice.
    let removed = wait::until(LEFTOVER_LIMIT, || match fs::remove_dir_all(&partial) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(None),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(Some(())),
    });
    removed.await.doing(|| format!("remove {}", partial.display()))?;
    folder::create_folder(&partial, account.passage_mode())?;
    let (data, password_file) = (partial.join("data"), partial.join("password"));
    account
        .create_private_folder(&data)
        .doing(|| format!("create {}", data.display()))?;
    account
        .write_private(&password_file, secret::password().expose_secret())
        .doing(|| format!("write {}", password_file.display()))?;

    let mut initdb = account.command(binaries.program("initdb"));
    initdb.args(OPTIONS).arg(data_argument(&data));
    initdb.arg("--pwfile").arg(&password_file);
    initdb.env("TZ", "UTC");
    // The lock goes to initdb too: should this process be killed, nobody takes over before it ends.
    initdb.stdin(lock.try_clone().doing(|| "share a lock".to_owned())?);
    tool::run(initdb).await?;

    settings::include(&data).doing(|| format!("configure {}", data.display()))?;
    if path.exists() {
        fs::remove_dir_all(path).doing(|| format!("remove {}", path.display()))?;
    }
    fs::rename(&partial, path).doing(|| format!("rename {}", partial.display()))
}

/// Whether a template is there. Systems that clean up their temporary folder remove old files and may
/// leave the folders.
fn is_complete(path: &Path) -> bool {
    ["password", "data/PG_VERSION", "data/global/pg_control"]
        .iter()
        .all(|file| path.join(file).exists())
}

/// The name of a file or folder next to the template: its own name contains a dot.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}.{suffix}", path.display()))
}

async fn lock(path: PathBuf) -> Result<File, SandboxError> {
    let text = path.display().to_string();
    let locked = tokio::task::spawn_blocking(move || {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.lock()?;
        io::Result::Ok(file)
    });
    locked
        .await
        .expect("locking does not panic and is not cancelled")
        .doing(|| format!("lock {text}"))
}

/// Copies all but the write-ahead log.
fn copy_folder(source: &Path, target: &Path, account: &Account) -> io::Result<()> {
    account.create_private_folder(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let copy = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &copy, account)?;
        } else if !source.ends_with("pg_wal") {
            // Through memory: to have the kernel copy a thousand small files takes several times as long.
            folder::write_private(&copy, &fs::read(entry.path())?)?;
            account.give(&copy)?;
        }
    }
    Ok(())
}

/// Replaces the system identifier, which is the first field of the control file in every version. The
/// file's checksum is wrong then, until `pg_resetwal --force` writes it anew.
fn new_identity(data: &Path) -> io::Result<()> {
    let mut control = OpenOptions::new()
        .write(true)
        .open(data.join("global/pg_control"))?;
    control.rewind()?;
    // Positive as a signed number, which is how SQL shows it.
    control.write_all(&(rand::random::<u64>() >> 1).to_ne_bytes())
}
