//! What a refusal by nodes means: its reason, and what must change before the gang is tried again.

use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Shortfall, Wake};
use crate::place::{Refusal, Request, only_limits_refuse};
use crate::reason::Reason;
use crate::state::ClusterState;

/// What must change before members that nodes have refused are tried again.
pub(crate) fn wake(state: &ClusterState, request: &Request, refusal: &Refusal) -> Wake {
    let limit = request.model_limits.filter(|_| request.is_limited(state));
    match refusal.innermost() {
        // Under limits on GPU models, and where other pods decide, there may be room where nothing
        // has been freed.
        Refusal::TooFew {
            class, scope, need, ..
        } if limit.is_none() && !request.is_related(state) => Wake::Eased(Shortfall::Room {
            class: *class,
            scope: *scope,
            need: *need,
        }),
        _ => {
            let limit = limit.and_then(|queue| state.queues.highest_model_limit(queue));
            Wake::AnyRoom(request.classes(), limit)
        }
    }
}

/// Why a gang waits if nodes have refused its members.
pub(crate) fn reason(
    state: &mut ClusterState,
    progress: &Progress,
    counts: &Counts,
    request: &Request,
    refusal: &Refusal,
) -> Reason {
    if only_limits_refuse(state, request, refusal) {
        Reason::OverLimit
    } else if counts.needed > 0 && progress.lost_ms.is_some() {
        Reason::MembersLost
    } else if refusal.is_proved() && request.is_counted_exactly(state) {
        Reason::DoesNotFit
    } else {
        Reason::NotFoundWithinBound
    }
}
