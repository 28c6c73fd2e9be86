//! What a measurement ran on. Refuses to know what was measured.

use std::{fs, process::Command};

use chrono::{DateTime, Utc};
use sandbox::Binaries;
use serde::{Deserialize, Serialize};

/// The machine and its software.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Platform {
    /// The processor's name for itself.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Physical memory.
    pub memory_gib: f64,
    /// Operating system and its version.
    pub kernel: String,
    /// The PostgreSQL that the sandbox starts.
    pub postgresql: String,
}

impl Platform {
    /// This machine.
    pub fn this() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kilobytes =
            field(&meminfo, "MemTotal").and_then(|text| text.trim_end_matches("kB").trim().parse().ok());
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: kilobytes.map_or(0.0, |kilobytes: f64| {
                (kilobytes / f64::from(1 << 20) * 10.0).round() / 10.0
            }),
            kernel: output("uname", &["-sr"]).unwrap_or_else(|| "unknown".to_owned()),
            postgresql: Binaries::find()
                .map_or_else(|error| error.to_string(), |found| found.version().text.clone()),
        }
    }
}

/// Under which circumstances something was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Circumstances {
    /// Begin.
    pub started: DateTime<Utc>,
    /// How long it took.
    pub seconds: f64,
    /// The machine.
    pub platform: Platform,
    /// Whether the compiler optimised.
    pub optimised: bool,
    /// The commit that was checked out, if there was one.
    pub commit: Option<String>,
    /// Whether files differed from that commit.
    pub uncommitted_changes: bool,
    /// The process's nice value: below zero it, and the servers it started, went before what else the machine had to do.
    pub niceness: i32,
    /// Processes that wanted to run, averaged over the minute before the begin: what else the machine had to do.
    pub load_before: f64,
    /// The same at the end, with the measurement's own.
    pub load_after: f64,
}

/// A measurement that is under way.
#[derive(Debug)]
pub struct Begun(Circumstances);

impl Begun {
    /// Now.
    pub fn now() -> Self {
        let status = git(&["status", "--porcelain"]);
        let load = load_average();
        Self(Circumstances {
            started: Utc::now(),
            seconds: 0.0,
            platform: Platform::this(),
            optimised: !cfg!(debug_assertions),
            commit: git(&["rev-parse", "--verify", "--quiet", "HEAD"]),
            uncommitted_changes: status.is_none_or(|status| !status.is_empty()),
            niceness: niceness(),
            load_before: load,
            load_after: load,
        })
    }

    /// The circumstances, now that it has ended.
    pub fn ended(mut self) -> Circumstances {
        let lasted = (Utc::now() - self.0.started).as_seconds_f64();
        self.0.seconds = (lasted * 10.0).round() / 10.0;
        self.0.load_after = load_average();
        self.0
    }
}

fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|first| first.parse().ok())
        .unwrap_or_default()
}

/// The 19th field of the process's state, the 17th behind its name.
fn niceness() -> i32 {
    let state = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = state.rsplit(')').next().unwrap_or_default();
    behind_name
        .split_whitespace()
        .nth(16)
        .and_then(|nice| nice.parse().ok())
        .unwrap_or_default()
}

/// The value behind `name` in a file of `name : value` lines.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim_start().trim_start_matches(':').trim())
}

fn git(arguments: &[&str]) -> Option<String> {
    let here = ["-C", env!("CARGO_MANIFEST_DIR")];
    output("git", &[&here, arguments].concat())
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
