//! What a refusal by nodes means: its reason, and what must change before the gang is tried again.

use crate::gangs::counts::Counts;
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Refused, Shortfall, Wake};
use crate::ids::{ById, GangId};
use crate::place::{Refusal, Request, only_limits_refuse};
use crate::plan::attempt::Attempt;
use crate::reason::Reason;
use crate::state::ClusterState;
use alloc::boxed::Box;

/// Why an attempt has found no nodes, and what must change before the gang is tried again.
pub(crate) fn refused(
    state: &mut ClusterState,
    progress: &ById<GangId, Progress>,
    attempt: &Attempt<'_>,
    request: &mut Request,
    refusal: Refusal,
) -> (Refused, Wake) {
    let wake = wake(state, request, &refusal);
    let progress = &progress[attempt.gang];
    let refused = Refused {
        reason: reason(state, progress, &attempt.counts, request, &refusal),
        by_nodes: Some(Box::new(refusal)),
    };
    (refused, wake)
}

/// What must change before members that nodes have refused are tried again.
pub(crate) fn wake(state: &ClusterState, request: &Request, refusal: &Refusal) -> Wake {
    let limit = request.model_limits.filter(|_| request.is_limited(state));
    match refusal.innermost() {
        // Under limits on GPU models there may be room where nothing has been freed.
        Refusal::TooFew {
            class, scope, need, ..
        } if limit.is_none() => Wake::Over(Shortfall::Room {
            class: *class,
            scope: *scope,
            need: *need,
        }),
        _ => {
            let classes = request.groups.iter().map(|group| group.class).collect();
            let limit = limit.and_then(|queue| state.queues.highest_model_limit(queue));
            Wake::AnyRoom(classes, limit)
        }
    }
}

/// Why a gang waits that nodes have refused.
pub(crate) fn reason(
    state: &mut ClusterState,
    progress: &Progress,
    counts: &Counts,
    request: &mut Request,
    refusal: &Refusal,
) -> Reason {
    if only_limits_refuse(state, request, refusal) {
        Reason::OverLimit
    } else if counts.needed > 0 && progress.lost_ms.is_some() {
        Reason::MembersLost
    } else if refusal.is_proved() {
        Reason::DoesNotFit
    } else {
        Reason::NotFoundWithinBound
    }
}
