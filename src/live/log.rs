//! The log, on standard error: for people, or one JSON object a line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::Subscriber;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

/// The client's own lines for failed requests repeat ours without the reason.
const SILENCED: &str = "kube_client::client::builder=off";

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The filter of the log; set once this process has started logging here.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();
/// Whether log lines are JSON objects.
static JSON: AtomicBool = AtomicBool::new(false);

/// Starts logging for the process. The environment variable `RUST_LOG` says which lines are logged,
/// else `level` does (directives of `EnvFilter`). A second call does nothing, so that a program
/// around the scheduler keeps its log.
pub(crate) fn init(format: LogFormat, level: &str) {
    let (filter, handle) = reload::Layer::new(filter(level));
    let log = tracing_subscriber::registry().with(filter).with(lines());
    // An error means that logging was started before.
    if log.try_init().is_ok() {
        JSON.store(format == LogFormat::Json, Ordering::Relaxed);
        FILTER.get_or_init(|| handle);
    }
}

/// Changes how lines look and which are logged, if [`init`] has started the log of this process;
/// `RUST_LOG` still goes first.
pub(crate) fn change(format: LogFormat, level: &str) {
    if let Some(handle) = FILTER.get() {
        JSON.store(format == LogFormat::Json, Ordering::Relaxed);
        // The reload fails only once the log is gone.
        drop(handle.reload(filter(level)));
    }
}

/// Both formats, of which one writes: a format cannot take over the spans that the other one began.
fn lines<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    let text = fmt::layer()
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .with_filter(dynamic_filter_fn(|_, _| !JSON.load(Ordering::Relaxed)));
    let json = fmt::layer()
        .json()
        .flatten_event(true)
        .with_writer(std::io::stderr)
        .with_filter(dynamic_filter_fn(|_, _| JSON.load(Ordering::Relaxed)));
    text.and_then(json)
}

fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},{SILENCED}")))
}
