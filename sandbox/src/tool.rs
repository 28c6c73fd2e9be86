//! Runs PostgreSQL's tools to their end.

use std::process::{Command, Stdio};

use crate::error::{Doing, SandboxError};

/// Runs `command`; its output is only of interest when it fails. The tool is killed when this
/// future is dropped.
pub(crate) async fn run(mut command: Command) -> Result<(), SandboxError> {
    let program = command.get_program().display().to_string();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = tokio::process::Command::from(command)
        .kill_on_drop(true)
        .output()
        .await;
    let output = output.doing(|| format!("run {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    let both = [output.stdout, output.stderr].concat();
    let output_text = String::from_utf8_lossy(&both).trim().to_owned();
    Err(SandboxError::ProgramFailed {
        program,
        status: output.status,
        output: output_text,
    })
}
