//! The version of this program, and how it was built.

use crate::execute::time;

/// The results of the build script; empty: not known.
const COMMIT: &str = env!("GPU_BATCH_BUILD_COMMIT");
const EPOCH: &str = env!("GPU_BATCH_BUILD_EPOCH");
const PROFILE: &str = env!("GPU_BATCH_BUILD_PROFILE");
const TARGET: &str = env!("GPU_BATCH_BUILD_TARGET");

/// The version with what was built, where and how, a line each.
pub(super) fn long() -> String {
    let built = EPOCH.parse::<u64>().ok();
    let built = built.map(|seconds| time::seconds(seconds.saturating_mul(1_000)));
    let facts = [
        ("commit", COMMIT),
        ("built", built.as_deref().unwrap_or_default()),
        ("profile", PROFILE),
        ("target", TARGET),
    ];
    let mut text = env!("CARGO_PKG_VERSION").to_owned();
    for (name, value) in facts {
        let value = if value.is_empty() { "unknown" } else { value };
        text.push_str(&format!("\n{:<9}{value}", format!("{name}:")));
    }
    text
}
