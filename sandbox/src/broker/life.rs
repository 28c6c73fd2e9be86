//! Starting, stopping, killing and freezing a broker.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::vm::{Family, Vm};
use super::{Broker, LOG_LINES_IN_ERRORS};
use crate::error::{Doing, SandboxError};
use crate::port::ReservedPort;
use crate::{process, wait};

/// A start loads a thousand modules, which takes its time on a machine that is busy with other tests.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long one look whether the broker is ready may take.
const GREETING_LIMIT: Duration = Duration::from_secs(5);
/// How long a broker may take to stop by itself, before it is made to.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How long the kernel may take to stop or end processes.
const SIGNAL_LIMIT: Duration = Duration::from_secs(10);

/// What a client says first, and the beginning of the answer: a method frame on channel 0, whose method,
/// after seven bytes of frame header, is `connection.start` (AMQP 0-9-1, 2.2.4 and 4.2).
const CLIENT_GREETING: &[u8] = b"AMQP\x00\x00\x09\x01";
const METHOD_FRAME: [u8; 3] = [1, 0, 0];
const CONNECTION_START: [u8; 4] = [0, 10, 0, 10];

impl Broker {
    /// Starts the broker, with the data and the ports it had, and waits until it answers clients. Does
    /// nothing when it runs already, or is frozen.
    ///
    /// # Errors
    ///
    /// When the broker ends or does not answer; the error carries the end of its log.
    pub async fn start(&self) -> Result<(), SandboxError> {
        if self.is_frozen() {
            return Ok(());
        }
        self.spawn()?;
        let ready = wait::until_async(START_LIMIT, async || {
            self.still_starting()?;
            Ok((greets(self.port()).await && self.tls_is_open().await).then_some(()))
        });
        if ready.await?.is_some() {
            return Ok(());
        }
        let error = self.not_started(&format!("it was not ready within {START_LIMIT:?}"));
        self.kill().await?;
        Err(error)
    }

    fn spawn(&self) -> Result<(), SandboxError> {
        let mut vm = self.vm.lock();
        if is_alive(&mut vm) {
            return Ok(());
        }
        let started = Vm::spawn(self.server_command(), &self.family(), self.files.log());
        *vm = Some(started.doing(|| format!("start {}", self.name()))?);
        Ok(())
    }

    fn still_starting(&self) -> Result<(), SandboxError> {
        match &mut *self.vm.lock() {
            None => Err(self.not_started("it was stopped meanwhile")),
            Some(vm) => match vm.exited().doing(|| format!("wait for {}", self.name()))? {
                Some(status) => Err(self.not_started(&format!("it ended with {status}"))),
                None => Ok(()),
            },
        }
    }

    fn server_command(&self) -> Command {
        let mut command = self.erlang_command(&self.programs.server);
        let home = self.files.home();
        let erlang = self.ports.erlang.number();
        // The node has its name before RabbitMQ looks: so it neither starts nor asks the port mapper that
        // all nodes of a machine share (epmd), and everybody who knows the port finds it.
        let arguments = format!(
            "+S 1:1 -sname {} -start_epmd false -erl_epmd_port {erlang} \
             -kernel inet_dist_use_interface {{127,0,0,1}}",
            self.name()
        );
        command
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", arguments)
            .env("RABBITMQ_NODENAME", self.name())
            .env("RABBITMQ_DIST_PORT", erlang.to_string())
            .env("RABBITMQ_CONFIG_FILE", self.files.configuration())
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", self.files.plugins())
            .env("RABBITMQ_MNESIA_BASE", home.join("data"))
            .env("RABBITMQ_LOG_BASE", home.join("log"))
            .env("RABBITMQ_LOGS", "-")
            // Not there, so that the machine's own are not read.
            .env("RABBITMQ_CONF_ENV_FILE", home.join("none.conf"))
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", home.join("none.config"))
            // The script becomes the server, instead of waiting for it.
            .env("RUNNING_UNDER_SYSTEMD", "true");
        command
    }

    /// A command of the broker's user that nothing from outside redirects.
    pub(super) fn erlang_command(&self, program: &Path) -> Command {
        let mut command = self.account.command(program);
        for (name, _) in std::env::vars_os() {
            let bytes = name.as_encoded_bytes();
            if bytes.starts_with(b"RABBITMQ_") || bytes.starts_with(b"ERL_") || bytes == b"NOTIFY_SOCKET" {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.files.home())
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", self.files.home())
            // No dump: it takes longer than everything else, and the log says what happened.
            .env("ERL_CRASH_DUMP_SECONDS", "0");
        command
    }

    pub(super) fn family(&self) -> Family {
        Family::of(self.folder())
    }

    async fn tls_is_open(&self) -> bool {
        match self.ports.tls.as_ref().map(ReservedPort::number) {
            None => true,
            Some(port) => TcpStream::connect(("127.0.0.1", port)).await.is_ok(),
        }
    }

    /// Stops the broker in an orderly way: clients are told, and durable queues keep their persistent
    /// messages. A frozen broker is thawed first. Does nothing when the broker does not run.
    ///
    /// # Errors
    ///
    /// When the kernel does not end the processes. A broker that does not stop in time is made to, which is
    /// logged as a warning and is no error.
    pub async fn stop(&self) -> Result<(), SandboxError> {
        self.thaw().await?;
        match &*self.vm.lock() {
            None => return Ok(()),
            Some(vm) => vm.terminate(),
        }
        if !self.has_ended(STOP_LIMIT).await? {
            tracing::warn!(
                broker.name = self.name(),
                "A broker did not stop in time and is made to."
            );
        }
        self.kill_the_rest().await
    }

    /// Kills the broker and all its helpers, as a power failure would: nothing is flushed, and no client
    /// is told. [`start`](Self::start) recovers.
    ///
    /// # Errors
    ///
    /// When the kernel does not end the processes in time.
    pub async fn kill(&self) -> Result<(), SandboxError> {
        if self.vm.lock().is_none() {
            return Ok(());
        }
        self.kill_the_rest().await
    }

    async fn kill_the_rest(&self) -> Result<(), SandboxError> {
        match &*self.vm.lock() {
            Some(vm) => vm.kill(),
            // Helpers end by themselves when the virtual machine has, but not at the same moment.
            None => self.family().signal(Signal::SIGKILL),
        }
        let all_gone = || !self.is_running() && self.family().members().is_empty();
        let gone = wait::until(SIGNAL_LIMIT, || Ok::<_, SandboxError>(all_gone().then_some(())));
        gone.await?
            .ok_or_else(|| self.timed_out("the end of", SIGNAL_LIMIT))
    }

    /// Stops all processes of the broker where they are, as a machine does that hangs: connections stay
    /// open, new ones are accepted by the kernel, and nothing answers. Does nothing when the broker does
    /// not run.
    ///
    /// # Errors
    ///
    /// When the kernel does not stop the processes in time.
    pub async fn freeze(&self) -> Result<(), SandboxError> {
        match &*self.vm.lock() {
            None => return Ok(()),
            Some(vm) => vm.freeze(),
        }
        let all_still = || self.family().members().into_iter().all(process::is_still);
        let still = wait::until(SIGNAL_LIMIT, || Ok::<_, SandboxError>(all_still().then_some(())));
        still
            .await?
            .ok_or_else(|| self.timed_out("the freezing of", SIGNAL_LIMIT))
    }

    /// Lets a frozen broker run on. Does nothing when it is not frozen.
    ///
    /// # Errors
    ///
    /// When the kernel does not let the processes run in time.
    pub async fn thaw(&self) -> Result<(), SandboxError> {
        match &*self.vm.lock() {
            None => return Ok(()),
            Some(vm) => vm.thaw(),
        }
        let runs = wait::until(SIGNAL_LIMIT, || {
            Ok::<_, SandboxError>((!self.is_frozen()).then_some(()))
        });
        runs.await?
            .ok_or_else(|| self.timed_out("the thawing of", SIGNAL_LIMIT))
    }

    /// Whether the broker's process exists, frozen or not.
    pub fn is_running(&self) -> bool {
        is_alive(&mut self.vm.lock())
    }

    /// Whether the broker is frozen.
    pub fn is_frozen(&self) -> bool {
        let vm = self.vm.lock();
        vm.as_ref().is_some_and(|vm| process::is_stopped(vm.pid()))
    }

    /// Ends the broker and removes its folder, as dropping it does, without holding up the thread.
    pub async fn delete(mut self) {
        if let Some(guardian) = self.guardian.take() {
            let dismissed = tokio::task::spawn_blocking(move || drop(guardian)).await;
            dismissed.expect("dropping a guardian does not panic and is not cancelled");
        }
    }

    /// Waits until the process has ended, and takes note of it.
    async fn has_ended(&self, limit: Duration) -> Result<bool, SandboxError> {
        let ended = wait::until(limit, || {
            Ok::<_, SandboxError>((!self.is_running()).then_some(()))
        });
        Ok(ended.await?.is_some())
    }

    fn not_started(&self, reason: &str) -> SandboxError {
        SandboxError::NotStarted {
            node: self.name().to_owned(),
            reason: reason.to_owned(),
            log_path: self.log_path().to_owned(),
            log: self.log_tail(LOG_LINES_IN_ERRORS),
        }
    }

    pub(super) fn timed_out(&self, what: &str, limit: Duration) -> SandboxError {
        SandboxError::TimedOut {
            what: format!("{what} {}", self.name()),
            limit,
            hint: format!("The end of its log:\n{}", self.log_tail(LOG_LINES_IN_ERRORS)),
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.guardian.take());
        // Takes note of its end, so that no zombie stays in a process that lives on.
        self.is_running();
    }
}

/// Whether a broker answers as AMQP wants it.
async fn greets(port: u16) -> bool {
    let greeting = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(CLIENT_GREETING).await?;
        let mut answer = [0; 11];
        stream.read_exact(&mut answer).await?;
        Ok::<_, std::io::Error>(answer.starts_with(&METHOD_FRAME) && answer.ends_with(&CONNECTION_START))
    };
    matches!(timeout(GREETING_LIMIT, greeting).await, Ok(Ok(true)))
}

/// Whether there is a process that has not ended; one that has is forgotten.
fn is_alive(vm: &mut Option<Vm>) -> bool {
    // An error would mean that the process is not our child, which it is.
    let alive = vm.as_mut().is_some_and(|vm| matches!(vm.exited(), Ok(None)));
    if !alive {
        *vm = None;
    }
    alive
}
