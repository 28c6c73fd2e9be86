//! Everything that can go wrong in a sandbox, in words that say what to do about it.
//!
//! Owns the wording. Refuses to know how anything is done: the other modules hand in facts.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a sandbox could not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// No folder with PostgreSQL's server programs was found.
    #[error(
        "no PostgreSQL server was found (looked in {searched}). Install one, for example with \
         `apt-get install postgresql`, or set PG_BIN to the folder that holds `postgres` and `initdb`"
    )]
    BinariesNotFound {
        /// The places that were tried, for the reader.
        searched: String,
    },

    /// A folder was named, but its programs are missing or cannot be used.
    #[error("the PostgreSQL programs in {} cannot be used: {reason}", dir.display())]
    BinariesUnusable {
        /// The folder that was tried.
        dir: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },

    /// The caller is root, PostgreSQL refuses root, and there is nobody else to run it as.
    #[error(
        "PostgreSQL does not run as root, and there is no user `postgres` or `nobody` to run it as. \
         Create one with `useradd --system postgres`, or call this as another user"
    )]
    NoServerUser,

    /// RabbitMQ's server was not found.
    #[error(
        "no RabbitMQ server was found (looked in {searched}). Install one, for example with \
         `apt-get install rabbitmq-server`, or set RABBITMQ_BIN to the folder that holds the scripts \
         `rabbitmq-server` and `rabbitmq-env`"
    )]
    BrokerNotFound {
        /// The places that were tried, for the reader.
        searched: String,
    },

    /// Erlang's tool for talking to a broker was not found.
    #[error(
        "`erl_call` was not found (looked in PATH and beside `erl`). It comes with Erlang: \
         `apt-get install erlang-base`"
    )]
    ErlCallNotFound,

    /// The caller is root, and there is nobody else to run a broker as.
    #[error(
        "there is no user `rabbitmq` or `nobody` to run a broker as. \
         Create one with `useradd --system rabbitmq`, or call this as another user"
    )]
    NoBrokerUser,

    /// A broker did not do what it was told.
    #[error("cannot {doing} on {broker}: {reason}")]
    Broker {
        /// The broker's name.
        broker: String,
        /// What was tried.
        doing: &'static str,
        /// What it said.
        reason: String,
    },

    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[source] rcgen::Error),

    /// The user that runs the servers cannot get into a folder.
    #[error(
        "user `{user}`, who runs the servers, cannot enter {}. Give every folder on the way the \
         permission `x` for others, or choose another place (SANDBOX_TMPDIR, or the data folder)",
        path.display()
    )]
    Unreachable {
        /// The folder in question.
        path: PathBuf,
        /// The user the servers run as.
        user: String,
    },

    /// A shared folder is there already, but somebody else could write to it.
    #[error(
        "{} belongs to somebody else or can be written by others, so it is not safe to use. \
         Remove it, or set SANDBOX_TMPDIR to a folder of your own",
        path.display()
    )]
    UnsafeFolder {
        /// The folder in question.
        path: PathBuf,
    },

    /// The data folder holds something that no sandbox made.
    #[error(
        "{} is not empty and was not made by a sandbox. Choose an empty or a new folder",
        path.display()
    )]
    NotASandbox {
        /// The folder in question.
        path: PathBuf,
    },

    /// Another process uses the data folder.
    #[error("{} is in use by another process. Stop it first, or choose another data folder", path.display())]
    FolderBusy {
        /// The folder in question.
        path: PathBuf,
    },

    /// `delete` was called on a folder that existed before the sandbox.
    #[error(
        "{} existed before this cluster, so it is not deleted; the servers are stopped. \
         Remove the folder yourself if that is what you want",
        path.display()
    )]
    NotCreatedHere {
        /// The folder in question.
        path: PathBuf,
    },

    /// The data in a folder was written by another major version.
    #[error(
        "the data in {} is of PostgreSQL {found}, but the programs are of version {expected}. \
         Set PG_BIN to version {found}, or remove the folder to start afresh",
        path.display()
    )]
    WrongVersion {
        /// The folder in question.
        path: PathBuf,
        /// The major version in the folder.
        found: String,
        /// The major version of the programs.
        expected: u32,
    },

    /// A port that was asked for by number is taken.
    #[error("port {port} on 127.0.0.1 is taken. Free it, or start the cluster without a fixed port")]
    PortTaken {
        /// The port that was asked for.
        port: u16,
    },

    /// A server did not come up.
    #[error("{node} did not start: {reason}. The end of its log ({}):\n{log}", log_path.display())]
    NotStarted {
        /// The node's name.
        node: String,
        /// What was seen.
        reason: String,
        /// Where the whole log is.
        log_path: PathBuf,
        /// Its last lines.
        log: String,
    },

    /// Something did not come to pass in time.
    #[error("{what} did not happen within {limit:?}. {hint}")]
    TimedOut {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
        /// What was last seen, or where to look.
        hint: String,
    },

    /// One of the servers' own tools failed.
    #[error("`{program}` failed ({status}): {output}")]
    ProgramFailed {
        /// The tool's name.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote, both streams.
        output: String,
    },

    /// A statement on a node failed.
    #[error("cannot {doing} on {node}: {source}")]
    Sql {
        /// The node's name.
        node: String,
        /// What was tried.
        doing: &'static str,
        /// What the driver said.
        source: Box<sqlx::Error>,
    },

    /// The operating system refused something.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the operating system said.
        source: io::Error,
    },

    /// A node's handle was used after its cluster was stopped or dropped.
    #[error(
        "{node} cannot be started: its cluster has been stopped. Keep the `Cluster` alive while its nodes are used"
    )]
    Closed {
        /// The node's name.
        node: String,
    },

    /// A replica was named that is not there.
    #[error("there is no replica with index {index}: the cluster has {count}. The first one has index 0")]
    NoSuchReplica {
        /// The index that was asked for.
        index: usize,
        /// How many replicas there are.
        count: usize,
    },
}

/// Turns an [`io::Error`] into a [`SandboxError`] that says what was being done.
pub(crate) trait Doing<T> {
    /// `what` completes the sentence "cannot …".
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, SandboxError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, SandboxError> {
        self.map_err(|source| SandboxError::Io {
            doing: what(),
            source: source.into(),
        })
    }
}
