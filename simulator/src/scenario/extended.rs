//! Worlds in which kube-scheduler asks to bind some pods, with the schedulers as its extender.
//! Which pods is drawn from a sequence of its own, so that other worlds are not changed.

use super::{Arrival, QUEUES};
use crate::random::Random;
use gpu_batch_policies::facts::{GANG_GATE, UnixMs};

/// Leaves most pods without a PodGroup, and some gangs, to kube-scheduler. Most of these gangs, and
/// a few of the other pods, have the gate by which the schedulers plan them; members of gangs
/// without it are never placed.
pub(crate) fn extend(arrivals: &mut [(UnixMs, Arrival)], random: &mut Random) {
    for (_, arrival) in arrivals {
        let Arrival::Gang(description, recipes) = arrival else {
            continue;
        };
        let (extended, gated) = match description {
            Some(_) => (60, 85),
            None => (80, 20),
        };
        if !random.percent(extended) {
            continue;
        }
        let is_gated = random.percent(gated);
        for recipe in recipes {
            recipe.pod.extended = true;
            let queue = *random.pick(&QUEUES);
            recipe.pod.queue.get_or_insert_with(|| queue.into());
            if is_gated {
                recipe.pod.gates.push(GANG_GATE.into());
            }
        }
    }
}
