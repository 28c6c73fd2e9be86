//! Nothing is left behind, however the owner of a cluster or broker ends.
//!
//! A guardian is a small shell script (`guardian.sh`) in a process of its own that waits at a pipe.
//! When the other end closes, because the cluster was stopped or dropped or because its process was
//! killed, it stops the servers and removes the folder. A cluster's orderly end takes the very same
//! way, so the way is tested by every test that uses a cluster. Refuses to know what a node is.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::error::{Doing, SandboxError};

const SCRIPT: &str = include_str!("guardian.sh");

/// What becomes of the folder in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Orders {
    /// Remove it, with everything in it.
    Remove,
    /// Stop the servers in it and leave the data.
    Keep,
}

/// The process that cleans up. Dropping this makes it do so, and waits until it is done.
#[derive(Debug)]
pub(crate) struct Guardian {
    root: PathBuf,
    lock: File,
    orders: Orders,
    process: Child,
    /// The end of the pipe that this process holds. The standard library opens it so that it is
    /// closed in every program that is started from here: no server keeps it open by accident.
    line: Option<ChildStdin>,
}

impl Guardian {
    /// Starts to watch over `root`. The guardian shares `lock`, so that the folder is not free for
    /// somebody else before the clean-up is finished.
    pub(crate) fn post(root: &Path, lock: &File, orders: Orders) -> Result<Self, SandboxError> {
        let mut process = script(root, lock, orders, Stdio::piped())?;
        let line = process.stdin.take();
        Ok(Self {
            root: root.to_owned(),
            lock: share(lock, root)?,
            orders,
            process,
            line,
        })
    }

    /// Cleans up after an owner whose own guardian was killed too.
    pub(crate) fn clear_up(root: &Path, lock: &File, orders: Orders) -> Result<(), SandboxError> {
        let status = script(root, lock, orders, Stdio::null())?.wait();
        let finished = status.and_then(|status| match status.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!("the guardian ended with {status}"))),
        });
        finished.doing(|| format!("clear up {}", root.display()))
    }

    /// From now on the orders are to remove the folder.
    pub(crate) fn order_removal(&mut self) {
        self.orders = Orders::Remove;
        self.say("remove");
    }

    /// Whether it has listened shows in the end.
    fn say(&mut self, word: &str) {
        if let Some(line) = &mut self.line {
            let _ = writeln!(line, "{word}");
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.say("bye");
        drop(self.line.take());
        if self.process.wait().is_ok_and(|status| status.success()) {
            return;
        }
        tracing::warn!(folder = %self.root.display(), "A guardian did not finish; another one tries.");
        if let Err(error) = Self::clear_up(&self.root, &self.lock, self.orders) {
            tracing::error!(folder = %self.root.display(), %error, "Something of a sandbox was left behind.");
        }
    }
}

fn share(lock: &File, root: &Path) -> Result<File, SandboxError> {
    lock.try_clone()
        .doing(|| format!("share the lock of {}", root.display()))
}

fn script(root: &Path, lock: &File, orders: Orders, line: Stdio) -> Result<Child, SandboxError> {
    Command::new("/bin/sh")
        .arg("-c")
        .arg(SCRIPT)
        .arg("sandbox-guardian")
        .env("SANDBOX_ROOT", root)
        .env("SANDBOX_REMOVE", if orders == Orders::Remove { "yes" } else { "" })
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(line)
        .stdout(share(lock, root)?)
        .stderr(Stdio::null())
        // A Ctrl-C in the terminal must not end the one who cleans up after it.
        .process_group(0)
        .spawn()
        .doing(|| "start the guardian, /bin/sh".to_owned())
}
