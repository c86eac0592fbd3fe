//! What an administrator sets, typed and checked; the shell reads it from the configuration file.

use crate::facts::{Placement, TargetWorkload};
use crate::lease::LeaseSettings;

/// A week: as slow as gangs can age, so that the products of priorities and times are numbers of 64
/// bits.
pub const AGING_MAX_MS: u64 = 7 * 24 * 3_600_000;

/// Every setting of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How nodes are chosen for pods that ask for a GPU, where neither gang nor queue says.
    pub gpu_placement: Placement,
    /// The placement of all other pods.
    pub cpu_placement: Placement,
    /// The pods that [`Placement::Fragmentation`] keeps GPUs usable for. `None`: those that were
    /// seen, see [`Engine::fragmentation`](crate::engine::Engine::fragmentation).
    pub target_workload: Option<TargetWorkload>,
    /// In which order the gangs of one leaf are tried.
    pub leaf_order: LeafOrder,
    /// What a gang that finds no room means for those behind it.
    pub queueing: Queueing,
    /// Each such time that a gang has waited counts as one more priority within its leaf, at most
    /// [`AGING_MAX_MS`]. `None`: waiting raises nothing.
    pub aging_ms: Option<u64>,
    /// How long a running gang may be below its minimum before it is evicted whole, where the gang
    /// does not say. `None`: for ever.
    pub staleness_grace_ms: Option<u64>,
    /// How long a request may take before its outcome is unknown.
    pub request_deadline_ms: u64,
    /// How many requests may be under way.
    pub in_flight: InFlight,
    /// How often at most the status of one queue is written.
    pub queue_status_interval_ms: u64,
    /// What a queue has used adjusts its weights, and half as much after each such time, at least a
    /// minute. `None`: the past does not count.
    pub use_half_life_ms: Option<u64>,
    /// How long a gang pauses after a binding of one of its pods was refused for the first time,
    /// and when an eviction or a status write that failed is made again.
    pub retry_after_ms: u64,
    /// Which processes may act.
    pub leadership: Leadership,
}

/// In which order the gangs of one leaf queue are tried, after those that replace lost members and
/// those of higher priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafOrder {
    /// The oldest first.
    Age,
    /// The shortest by its expected runtime first, then the oldest; those of unknown runtime last.
    /// For simulations that compare orders: who asks for little is served first for ever.
    ShortestFirst,
}

/// What a gang that finds no room means for those behind it in its leaf queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queueing {
    /// They are tried too.
    BestEffort,
    /// They wait until it has started. For simulations that compare orders.
    Strict,
}

/// How many requests of each sort may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// Binds, evictions and observations.
    pub actions: u32,
    /// Status writes. 0: none is written, and refusals are not put into words, for worlds in which
    /// nobody reads them.
    pub statuses: u32,
    /// Kubernetes events. 0: none is published.
    pub announcements: u32,
}

/// Which processes may act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// This engine, always: `plan`, the simulator, or one replica without election.
    Assumed,
    /// Whoever holds the lease.
    Elected(LeaseSettings),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gpu_placement: Placement::Binpack,
            cpu_placement: Placement::Binpack,
            target_workload: None,
            leaf_order: LeafOrder::Age,
            queueing: Queueing::BestEffort,
            aging_ms: None,
            staleness_grace_ms: Some(60_000),
            request_deadline_ms: 4_000,
            in_flight: InFlight {
                actions: 128,
                statuses: 16,
                announcements: 8,
            },
            queue_status_interval_ms: 1_000,
            use_half_life_ms: None,
            retry_after_ms: 1_000,
            leadership: Leadership::Assumed,
        }
    }
}
