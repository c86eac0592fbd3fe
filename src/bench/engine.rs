//! The decision engine alone: generated facts in, every command answered at once.
//!
//! Times are those that the thread spends on a processor, so that a busy machine does not spoil
//! them.

mod domains;
mod events;
pub(super) mod facts;
mod gang;
mod journal;
mod policy;
mod queues;
mod search;
mod session;
mod sub_groups;
mod throughput;

use super::Row;

/// One scenario: its name, and how its rows are measured.
type Scenario = (&'static str, fn() -> Vec<Row>);

const SCENARIOS: [Scenario; 8] = [
    ("throughput", throughput::measure),
    ("gang", gang::measure),
    ("domains", domains::measure),
    ("sub-groups", sub_groups::measure),
    ("events", events::measure),
    ("journal", journal::measure),
    ("queues", queues::measure),
    ("search", search::measure),
];

/// Measures the scenarios whose name contains the filter.
#[must_use]
pub fn run(filter: &str) -> Vec<Row> {
    SCENARIOS
        .iter()
        .filter(|(name, _)| name.contains(filter))
        .flat_map(|(_, measure)| measure())
        .collect()
}
