//! What users are told of room that is taken: owners of victims for whom, by which claim, and what
//! is lost; owners of gangs that wait for it what they wait for.

use crate::command::EvictionCause;
use crate::facts::{UnixMs, quantity};
use crate::gangs::wait::Verdict;
use crate::ids::{GangId, PodId};
use crate::plan::waiting::Awaited;
use crate::queues::{ClaimKind, GovernedId, QueueId};
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::pod::Pod;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// For whom pods of a queue are evicted so that a gang can start, and by which right.
pub(crate) fn claim(
    state: &ClusterState,
    queue: Option<QueueId>,
    gang: GangId,
    (cause, kind): (EvictionCause, ClaimKind),
) -> String {
    let beneficiary = state.name_of(&state.gangs[gang]);
    match cause {
        EvictionCause::Reclaim => {
            let over = queue.and_then(|queue| over(state, queue, gang, kind));
            format!(
                "evicted so that the gang {beneficiary} of the queue {} gets what is its own{}",
                state.gangs[gang].spec.queue,
                over.map(|over| format!(": {over}")).unwrap_or_default()
            )
        }
        EvictionCause::Preempt => format!(
            "evicted so that the gang {beneficiary} of higher priority ({}) of its queue can start",
            state.gangs[gang].spec.priority
        ),
        EvictionCause::Consolidate => format!(
            "evicted to be placed again elsewhere, so that the gang {beneficiary} can start here"
        ),
        EvictionCause::Stale | EvictionCause::Unwind => String::new(),
    }
}

/// Why a pod is evicted, and what that loses. `claim`: see [`claim`].
pub(crate) fn why(state: &ClusterState, id: PodId, claim: &str, now_ms: UnixMs) -> String {
    let pod = &state.pods[id];
    let lost_s = now_ms.saturating_sub(saved_ms(pod, now_ms)) / 1_000;
    let gpus = state.classes[pod.class].gpus;
    let since = match checkpoint_ms(pod, now_ms) {
        Some(_) => "since its last checkpoint",
        None => "since its start",
    };
    match gpus {
        0 => format!("{claim}; {lost_s} s of work {since} are lost"),
        gpus => format!("{claim}; {lost_s} s of work on {gpus} GPUs {since} are lost"),
    }
}

/// How many pods a sentence names.
const NAMED: usize = 3;

/// What a gang waits for whose eviction plan is being carried out.
pub(super) fn waiting_for_eviction(state: &ClusterState, awaited: &Awaited) -> Verdict {
    let pods = awaited.pods.iter().filter_map(|uid| state.pod_ids.get(uid));
    let pods = pods.map(|pod| &state.pods[*pod]);
    let mut left = pods.filter(|pod| pod.stage.node().is_some());
    let first = left.by_ref().take(NAMED);
    let names: Vec<String> = first
        .map(|pod| format!("{}/{}", pod.namespace, pod.name))
        .collect();
    let more = left.count();
    let count = names.len() + more;
    let since = time_of_day(awaited.since_ms);
    let message = match count {
        0 => format!("waits since {since} for room that is being left"),
        _ => {
            let pods = if count == 1 { "pod" } else { "pods" };
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let named = names.join(", ");
            format!("waits since {since} for {count} {pods} to leave: {named}{more}")
        }
    };
    Verdict::new(Reason::WaitingForEviction, message)
}

/// That a gang could take room from others, and does not yet.
pub(super) fn delayed(until_ms: UnixMs) -> Verdict {
    let until = time_of_day(until_ms);
    let message = format!(
        "it could take room from others, and its preemptionDelay lasts until {until}: new nodes may \
         come first"
    );
    Verdict {
        more_nodes_help: true,
        ..Verdict::new(Reason::PreemptionDelay, message)
    }
}

fn time_of_day(at_ms: UnixMs) -> String {
    let seconds = at_ms / 1_000 % 86_400;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02} UTC", seconds % 60)
}

/// How far a queue, or the first one above it that does not hold the gang's queue, too, stands over
/// its bound.
fn over(state: &ClusterState, queue: QueueId, gang: GangId, kind: ClaimKind) -> Option<String> {
    let queues = &state.queues;
    let claimant = queues.find(&state.gangs[gang].spec.queue)?;
    let bound_name = match kind {
        ClaimKind::Quota => "quota",
        ClaimKind::FairShare => "fair share",
    };
    let beyond = |queue: &QueueId| {
        let mut held = queues.allocated(*queue);
        held.find_map(|(key, held): (GovernedId, _)| {
            let bound = queues.bound(*queue, key, kind)?;
            (held > bound).then(|| {
                let name = queues.governed_name(key);
                format!(
                    "the queue {} holds {} of {name}, its {bound_name} is {}",
                    queues.name(*queue),
                    quantity(name, held),
                    quantity(name, bound),
                )
            })
        })
    };
    queues.below_common(queue, claimant).iter().find_map(beyond)
}

fn checkpoint_ms(pod: &Pod, now_ms: UnixMs) -> Option<UnixMs> {
    let checkpoint_ms = pod.own.as_ref()?.hints.last_checkpoint_ms?;
    Some(checkpoint_ms.min(now_ms))
}

/// Since when the work of a pod is lost: its last checkpoint, or its start.
fn saved_ms(pod: &Pod, now_ms: UnixMs) -> UnixMs {
    let bound_ms = pod.own.as_ref().and_then(|own| own.bound_ms);
    let bound_ms = bound_ms.unwrap_or(now_ms).min(now_ms);
    bound_ms.max(checkpoint_ms(pod, now_ms).unwrap_or(0))
}
