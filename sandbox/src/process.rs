//! One postmaster process and its children: signals, and how it ended.
//!
//! Refuses to know what the server is for.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A signal is delivered within microseconds, except to a process that waits for a disk.
const STOP_LIMIT: Duration = Duration::from_millis(100);

/// A server that was started from this process.
#[derive(Debug)]
pub(crate) struct Postmaster {
    child: Child,
}

impl Postmaster {
    /// Starts it; its messages are appended to `log`.
    pub(crate) fn spawn(mut command: Command, log: &Path) -> io::Result<Self> {
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(log)?;
        command.stdout(log.try_clone()?).stderr(log);
        Ok(Self {
            child: command.spawn()?,
        })
    }

    /// The process id. It is not given to another process before `exited` has reported the end.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(
            self.child
                .id()
                .try_into()
                .expect("a process id fits its own type"),
        )
    }

    /// How it ended, if it has.
    pub(crate) fn exited(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends a signal to the postmaster alone, which passes it on as it sees fit.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Stops the postmaster and all its children, which are returned, where they are.
    pub(crate) fn freeze(&self) -> Vec<Pid> {
        self.signal_all(Signal::SIGSTOP)
    }

    /// Lets them run on.
    pub(crate) fn thaw(&self) {
        for child in children(self.pid()) {
            send(child, Signal::SIGCONT);
        }
        self.signal(Signal::SIGCONT);
    }

    /// Kills them all, and returns the children; none gets to do anything any more.
    pub(crate) fn kill(&self) -> Vec<Pid> {
        let children = self.signal_all(Signal::SIGKILL);
        self.signal(Signal::SIGKILL);
        children
    }

    /// The postmaster is stopped first: it cannot start new children behind our back, nor react to
    /// what becomes of the others. Children end on their own meanwhile, hence the second look.
    fn signal_all(&self, signal: Signal) -> Vec<Pid> {
        self.signal(Signal::SIGSTOP);
        let deadline = Instant::now() + STOP_LIMIT;
        while !is_still(self.pid()) && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let mut reached = Vec::new();
        loop {
            let fresh: Vec<_> = children(self.pid())
                .into_iter()
                .filter(|child| !reached.contains(child))
                .collect();
            if fresh.is_empty() {
                return reached;
            }
            for child in fresh {
                send(child, signal);
                reached.push(child);
            }
        }
    }
}

/// The end of a process between the look and the signal is no error: there is nothing left to signal.
pub(crate) fn send(pid: Pid, signal: Signal) {
    if let Err(error) = kill(pid, signal)
        && error != nix::errno::Errno::ESRCH
    {
        tracing::warn!(%pid, %signal, %error, "A server process could not be signalled.");
    }
}

/// All processes whose parent is `parent`.
fn children(parent: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| Stat::of(pid).is_some_and(|stat| stat.parent == parent.as_raw()))
        .map(Pid::from_raw)
        .collect()
}

/// What `/proc/<pid>/stat` says.
struct Stat {
    state: char,
    parent: i32,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in parentheses, and may contain anything.
        let mut fields = line.rsplit_once(") ")?.1.split(' ');
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
        })
    }
}

/// Whether a process executes nothing: it is stopped, dead, or gone.
pub(crate) fn is_still(pid: Pid) -> bool {
    Stat::of(pid.as_raw()).is_none_or(|stat| matches!(stat.state, 'T' | 't' | 'Z' | 'X'))
}

/// Whether a process has ended, even if nobody has taken note yet.
pub(crate) fn is_gone(pid: Pid) -> bool {
    Stat::of(pid.as_raw()).is_none_or(|stat| matches!(stat.state, 'Z' | 'X'))
}

/// Whether a process has ended, and nobody has taken note yet.
pub(crate) fn is_zombie(pid: Pid) -> bool {
    Stat::of(pid.as_raw()).is_some_and(|stat| stat.state == 'Z')
}

/// Whether a process is stopped, and could be made to run on.
pub(crate) fn is_stopped(pid: Pid) -> bool {
    Stat::of(pid.as_raw()).is_some_and(|stat| stat.state == 'T')
}
