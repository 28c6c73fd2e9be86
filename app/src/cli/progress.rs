//! What a person sees while something takes long: a spinner on a terminal, plain lines elsewhere. On standard error, so
//! that it never mixes with an answer.

use std::{
    fmt::Display,
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};

/// Progress of one piece of work. Gone when dropped.
#[derive(Debug)]
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Starts to show that something is being done.
    pub(crate) fn start(what: impl Display) -> Self {
        if !io::stderr().is_terminal() {
            eprintln!("{what} …");
            return Self(None);
        }
        let style =
            ProgressStyle::with_template("{spinner} {msg} ({elapsed})").expect("the template is well-formed");
        let bar = ProgressBar::new_spinner()
            .with_style(style)
            .with_message(what.to_string());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
