//! The data folder of `tenantry dev`: who may use it, and what is remembered in it between two starts.
//!
//! Its files are private to whoever ran the command. Refuses to know what the secrets in it are for.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rand::distr::{Alphanumeric, SampleString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::cli::Failure;

/// The folder, for this process alone.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Held until the process ends, however it ends.
    _lock: File,
}

/// What is the same at every start on the same folder. Written before it is used, so that nothing is ever sealed with a key
/// that is lost.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Memory {
    pub(super) master_key: String,
    pub(super) operator_token: String,
    pub(super) catalog_password: String,
    /// The seeded tenants' API keys.
    pub(super) api_keys: BTreeMap<String, String>,
    /// Where the database servers' folder is, when it is not in this one.
    pub(super) servers: Option<PathBuf>,
}

/// What the service runs with.
pub(super) const CONFIG: &str = "tenantry.toml";
/// How long another process gets to leave the folder: it may be stopping its servers.
const PATIENCE: Duration = Duration::from_secs(10);
const MEMORY: &str = "memory.json";
/// Says that everything is ready, and how to reach it.
pub(super) const READY: &str = "dev.json";
const LOCK: &str = "lock";
const SERVERS: &str = "postgres";

impl Folder {
    /// Takes the folder, made here if need be. Waits a little for another process that may be about to end.
    pub(super) async fn take(path: &Path) -> Result<Self, Failure> {
        // Passable, because root hands the servers to another user; the files in it are private one by one.
        let opened = fs::create_dir_all(path)
            .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o711)))
            .and_then(|()| path.canonicalize())
            .and_then(|path| Ok((open_lock(&path)?, path)));
        let (lock, path) = opened.map_err(failed("use the data folder", path))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path, _lock: lock }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(TryLockError::WouldBlock) => return Err(in_use(&path)),
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
            }
        }
    }

    /// The folder's file or sub-folder of that name.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder of the database servers, if nothing speaks against it.
    pub(super) fn servers(&self) -> PathBuf {
        self.at(SERVERS)
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What an earlier start remembered, or new secrets, remembered from now on.
    pub(super) fn recall(&self) -> Result<Memory, Failure> {
        if let Some(memory) = self.read(MEMORY)? {
            return Ok(memory);
        }
        let memory = Memory {
            master_key: master_key(),
            operator_token: random_word(),
            catalog_password: random_word(),
            api_keys: BTreeMap::new(),
            servers: None,
        };
        self.remember(&memory)?;
        Ok(memory)
    }

    /// Remembers for the next start.
    pub(super) fn remember(&self, memory: &Memory) -> Result<(), Failure> {
        self.write(MEMORY, &json(memory))
    }

    /// Says to whoever waits for it that everything is ready, and how to reach it.
    pub(super) fn announce(&self, ready: &impl Serialize) -> Result<(), Failure> {
        self.write(READY, &json(ready))
    }

    /// Takes back that everything is ready.
    pub(super) fn retract(&self) -> Result<(), Failure> {
        remove(&self.at(READY))
    }

    /// Writes a private file whole: nobody ever reads half of it.
    pub(super) fn write(&self, name: &str, content: &str) -> Result<(), Failure> {
        let (path, partial) = (self.at(name), self.at(&format!("{name}.partial")));
        remove(&partial)?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&partial)
            .and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(failed("write", &path))
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        let path = self.at(name);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(failed("read", &path))?,
        };
        // The error's own text may repeat a part of the file, which holds secrets.
        serde_json::from_str(&text).map(Some).map_err(|_| {
            Failure::operation(format_args!(
                "{} is damaged\n  Start afresh with --reset; the data in the folder is lost then.",
                path.display()
            ))
        })
    }

    /// Forgets everything, except for the servers' data.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        [READY, CONFIG, MEMORY]
            .iter()
            .try_for_each(|name| remove(&self.at(name)))
    }

    /// What an earlier start remembered, if it can be read.
    pub(super) fn glimpse(&self) -> Option<Memory> {
        self.read(MEMORY).ok().flatten()
    }
}

fn in_use(path: &Path) -> Failure {
    Failure::operation(format_args!(
        "{} is in use by another `tenantry dev`\n  Stop that one first, or choose another folder with --data-dir.",
        path.display()
    ))
}

fn open_lock(folder: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(LOCK))
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("texts and maps of texts can be written as JSON")
}

/// "cannot … PATH: …"
pub(super) fn failed<E: Display>(doing: &'static str, path: &Path) -> impl FnOnce(E) -> Failure {
    move |error| Failure::operation(format_args!("cannot {doing} {}: {error}", path.display()))
}

fn master_key() -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(rand::random::<[u8; 32]>())
}

/// 190 bits in letters and digits, which mean themselves in URLs, files and shells.
fn random_word() -> String {
    Alphanumeric.sample_string(&mut rand::rng(), 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn secrets_are_remembered_and_private() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("a/b");
        let folder = Folder::take(&path).await.unwrap();
        let first = folder.recall().unwrap();
        assert_eq!(folder.recall().unwrap().master_key, first.master_key);
        assert_eq!(
            fs::metadata(folder.at(MEMORY)).unwrap().permissions().mode() & 0o777,
            0o600
        );

        folder.forget().unwrap();
        assert_ne!(folder.recall().unwrap().master_key, first.master_key);
    }

    #[tokio::test]
    async fn a_folder_is_had_when_the_process_before_has_left_it() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::take(temporary.path()).await.unwrap();
        let second = Folder::take(temporary.path());
        tokio::pin!(second);
        assert!(
            tokio::time::timeout(Duration::from_millis(200), &mut second)
                .await
                .is_err()
        );
        drop(folder);
        second.await.unwrap();
    }

    #[tokio::test]
    async fn a_damaged_memory_is_reported_without_its_content() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::take(temporary.path()).await.unwrap();
        folder
            .write(MEMORY, r#"{"master_key": "very secret", "operator_token": 7}"#)
            .unwrap();
        let refusal = folder.recall().err().unwrap().to_string();
        assert!(
            refusal.contains("--reset") && !refusal.contains("secret\""),
            "{refusal}"
        );
    }

    #[tokio::test]
    async fn readiness_is_announced_and_taken_back() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::take(temporary.path()).await.unwrap();
        folder.retract().unwrap();
        folder.announce(&serde_json::json!({ "api_url": "x" })).unwrap();
        assert!(folder.at(READY).exists());
        folder.retract().unwrap();
        assert!(!folder.at(READY).exists());
    }
}
