//! Which lanes a class reads, and the tightest node in them.

use crate::ids::{ClassId, NodeId};
use crate::resources::{ResourceNames, amount_of};
use crate::state::ClusterState;
use crate::state::class::Class;
use crate::state::lanes::Lane;
use smallvec::{SmallVec, smallvec};

/// The lanes of a class, in the order in which they are read.
pub(super) fn lanes(class: &Class) -> SmallVec<[Lane; 2]> {
    match class.primary {
        _ if class.cards.is_some() => smallvec![Lane::Cards],
        // Pods without GPUs take nodes with GPUs only if no other node fits.
        primary if primary == ResourceNames::cpu() => smallvec![Lane::Plain, Lane::Beside],
        primary => smallvec![Lane::Extended(primary)],
    }
}

/// The first node in the order of `fill::node_key` of which `is_meant` holds, where the first lane
/// of the class has that order and such a node; else `None`.
pub(super) fn tightest(
    state: &mut ClusterState,
    id: ClassId,
    is_meant: impl Fn(&ClusterState, NodeId) -> bool,
) -> Option<NodeId> {
    let class = &state.classes[id];
    let lane = *lanes(class).first()?;
    let has_order = match lane {
        Lane::Plain => true,
        Lane::Extended(_) => class.accelerated,
        Lane::Cards | Lane::Beside => false,
    };
    if !has_order {
        return None;
    }
    let least = [amount_of(&class.requests, class.primary), 0, 0];
    state.lanes.refresh(lane, &state.nodes);
    let mut buckets = state.lanes.get(lane)?.range(least..);
    buckets.find_map(|(_, bucket)| {
        let meant = bucket.iter().filter(|(_, node)| is_meant(state, *node));
        let first = meant.min_by_key(|((_, rank), _)| *rank);
        first.map(|(_, node)| *node)
    })
}
