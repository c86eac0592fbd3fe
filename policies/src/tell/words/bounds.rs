//! The bounds of queues, in words.

use crate::facts::queue_quantity;
use crate::queues::{Bound, Excess, QueueTree, TightLimit};
use alloc::{format, string::String};

/// The sentence for a gang that would exceed a bound.
pub(crate) fn bound_in_words(queues: &QueueTree, excess: &Excess) -> String {
    let bound = match excess.bound {
        Bound::Limit => "limit",
        Bound::Quota => "quota for non-preemptible gangs",
    };
    let key = queues.governed_name(excess.key);
    format!(
        "the {bound} of the queue {} is {} of {key}; {} are held and {} more asked for",
        queues.name(excess.queue),
        queue_quantity(key, excess.allowed),
        queue_quantity(key, excess.allocated),
        queue_quantity(key, excess.asked),
    )
}

/// The sentence for a limit on a GPU model that leaves less than is asked for.
pub(super) fn limit_in_words(tight: &TightLimit<'_>) -> String {
    let TightLimit {
        queue,
        key,
        limit,
        allocated,
    } = tight;
    let (limit, allocated) = (queue_quantity(key, *limit), queue_quantity(key, *allocated));
    format!("the queue {queue} has a limit of {limit} {key} and holds {allocated}")
}
