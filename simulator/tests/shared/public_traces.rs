//! Where the public traces are, which are no part of the repository.

use std::path::PathBuf;

/// A file of them. `GPU_BATCH_TRACES` names their directory; without it they are looked for beside
/// the repository.
///
/// # Panics
/// If it is not there.
pub(crate) fn file(path: &str) -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/traces");
    let traces = std::env::var_os("GPU_BATCH_TRACES").unwrap_or_else(|| beside.into());
    let path = PathBuf::from(traces).join(path);
    assert!(
        path.is_file(),
        "{} is missing; set GPU_BATCH_TRACES to the directory of the traces",
        path.display()
    );
    path
}
