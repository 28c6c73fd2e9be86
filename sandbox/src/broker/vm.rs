//! The processes of one broker: Erlang's virtual machine and its helpers.
//!
//! The helpers come and go, change their parents and their process groups. What they keep is the
//! environment they were started with, and it carries a mark: the broker's folder.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::process::{self, Postmaster};

/// The variable that carries the mark. The guardian looks for it too.
const MARK: &str = "SANDBOX_BROKER";

/// A signal is delivered within microseconds, except to a process that waits for a disk.
const STOP_LIMIT: Duration = Duration::from_millis(100);

/// A broker that was started from this process.
#[derive(Debug)]
pub(super) struct Vm {
    process: Postmaster,
    family: Family,
}

/// How the processes of one broker are recognised.
#[derive(Clone, Debug)]
pub(super) struct Family {
    mark: String,
}

impl Family {
    pub(super) fn of(root: &Path) -> Self {
        Self {
            mark: format!("{}/", root.display()),
        }
    }

    /// Makes what is started by this command one of the broker's processes.
    pub(super) fn adopt(&self, command: &mut Command) {
        command.env(MARK, &self.mark);
    }

    /// All processes of the broker that have not ended.
    pub(super) fn members(&self) -> Vec<Pid> {
        let entry = format!("{MARK}={}", self.mark);
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        processes
            .filter_map(|process| {
                let pid = process.file_name().to_str()?.parse().ok()?;
                // Another user's cannot be read, and a zombie's is empty.
                let environment = fs::read(process.path().join("environ")).ok()?;
                let marked = environment
                    .split(|&byte| byte == 0)
                    .any(|variable| variable == entry.as_bytes());
                marked.then(|| Pid::from_raw(pid))
            })
            .collect()
    }

    /// Sends a signal to all members, and to those that they start meanwhile.
    pub(super) fn signal(&self, signal: Signal) {
        let mut reached = Vec::new();
        loop {
            let fresh: Vec<_> = self
                .members()
                .into_iter()
                .filter(|member| !reached.contains(member))
                .collect();
            if fresh.is_empty() {
                return;
            }
            for member in fresh {
                process::send(member, signal);
                reached.push(member);
            }
        }
    }
}

impl Vm {
    /// Starts it; its messages are appended to `log`.
    pub(super) fn spawn(mut command: Command, family: &Family, log: &Path) -> io::Result<Self> {
        family.adopt(&mut command);
        Ok(Self {
            process: Postmaster::spawn(command, log)?,
            family: family.clone(),
        })
    }

    pub(super) fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// How it ended, if it has.
    pub(super) fn exited(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.exited()
    }

    /// Asks for an orderly end.
    pub(super) fn terminate(&self) {
        self.process.signal(Signal::SIGTERM);
    }

    /// Stops all processes where they are.
    pub(super) fn freeze(&self) {
        self.hold();
        self.family.signal(Signal::SIGSTOP);
    }

    /// Lets them run on.
    pub(super) fn thaw(&self) {
        self.family.signal(Signal::SIGCONT);
    }

    /// Kills them all; none gets to do anything any more.
    pub(super) fn kill(&self) {
        self.hold();
        self.family.signal(Signal::SIGKILL);
    }

    /// The virtual machine is stopped first: it cannot react to what becomes of its helpers.
    fn hold(&self) {
        self.process.signal(Signal::SIGSTOP);
        let deadline = Instant::now() + STOP_LIMIT;
        while !process::is_still(self.pid()) && Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
}
