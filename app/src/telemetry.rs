//! What the process says about itself: log lines and metrics.
//!
//! Log lines are JSON objects unless somebody watches on a terminal. Refuses to know what is logged and measured; modules do
//! that where it happens.

use std::{
    io::{self, IsTerminal},
    panic::PanicHookInfo,
    sync::OnceLock,
};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

use crate::config::{LogConfig, LogFormat};

/// Bounds of every histogram of durations, in seconds: from a look-up in memory to the longest request.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// Starts logging, on standard error. `RUST_LOG`, if set, comes before the configured filter. A second call changes nothing,
/// so that tests and `tenantry dev` can start several instances in one process.
pub fn init(config: &LogConfig) {
    let filter = filter(std::env::var("RUST_LOG").ok().as_deref(), &config.filter);
    let terminal = io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = match config.format {
        LogFormat::Text => lines.with_ansi(terminal).boxed(),
        LogFormat::Auto if terminal => lines.with_ansi(true).boxed(),
        LogFormat::Json | LogFormat::Auto => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed(),
    };
    if tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .try_init()
        .is_ok()
    {
        std::panic::set_hook(Box::new(log_panic));
    }
}

/// Crates that log what is logged where it is handled: the AMQP client each attempt to connect, again and again while a broker is
/// away; the session layer each cookie that is none of its own, which anybody can send.
const TALKATIVE: [&str; 2] = ["lapin", "tower_sessions"];

/// The filter of the environment, or else the configured one, without [`TALKATIVE`] crates. A filter that names one still shows
/// it.
fn filter(environment: Option<&str>, configured: &str) -> EnvFilter {
    let quiet = |text: &str| {
        let talkative = TALKATIVE.iter().filter(|name| !text.contains(**name));
        let quieter: String = talkative.map(|name| format!("{name}=off,")).collect();
        EnvFilter::try_new(quieter + text).ok()
    };
    environment
        .filter(|text| !text.is_empty())
        .and_then(quiet)
        .or_else(|| quiet(configured))
        .unwrap_or_else(|| EnvFilter::new("info"))
}

/// A panic is a log line like any other, on one line.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let message = panic.payload_as_str().unwrap_or("a value that is no text");
    tracing::error!(panic.place = place, panic.message = message, "A thread panicked.");
}

/// The process's metrics. They exist once per process, however many instances it runs.
pub fn metrics() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(install).clone()
}

fn install() -> PrometheusHandle {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
        .expect("the list of bounds is not empty");
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("Another recorder of metrics is installed; `/metrics` stays empty.");
    }
    metrics::describe_counter!(
        "tenantry_http_requests_total",
        "Requests by method, route and status."
    );
    metrics::describe_histogram!(
        "tenantry_http_request_duration_seconds",
        "Time from a request's headers to its answer's."
    );
    metrics::describe_gauge!(
        "tenantry_http_requests_in_flight",
        "Requests that are being answered."
    );
    handle
}
