//! Logs: human-readable or JSON, on standard error.

use tracing_subscriber::EnvFilter;

/// What is logged where `RUST_LOG` says nothing. The client's own lines for failed requests would
/// only repeat ours, without the reason.
const DEFAULT_FILTER: &str = "info,kube_client::client::builder=off";

/// Starts logging for the process; `RUST_LOG` chooses what is logged. A second call does nothing.
pub fn init(json: bool) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A test or the demo may have started logging before; theirs stays.
    let _ = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        builder.with_target(false).try_init()
    };
}
