//! Worlds in which kube-scheduler chooses the nodes of some pods, with the schedulers as its
//! extender. Which pods is drawn from a sequence of its own, so that other worlds are not changed.

use super::{Arrival, QUEUES};
use crate::random::Random;
use gpu_batch_policies::facts::UnixMs;

/// Leaves most pods without a PodGroup to kube-scheduler, and a few members of gangs, which are
/// never placed.
pub(crate) fn extend(arrivals: &mut [(UnixMs, Arrival)], random: &mut Random) {
    for (_, arrival) in arrivals {
        let Arrival::Gang(description, recipes) = arrival else {
            continue;
        };
        let percent = if description.is_none() { 80 } else { 10 };
        if !random.percent(percent) {
            continue;
        }
        for recipe in recipes {
            recipe.pod.extended = true;
            let queue = *random.pick(&QUEUES);
            recipe.pod.queue.get_or_insert_with(|| queue.into());
        }
    }
}
