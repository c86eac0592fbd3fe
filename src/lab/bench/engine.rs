//! The decision engine alone: generated facts in, every command answered at once.
//!
//! Times are processor times of the thread, so that a busy machine does not spoil them.

mod cards;
mod choosing;
mod domains;
mod events;
mod extender;
pub(super) mod facts;
mod gang;
mod journal;
mod policy;
mod queues;
mod relations;
mod search;
mod session;
mod sub_groups;
mod throughput;
mod victims;

use super::Row;

/// One benchmark: its name, and how its rows are measured.
type Benchmark = (&'static str, fn() -> Vec<Row>);

const BENCHMARKS: [Benchmark; 14] = [
    ("throughput", throughput::measure),
    ("cards", cards::measure),
    ("choosing", choosing::measure),
    ("gang", gang::measure),
    ("domains", domains::measure),
    ("sub-groups", sub_groups::measure),
    ("events", events::measure),
    ("reservations", events::with_reservations),
    ("journal", journal::measure),
    ("queues", queues::measure),
    ("search", search::measure),
    ("victims", victims::measure),
    ("extender", extender::measure),
    ("relations", relations::measure),
];

/// The names of the benchmarks.
#[must_use]
pub(crate) fn names() -> Vec<&'static str> {
    BENCHMARKS.map(|(name, _)| name).to_vec()
}

/// Measures the benchmarks whose name contains the filter.
#[must_use]
pub(crate) fn run(filter: &str) -> Vec<Row> {
    let picked = BENCHMARKS.iter().filter(|(name, _)| name.contains(filter));
    picked
        .flat_map(|(name, measure)| measure().into_iter().map(|row| row.of(name)))
        .collect()
}
