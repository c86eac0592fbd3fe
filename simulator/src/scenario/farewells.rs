//! Worlds in which gangs that evict others must have patience: gangs are protected for a while
//! after their start, or wait before they evict, and pods take long to leave; a few are stuck. All
//! of it is drawn from a sequence of its own, so that other worlds are not changed by this module.

use super::Arrival;
use crate::cluster::{Cluster, Farewell};
use crate::random::Random;
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{QueueFacts, UnixMs};

/// How long after its grace period a pod that is stuck is still there, in milliseconds, at least
/// and at most. Schedulers do not count on its room any more after a minute.
const STUCK_MS: (u64, u64) = (61_000, 120_000);

/// Gives queues minimum runtimes, so that their gangs are protected for a while.
pub(crate) fn protect(cluster: &mut Cluster, random: &mut Random, now_ms: UnixMs) {
    let queues = cluster.api.objects(Kind::Queue);
    let queues = queues.filter_map(|stored| match &stored.object {
        Object::Queue(facts) => Some(facts.clone()),
        _ => None,
    });
    for facts in queues.collect::<Vec<_>>() {
        let mut draw = || random.percent(40).then(|| random.between(0, 12_000));
        let facts = QueueFacts {
            preempt_min_runtime_ms: draw(),
            reclaim_min_runtime_ms: draw(),
            ..facts
        };
        cluster.put(Object::Queue(facts), now_ms);
    }
}

/// Lets gangs wait before they evict others, and pods stay for a while when they are to leave.
pub(crate) fn linger(arrivals: &mut [(UnixMs, Arrival)], random: &mut Random) {
    for (_, arrival) in arrivals {
        let Arrival::Gang(description, recipes) = arrival else {
            continue;
        };
        if let Some(Object::PodGroup(group)) = description.as_deref_mut()
            && random.percent(20)
        {
            group.preemption_delay_ms = Some(random.between(0, 8_000));
        }
        for recipe in recipes {
            recipe.farewell = random.percent(60).then(|| farewell(random));
        }
    }
}

fn farewell(random: &mut Random) -> Farewell {
    let grace_s = *random.pick(&[0, 1, 5, 30, 30, 60]);
    let stays_ms = match random.below(10) {
        0 => grace_s * 1_000 + random.between(STUCK_MS.0, STUCK_MS.1),
        _ => random.between(0, grace_s * 1_000),
    };
    Farewell { grace_s, stays_ms }
}
