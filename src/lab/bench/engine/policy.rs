//! Everything of the policy that a user could have on, so that each figure includes what it costs.
//!
//! A tree of queues: four departments of five teams, each with quota, limit and weight for GPUs,
//! for GPUs of a model, and for CPUs; past use adjusts the weights; the Topology `default`. No gang
//! is refused for a quota or a limit here: the engine looks at them, and they are large enough.

use super::facts::{GPU, GPU_MODEL, queue, topology};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{CARD, QueueFacts, QueueResource};
use gpu_batch_policies::settings::Settings;
use gpu_batch_simulator::timeline::undisturbed;

const DEPARTMENTS: usize = 4;
const TEAMS: usize = 20;

/// A quarter of a cluster of 1,000 nodes, divided among its teams.
const QUOTA_GPUS: u64 = 100;
/// More GPUs than any cluster has.
const LIMIT_GPUS: u64 = 1_000_000;
const CPU_MILLIS_PER_GPU: u64 = 16_000;

/// The default settings, but nobody is evicted so that others can start or promised a start, and
/// past use counts: half as much after a week.
pub(super) fn settings() -> Settings {
    Settings {
        use_half_life_ms: Some(7 * 24 * 3_600_000),
        ..undisturbed()
    }
}

/// The queues and the Topology.
pub(super) fn objects() -> impl Iterator<Item = Object> {
    let departments = (0..DEPARTMENTS).map(|number| entries(number, department(number), None));
    let teams = (0..TEAMS)
        .map(|number| entries(number, team(number), Some(department(number % DEPARTMENTS))));
    departments
        .chain(teams)
        .map(Object::Queue)
        .chain([Object::Topology(topology())])
}

/// The queue of the pod or gang with this number.
pub(super) fn team(number: usize) -> Box<str> {
    format!("team-{:02}", number % TEAMS).into()
}

fn department(number: usize) -> Box<str> {
    format!("department-{number}").into()
}

fn entries(number: usize, name: Box<str>, parent: Option<Box<str>>) -> QueueFacts {
    let share = if parent.is_none() {
        TEAMS / DEPARTMENTS
    } else {
        1
    } as u64;
    let weight = if number.is_multiple_of(2) { 1 } else { 2 };
    let entry = |name: &str, product: Option<&str>, scale: u64| QueueResource {
        name: name.into(),
        product: product.map(Into::into),
        quota: share * QUOTA_GPUS * scale,
        limit: Some(LIMIT_GPUS * scale),
        weight,
    };
    let mut facts = queue(1_000 + number + if parent.is_none() { TEAMS } else { 0 });
    facts.name = name;
    facts.parent = parent;
    facts.resources = vec![
        entry(GPU, None, CARD),
        entry(GPU, Some(GPU_MODEL), CARD),
        entry("cpu", None, CPU_MILLIS_PER_GPU),
    ];
    facts
}
