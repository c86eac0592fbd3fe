//! Whether more nodes would help a refused gang: only then do its pods say `Unschedulable`, which
//! makes autoscalers add nodes.

use crate::filter;
use crate::ids::ClassId;
use crate::place::{Refusal, Request, Scope, widest_scope};
use crate::queues::QueueId;
use crate::state::ClusterState;
use alloc::vec::Vec;

/// Whether the refused gang might start if there were more nodes, of any kind: it is not known
/// which kinds can be added.
pub(in crate::tell) fn more_nodes_would_help(
    state: &ClusterState,
    request: &Request,
    refusal: &Refusal,
) -> bool {
    let (scope, classes): (Scope, Vec<ClassId>) = match refusal.innermost() {
        Refusal::TooFew { class, scope, .. } => (*scope, Vec::from([*class])),
        _ => {
            let (near, anchor) = match refusal {
                Refusal::OfSubGroup { place, .. } => *place,
                _ => (request.root().near, request.root().anchor),
            };
            (widest_scope(state, near, anchor), request.classes())
        }
    };
    let limits = request.model_limits;
    let mut classes = classes.iter();
    classes.all(|class| may_be_on_new_nodes(state, *class, scope, limits))
}

/// Whether members of a class that must be in a scope might run on nodes that are not there yet.
/// `limits`: the queue whose limits on GPU models hold.
pub(in crate::tell) fn may_be_on_new_nodes(
    state: &ClusterState,
    class: ClassId,
    scope: Scope,
    limits: Option<QueueId>,
) -> bool {
    may_grow(state, scope) && takes_new_nodes(state, limits, class)
}

/// Whether a new node may be in the scope that the members must be in.
fn may_grow(state: &ClusterState, scope: Scope) -> bool {
    match scope {
        Scope::Cluster | Scope::Level(..) | Scope::OneNode => true,
        Scope::Node(_) => false,
        Scope::DomainOf(topology, level, anchor) => {
            let topology = &state.topologies[topology];
            let domain = topology.path(anchor).get(level);
            domain.is_some_and(|domain| !topology.is_of_one_node(*domain))
        }
    }
}

/// Whether members of a class may run on nodes that are not there yet: their selector does not
/// name nodes, and the queue's limits leave them a GPU model.
fn takes_new_nodes(state: &ClusterState, limits: Option<QueueId>, class: ClassId) -> bool {
    let counted = state.counted(class, None);
    let class = &state.classes[class];
    if filter::names_nodes(&class.shape) {
        return false;
    }
    let Some(queue) = limits.filter(|_| !class.models.is_empty()) else {
        return true;
    };
    let open = |model| {
        let model = core::slice::from_ref(model);
        let limits = state.queues.tight_model_limits(queue, counted, model);
        limits.is_empty()
    };
    class.models.iter().any(open)
}
