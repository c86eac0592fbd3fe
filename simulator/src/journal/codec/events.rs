//! Codecs of the engine's events and settings.

use super::{Codec, Decoder, Encoder, Unreadable, fields, variants};
use crate::journal::Record;
use gpu_batch_policies::event::{Event, Kind, Listing, Object, ObjectKey, Outcome, PodSeen};
use gpu_batch_policies::lease::{LeaseSeen, LeaseSettings};
use gpu_batch_policies::settings::{
    Evictions, Health, HealthRule, InFlight, Leadership, LeafOrder, Queueing, Settings, Sign,
};

variants! {
    Record {
        0 Begun { version: version, settings: settings },
        1 Events { now_ms: now_ms, events: events },
        2 Commands { 0: commands },
        3 Panicked { message: message },
        4 ShutDown,
    }
    Event {
        0 Applied { 0: object },
        1 Deleted { 0: key },
        2 Listed { 0: listing },
        3 Outcome { 0: command, 1: outcome },
        4 Continue,
        5 Configured { 0: settings },
        6 BindAsked { pod: pod, node: node },
    }
    Kind {
        0 Node,
        1 Pod,
        2 Queue,
        3 PodGroup,
        4 NativePodGroup,
        5 Topology,
        6 PriorityClass,
        7 Namespace,
        8 Job,
        9 DisruptionBudget,
        10 Storage { 0: kind },
        11 Numa,
    }
    Object {
        0 Node { 0: node },
        1 Pod { 0: pod },
        2 Queue { 0: queue },
        3 PodGroup { 0: pod_group },
        4 Topology { 0: topology },
        5 PriorityClass { 0: priority_class },
        6 Namespace { 0: namespace },
        7 Job { 0: job },
        8 DisruptionBudget { 0: disruption_budget },
        9 Storage { 0: storage },
        10 Numa { 0: numa },
    }
    ObjectKey {
        0 Node { 0: name, 1: uid },
        1 Pod { 0: uid },
        2 Queue { 0: name },
        3 PodGroup { 0: source, 1: namespace, 2: name },
        4 Topology { 0: name },
        5 PriorityClass { 0: name },
        6 Namespace { 0: name },
        7 Job { 0: uid },
        8 DisruptionBudget { 0: namespace, 1: name },
        9 Storage { 0: kind, 1: namespace, 2: name },
        10 Numa { 0: name },
    }
    Outcome {
        0 Done,
        1 Conflict { message: message },
        2 NotFound,
        3 Refused { message: message },
        4 Throttled { retry_after_ms: retry_after_ms },
        5 Unknown { message: message },
        6 Observed { 0: seen },
        7 Lease { 0: seen },
    }
    PodSeen { 0 Gone, 1 Unbound, 2 Bound { 0: node } }
    Sign { 0 Condition { kind: kind, status: status }, 1 Taint { key: key } }
    LeafOrder { 0 Age, 1 ShortestFirst }
    Queueing { 0 BestEffort, 1 Strict }
    Leadership { 0 Assumed, 1 Elected { 0: lease } }
}

fields! {
    Health { rules, recovery_ms }
    HealthRule { sign, evict_after_ms }
    Listing { kind, objects }
    LeaseSeen { resource_version, holder, transitions, duration_ms }
    Settings {
        gpu_placement, cpu_placement, target_workload, leaf_order, queueing, aging_ms,
        staleness_grace_ms, request_deadline_ms, in_flight, queue_status_interval_ms,
        use_half_life_ms, retry_after_ms, evictions, preemption_delay_ms, moved_gpus_max,
        reservations, health, time_slices_are_single, leadership,
    }
    Evictions { in_flight, per_second }
    InFlight { actions, statuses, announcements }
    LeaseSettings { identity, duration_ms, renew_deadline_ms, retry_ms }
}
