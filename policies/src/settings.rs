//! What an administrator sets, typed and checked; the shell reads it from the configuration file.

mod health;

pub use health::{Health, HealthRule, Sign};

use crate::facts::{Placement, TargetWorkload};
use crate::lease::LeaseSettings;

/// The largest [`Settings::aging_ms`], a week: the product of a priority and such a time has 64
/// bits.
pub const AGING_MAX_MS: u64 = 7 * 24 * 3_600_000;

/// Every setting of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How nodes are chosen for pods that ask for a GPU, where neither gang nor queue says how.
    pub gpu_placement: Placement,
    /// How nodes are chosen for all other pods, where neither gang nor queue says how.
    pub cpu_placement: Placement,
    /// The pods that [`Placement::Fragmentation`] keeps GPUs usable for. `None`: the pods that were
    /// seen, see [`Engine::fragmentation`](crate::engine::Engine::fragmentation).
    pub target_workload: Option<TargetWorkload>,
    /// In which order the gangs of one leaf are tried.
    pub leaf_order: LeafOrder,
    /// What a gang that finds no room means for the gangs behind it.
    pub queueing: Queueing,
    /// A gang's priority within its leaf rises by one each time that it has waited this long; at
    /// most [`AGING_MAX_MS`]. `None`: waiting raises nothing.
    pub aging_ms: Option<u64>,
    /// How long a running gang may be below its minimum before it is evicted whole, where the gang
    /// does not say. `None`: for ever.
    pub staleness_grace_ms: Option<u64>,
    /// How long a request may take before its outcome is unknown.
    pub request_deadline_ms: u64,
    /// How many requests of each sort may be under way.
    pub in_flight: InFlight,
    /// The least time between two writes of the status of one queue.
    pub queue_status_interval_ms: u64,
    /// What a queue has used adjusts its weights. After this time, at least a minute, past use
    /// counts half as much. `None`: the past does not count.
    pub use_half_life_ms: Option<u64>,
    /// How long a gang pauses after a binding of one of its pods was refused for the first time,
    /// and how long an eviction or a status write that failed waits for its next try.
    pub retry_after_ms: u64,
    /// How running pods are evicted so that others can start.
    pub evictions: Evictions,
    /// How long a gang is complete and refused before it may evict or move others, where the gang
    /// does not say: autoscalers go first.
    pub preemption_delay_ms: u64,
    /// How many GPUs may be moved for each GPU of the gang that gets the room.
    pub moved_gpus_max: u64,
    /// How many refused gangs have a reservation: they are promised a start, and gangs behind them
    /// start only where the promises are kept. 0: none; 1: EASY backfilling; [`u32::MAX`]:
    /// conservative backfilling. While no end is expected nothing is promised.
    pub reservations: u32,
    /// What nodes say of failed GPUs, and what follows from it.
    pub health: Health,
    /// The device plugin refuses a container several shares of a GPU that is shared by
    /// time-slicing, as it always does with MPS: its setting `failRequestsGreaterThanOne`.
    pub time_slices_are_single: bool,
    /// Which processes may act.
    pub leadership: Leadership,
}

/// How running pods are evicted so that others can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evictions {
    /// How many such evictions may be under way, as requests; 0: no pod is evicted to make room.
    pub in_flight: u32,
    /// How many such evictions are sent in a second, at least 1.
    pub per_second: u32,
}

/// In which order the gangs of one leaf queue are tried, after unfinished gangs, those that replace
/// lost members, and those of higher priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafOrder {
    /// The oldest first.
    Age,
    /// The shortest by its expected runtime first, then the oldest; gangs of unknown runtime last.
    /// For simulations that compare orders: short gangs may keep a long one waiting for ever.
    ShortestFirst,
}

/// What a gang that finds no room means for the gangs behind it in its leaf queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queueing {
    /// The gangs behind are tried too.
    BestEffort,
    /// The gangs behind wait until the first has started. For simulations that compare orders.
    Strict,
}

/// How many requests of each sort may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// How many binds, evictions and observations together.
    pub actions: u32,
    /// How many status writes. 0: none is written, and refusals are not put into words, for
    /// simulated worlds in which nobody reads them.
    pub statuses: u32,
    /// How many Kubernetes events. 0: none is published.
    pub announcements: u32,
}

/// Which processes may act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// This engine, always: `plan`, the simulator, or one replica without election.
    Assumed,
    /// The process that holds the lease.
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
            evictions: Evictions {
                in_flight: 50,
                per_second: 20,
            },
            preemption_delay_ms: 0,
            moved_gpus_max: 2,
            reservations: 8,
            health: Health::default(),
            time_slices_are_single: false,
            leadership: Leadership::Assumed,
        }
    }
}
