//! Starting, stopping, killing and freezing a node's server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{Inner, LOG_LINES_IN_ERRORS, Node};
use crate::error::{Doing, SandboxError};
use crate::pidfile::{self, PidFile};
use crate::process::{self, Postmaster};
use crate::settings::Upstream;
use crate::template::data_argument;
use crate::wait;

/// Long enough for a crash recovery on a slow disk.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long a server may take to stop by itself, before it is made to.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// How long the kernel may take to stop or end processes.
const SIGNAL_LIMIT: Duration = Duration::from_secs(10);

impl Node {
    /// Starts the server and waits until it answers queries. Does nothing when it runs already.
    ///
    /// # Errors
    ///
    /// When the server ends or does not answer; the error carries the end of its log.
    pub async fn start(&self) -> Result<(), SandboxError> {
        self.launch().await?;
        self.execute("query", "select 1").await
    }

    /// Starts the server and waits until it says that it is ready.
    pub(crate) async fn launch(&self) -> Result<(), SandboxError> {
        if !self.is_running() {
            pidfile::settle(self.data())
                .await
                .doing(|| format!("clear up after {}", self.name()))?;
        }
        self.spawn()?;
        let ready = wait::until(START_LIMIT, || match &mut *self.inner.process.lock() {
            None => Err(self.not_started("it was stopped meanwhile")),
            Some(process) => match process.exited().doing(|| format!("wait for {}", self.name()))? {
                Some(status) => Err(self.not_started(&format!("it ended with {status}"))),
                None => {
                    let file = PidFile::read(self.data());
                    Ok(file
                        .is_some_and(|file| file.says_ready(process.pid()))
                        .then_some(()))
                }
            },
        });
        if ready.await?.is_some() {
            return Ok(());
        }
        let error = self.not_started(&format!("it was not ready within {START_LIMIT:?}"));
        self.kill().await?;
        Err(error)
    }

    fn spawn(&self) -> Result<(), SandboxError> {
        let Inner {
            name,
            data,
            log,
            common,
            ..
        } = &*self.inner;
        let mut process = self.inner.process.lock();
        if is_alive(&mut process) {
            return Ok(());
        }
        if common.closed.load(Ordering::Acquire) {
            return Err(SandboxError::Closed { node: name.clone() });
        }
        self.write_settings()?;
        let mut command = common.account.command(common.binaries.program("postgres"));
        command.arg(data_argument(data));
        *process = Some(Postmaster::spawn(command, log).doing(|| format!("start {name}"))?);
        Ok(())
    }

    fn write_settings(&self) -> Result<(), SandboxError> {
        let Inner {
            name,
            data,
            common,
            follows,
            ..
        } = &*self.inner;
        let (slot, passfile) = (self.slot(), common.passfile());
        let upstream = follows.lock().map(|port| Upstream {
            port,
            slot: &slot,
            passfile: &passfile,
        });
        common
            .settings
            .write(&common.account, data, name, self.port(), upstream)
            .doing(|| format!("configure {name}"))
    }

    /// Writes the settings and makes a running server read them.
    pub(crate) fn reload(&self) -> Result<(), SandboxError> {
        self.write_settings()?;
        if let Some(process) = &*self.inner.process.lock() {
            process.signal(Signal::SIGHUP);
        }
        Ok(())
    }

    /// Stops the server in an orderly way: open transactions are rolled back, connections closed, and
    /// the connected replicas receive everything. A frozen server is thawed first. Does nothing when
    /// the server does not run.
    ///
    /// # Errors
    ///
    /// When the kernel does not end the processes. A server that does not stop in time is made to,
    /// which is logged as a warning and is no error.
    pub async fn stop(&self) -> Result<(), SandboxError> {
        self.thaw().await?;
        if self.ends_after(Signal::SIGINT).await? {
            return Ok(());
        }
        tracing::warn!(
            db.node = self.name(),
            "A server did not stop in time and is made to."
        );
        if self.ends_after(Signal::SIGQUIT).await? {
            return Ok(());
        }
        self.kill().await
    }

    async fn ends_after(&self, signal: Signal) -> Result<bool, SandboxError> {
        match &*self.inner.process.lock() {
            None => return Ok(true),
            Some(process) => process.signal(signal),
        }
        Ok(self.has_ended(STOP_LIMIT).await?.is_some())
    }

    /// Kills the postmaster and all its children, as a power failure would: nothing is flushed, no
    /// client is told, and the stale files of a crash are left. [`start`](Self::start) recovers.
    ///
    /// # Errors
    ///
    /// When the kernel does not end the processes in time.
    pub async fn kill(&self) -> Result<(), SandboxError> {
        let children = match &*self.inner.process.lock() {
            None => return Ok(()),
            Some(process) => process.kill(),
        };
        let ended = self.has_ended(SIGNAL_LIMIT).await?;
        let all_gone = || children.iter().all(|&child| process::is_gone(child));
        let gone = wait::until(SIGNAL_LIMIT, || Ok::<_, SandboxError>(all_gone().then_some(()))).await?;
        ended
            .and(gone)
            .ok_or_else(|| self.timed_out("the end of", SIGNAL_LIMIT))
    }

    /// Stops all processes of the server where they are, as a machine does that hangs: connections
    /// stay open, new ones are accepted by the kernel, and nothing answers. Does nothing when the
    /// server does not run.
    ///
    /// # Errors
    ///
    /// When the kernel does not stop the processes in time.
    pub async fn freeze(&self) -> Result<(), SandboxError> {
        let (pid, children) = match &*self.inner.process.lock() {
            None => return Ok(()),
            Some(process) => (process.pid(), process.freeze()),
        };
        let all_still = || children.iter().chain([&pid]).all(|&pid| process::is_still(pid));
        let still = wait::until(SIGNAL_LIMIT, || Ok::<_, SandboxError>(all_still().then_some(()))).await?;
        still.ok_or_else(|| self.timed_out("the freezing of", SIGNAL_LIMIT))
    }

    /// Lets a frozen server run on. Does nothing when it is not frozen.
    ///
    /// # Errors
    ///
    /// When the kernel does not let the processes run in time.
    pub async fn thaw(&self) -> Result<(), SandboxError> {
        match &*self.inner.process.lock() {
            None => return Ok(()),
            Some(process) => process.thaw(),
        }
        let runs = wait::until(SIGNAL_LIMIT, || {
            Ok::<_, SandboxError>((!self.is_frozen()).then_some(()))
        });
        runs.await?
            .ok_or_else(|| self.timed_out("the thawing of", SIGNAL_LIMIT))
    }

    /// Stops the server in an orderly way and starts it again.
    ///
    /// # Errors
    ///
    /// Those of [`stop`](Self::stop) and [`start`](Self::start).
    pub async fn restart(&self) -> Result<(), SandboxError> {
        self.stop().await?;
        self.start().await
    }

    /// Whether the server's process exists, frozen or not.
    pub fn is_running(&self) -> bool {
        is_alive(&mut self.inner.process.lock())
    }

    /// Whether the server is frozen.
    pub fn is_frozen(&self) -> bool {
        self.inner
            .process
            .lock()
            .as_ref()
            .is_some_and(|process| process::is_stopped(process.pid()))
    }

    /// Waits until the process has ended, and takes note of it.
    async fn has_ended(&self, limit: Duration) -> Result<Option<()>, SandboxError> {
        wait::until(limit, || Ok((!self.is_running()).then_some(()))).await
    }

    fn not_started(&self, reason: &str) -> SandboxError {
        SandboxError::NotStarted {
            node: self.name().to_owned(),
            reason: reason.to_owned(),
            log_path: self.inner.log.clone(),
            log: self.log_tail(LOG_LINES_IN_ERRORS),
        }
    }
}

/// Whether there is a process that has not ended; one that has is forgotten.
fn is_alive(process: &mut Option<Postmaster>) -> bool {
    // An error would mean that the process is not our child, which it is.
    let alive = process
        .as_mut()
        .is_some_and(|process| matches!(process.exited(), Ok(None)));
    if !alive {
        *process = None;
    }
    alive
}
