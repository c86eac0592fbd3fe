//! The log, on standard error: for people, or one JSON object a line.

use crate::config::LogFormat;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The client's own lines for failed requests only repeat ours, without the reason.
const SILENCED: &str = "kube_client::client::builder=off";

/// Starts logging for the process. What is logged says `RUST_LOG`, else `level` (directives of
/// `EnvFilter`). A second call does nothing, so that a program around the scheduler keeps its log.
pub fn init(format: LogFormat, level: &str) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},{SILENCED}")));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error means that logging has been started before.
    let _ = match format {
        LogFormat::Text => builder
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
