//! The log, on standard error: for people, or one JSON object a line.

use crate::config::LogFormat;
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;

/// The client's own lines for failed requests only repeat ours, without the reason.
const SILENCED: &str = "kube_client::client::builder=off";

/// Puts another filter in the place of the one that the log began with.
type Replace = Box<dyn Fn(EnvFilter) + Send + Sync>;

static REPLACE: OnceLock<Replace> = OnceLock::new();

/// Starts logging for the process. What is logged says `RUST_LOG`, else `level` (directives of
/// `EnvFilter`). A second call does nothing, so that a program around the scheduler keeps its log.
pub fn init(format: LogFormat, level: &str) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(level))
        .with_writer(std::io::stderr);
    // An error means that logging has been started before.
    let (replace, started): (Replace, _) = match format {
        LogFormat::Text => {
            let builder = builder
                .with_target(false)
                .with_ansi(std::io::stderr().is_terminal())
                .with_filter_reloading();
            let handle = builder.reload_handle();
            let replace = move |filter| drop(handle.reload(filter));
            (Box::new(replace), builder.try_init())
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_filter_reloading();
            let handle = builder.reload_handle();
            let replace = move |filter| drop(handle.reload(filter));
            (Box::new(replace), builder.try_init())
        }
    };
    if started.is_ok() {
        REPLACE.get_or_init(|| replace);
    }
}

/// Changes what is logged, if this process has started its log here; `RUST_LOG` still goes first.
pub fn set_level(level: &str) {
    if let Some(replace) = REPLACE.get() {
        replace(filter(level));
    }
}

fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},{SILENCED}")))
}
