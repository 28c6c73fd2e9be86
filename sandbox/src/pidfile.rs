//! The file `postmaster.pid`: a running server describes itself in it, and a killed one leaves it.
//!
//! Owns how it is read, and what must be over before a killed server can be started again. Refuses to
//! start or stop anything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::Pid;

use crate::process;
use crate::wait;

/// How long the children of a killed server may take to notice that it is gone.
const ORPHANS_LIMIT: Duration = Duration::from_secs(10);

/// What the file of a data folder says.
pub(crate) struct PidFile {
    path: PathBuf,
    pid: Pid,
    /// The id of the server's shared memory segment.
    segment: Option<String>,
    state: String,
}

impl PidFile {
    /// Reads the file, if there is one and it is complete enough to name a process.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        let path = data.join("postmaster.pid");
        let text = fs::read_to_string(&path).ok()?;
        let mut lines = text.lines();
        let pid = Pid::from_raw(lines.next()?.trim().parse().ok()?);
        // Then: folder, time of the start, port, socket folder, address; a key and an id; the state.
        let segment = lines
            .nth(5)
            .and_then(|line| line.split_whitespace().nth(1))
            .map(str::to_owned);
        let state = lines.next().unwrap_or_default().trim().to_owned();
        Some(Self {
            path,
            pid,
            segment,
            state,
        })
    }

    /// Whether this process has written that it takes connections.
    pub(crate) fn says_ready(&self, process: Pid) -> bool {
        self.pid == process && self.state == "ready"
    }

    /// How many processes still use the shared memory of the server that wrote this.
    fn attached(&self) -> Option<u32> {
        let segments = fs::read_to_string("/proc/sysvipc/shm").ok()?;
        let mut rows = segments
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        // The columns are: key, id, permissions, size, creator, last user, count.
        let creator = self.pid.to_string();
        let row = rows.find(|row| {
            row.get(1).copied() == self.segment.as_deref() && row.get(4).copied() == Some(&*creator)
        })?;
        row.get(6)?.parse().ok()
    }
}

/// Makes sure that what a killed server left in `data` does not keep another one from starting.
pub(crate) async fn settle(data: &Path) -> io::Result<()> {
    let Some(file) = PidFile::read(data) else {
        return Ok(());
    };
    // Its children end by themselves, but not at once. PostgreSQL would not wait for them; should any
    // outlast this, it refuses to start and says so.
    wait::until(ORPHANS_LIMIT, || {
        io::Result::Ok((file.attached().unwrap_or(0) == 0).then_some(()))
    })
    .await?;
    // A dead process that its parent has not taken note of, which in a container may be for ever, is
    // still running for PostgreSQL.
    if process::is_zombie(file.pid) {
        fs::remove_file(&file.path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_is_read_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        assert!(PidFile::read(folder.path()).is_none());

        let text = "4711\n/data\n1796073096\n29999\n\n127.0.0.1\n 10010639         4\n";
        fs::write(folder.path().join("postmaster.pid"), text).unwrap();
        let starting = PidFile::read(folder.path()).unwrap();
        assert_eq!(starting.segment.as_deref(), Some("4"));
        assert!(!starting.says_ready(Pid::from_raw(4711)));

        fs::write(folder.path().join("postmaster.pid"), format!("{text}ready   \n")).unwrap();
        let ready = PidFile::read(folder.path()).unwrap();
        assert!(ready.says_ready(Pid::from_raw(4711)));
        assert!(
            !ready.says_ready(Pid::from_raw(4712)),
            "the file of another process"
        );
    }
}
