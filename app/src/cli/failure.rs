//! How a command fails: what the person reads, and the exit code that scripts read.

use std::{fmt, process::ExitCode};

/// Why a command did not do what it was asked to do, in words that say what to do about it.
#[derive(Debug)]
pub enum Failure {
    /// Wrong usage or configuration: the same command will fail again until it is changed.
    Usage(String),
    /// The operation failed.
    Operation(String),
}

impl Failure {
    /// Wrong usage or configuration.
    pub fn usage(words: impl fmt::Display) -> Self {
        Self::Usage(words.to_string())
    }

    /// The operation failed.
    pub fn operation(words: impl fmt::Display) -> Self {
        Self::Operation(words.to_string())
    }

    /// 1 when the operation failed, 2 for wrong usage or configuration.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Operation(_) => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(words) | Self::Operation(words)) = self;
        write!(f, "error: {words}")
    }
}
