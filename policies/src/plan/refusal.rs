//! What a refusal says, what must change before the gang is tried again, and whether more nodes
//! would help: only then do its pods say `Unschedulable`, on which autoscalers act.

use crate::filter;
use crate::gangs::wait::{Shortfall, Verdict, Wake};
use crate::ids::ClassId;
use crate::place::Scope;
use crate::place::{Refusal, Request, only_limits_refuse, widest_scope};
use crate::plan::attempt::Attempt;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::tell::explain;
use alloc::string::String;
use alloc::vec::Vec;

/// Whether the refused gang might start if there were more nodes, of any kind: nobody knows of
/// which kinds there may be more.
fn more_nodes_would_help(state: &ClusterState, request: &Request, refusal: &Refusal) -> bool {
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
    may_grow(state, scope)
        && classes
            .iter()
            .all(|class| takes_new_nodes(state, request, *class))
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
fn takes_new_nodes(state: &ClusterState, request: &Request, class: ClassId) -> bool {
    let class = &state.classes[class];
    if filter::names_nodes(&class.shape) {
        return false;
    }
    let Some(queue) = request.model_limits.filter(|_| !class.models.is_empty()) else {
        return true;
    };
    let open = |model| {
        let model = core::slice::from_ref(model);
        let limits = state.queues.tight_model_limits(queue, class.gpus, model);
        limits.is_empty()
    };
    class.models.iter().any(open)
}

/// Puts a refusal into words, and says what must change before the gang is tried again.
pub(crate) fn explain_refusal(
    attempt: &mut Attempt<'_>,
    request: &Request,
    refusal: &Refusal,
) -> (Verdict, Wake) {
    let state = &mut *attempt.state;
    let proved = refusal.is_proved();
    let limit = request.model_limits.filter(|_| request.is_limited(state));
    let wake = match refusal.innermost() {
        // Under limits on GPU models there may be room where nothing has been freed.
        Refusal::TooFew {
            class, scope, need, ..
        } if limit.is_none() => Wake::Over(Shortfall::Room {
            class: *class,
            scope: *scope,
            need: *need,
        }),
        _ => {
            let limit = limit.and_then(|queue| state.queues.highest_model_limit(queue));
            Wake::AnyRoom(request.classes(), limit)
        }
    };
    if only_limits_refuse(state, request, refusal) {
        let message = explain::model_limits(state, request, refusal);
        let verdict = Verdict {
            // Nodes of other models may take what the limits keep out.
            more_nodes_help: more_nodes_would_help(state, request, refusal),
            ..Verdict::new(Reason::OverLimit, message)
        };
        return (verdict, wake);
    }
    let surplus = attempt.counts.needed == 0;
    let lost = !surplus && attempt.progress[attempt.gang].lost_ms.is_some();
    let reason = match (lost, proved) {
        (true, _) => Reason::MembersLost,
        (false, true) => Reason::DoesNotFit,
        (false, false) => Reason::NotFoundWithinBound,
    };
    // Counting over all nodes for a sentence that nobody reads would cost more than the rest.
    let message = if attempt.settings.in_flight.statuses > 0 {
        explain::refusal(state, request, refusal, surplus)
    } else {
        String::new()
    };
    let counted = matches!(refusal.innermost(), Refusal::TooFew { .. });
    let verdict = Verdict {
        reason,
        message,
        counted,
        more_nodes_help: more_nodes_would_help(state, request, refusal),
    };
    (verdict, wake)
}
