//! The simulator: how fast virtual time goes by.
//!
//! Times are those that the threads of this process spend on processors. A simulation computes and
//! never waits, so on a core of its own this is the time that the simulation takes.

mod jobs;
mod nearness;
mod openb;
mod placements;

use super::Row;
use nix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::time::Duration;

/// One benchmark: its name, and how its rows are measured.
type Benchmark = (&'static str, fn() -> anyhow::Result<Vec<Row>>);

const BENCHMARKS: [Benchmark; 7] = [
    ("philly", jobs::philly),
    ("kth", jobs::kth),
    ("million", jobs::million),
    ("openb", openb::measure),
    ("placements", placements::measure),
    ("topology", nearness::racks),
    ("lingjun", nearness::lingjun),
];

/// The names of the benchmarks.
#[must_use]
pub(crate) fn names() -> Vec<&'static str> {
    BENCHMARKS.map(|(name, _)| name).to_vec()
}

/// Measures the benchmarks whose name contains the filter. Published traces are read from the
/// directory that the environment variable `GPU_BATCH_TRACES` names.
///
/// # Errors
/// If a trace cannot be read.
pub(crate) fn run(filter: &str) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, measure) in BENCHMARKS {
        if name.contains(filter) {
            rows.extend(measure()?.into_iter().map(|row| row.of(name)));
        }
    }
    Ok(rows)
}

/// The path of a file of the published traces.
///
/// # Errors
/// If the file does not exist.
fn trace(path: &str) -> anyhow::Result<PathBuf> {
    let traces = std::env::var_os("GPU_BATCH_TRACES").unwrap_or_else(|| "../shared/traces".into());
    let path = PathBuf::from(traces).join(path);
    anyhow::ensure!(
        path.exists(),
        "{} is missing; set GPU_BATCH_TRACES to the directory of the traces",
        path.display()
    );
    Ok(path)
}

/// The time that all threads of this process have spent on processors.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
