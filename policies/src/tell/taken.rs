//! Sentences about room that gangs take from others, and about evictions.
//!
//! The owner of a pod that is evicted learns for which gang, by which right, and how much work is
//! lost. The owner of a gang that takes room learns which pods are still to leave, why its eviction
//! plan has come to nothing, or how long its `preemptionDelay` lasts. The owner of a gang that is
//! stale, unwound or on failed cards learns why its members are evicted.

use crate::bind::takings::Failure;
use crate::command::{Announcement, EvictionCause};
use crate::facts::{UnixMs, queue_quantity};
use crate::gangs::demand;
use crate::gangs::wait::Verdict;
use crate::gpu::GPU;
use crate::ids::{GangId, NodeId, PodId};
use crate::plan::waiting::Awaited;
use crate::queues::{ClaimKind, GovernedId, QueueId};
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::holds::Holder;
use crate::state::node::Node;
use crate::tell::cards;
use crate::tell::words::{date_and_time, span};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The beginning of a sentence to owners of pods that are evicted from a queue: for which gang, and
/// by which right.
pub(crate) fn purpose(
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
        EvictionCause::Stale | EvictionCause::Unwind | EvictionCause::CardFailed => String::new(),
    }
}

/// Why a pod is evicted, and how much work that loses. `purpose`: see [`purpose`].
pub(crate) fn why(state: &ClusterState, id: PodId, purpose: &str, now_ms: UnixMs) -> String {
    let pod = &state.pods[id];
    let lost_s = pod.unsaved_ms(now_ms) / 1_000;
    let gpus = state.classes[pod.class].gpus;
    let since = match pod.checkpoint_ms(now_ms) {
        Some(_) => "since its last checkpoint",
        None => "since its start",
    };
    match gpus {
        0 => format!("{purpose}; {lost_s} s of work {since} are lost"),
        gpus => format!("{purpose}; {lost_s} s of work on {gpus} GPUs {since} are lost"),
    }
}

/// Why several pods of one gang are evicted, and how much work that loses in all. `purpose`: see
/// [`purpose`].
pub(crate) fn why_all(
    state: &ClusterState,
    pods: &[PodId],
    purpose: &str,
    now_ms: UnixMs,
) -> String {
    if let [pod] = pods {
        return why(state, *pod, purpose, now_ms);
    }
    let (mut gpu_ms, mut pod_ms) = (0_u64, 0_u64);
    for id in pods {
        let pod = &state.pods[*id];
        let lost_ms = pod.unsaved_ms(now_ms);
        let gpus = state.classes[pod.class].gpus;
        gpu_ms = gpu_ms.saturating_add(gpus.saturating_mul(lost_ms));
        pod_ms = pod_ms.saturating_add(lost_ms);
    }
    let gpus = pods
        .iter()
        .map(|id| state.classes[state.pods[*id].class].gpus);
    let work = match gpus.sum() {
        0_u64 => format!("{} pod-seconds of work", pod_ms / 1_000),
        gpus => format!("{} GPU-seconds of work on {gpus} GPUs", gpu_ms / 1_000),
    };
    let count = pods.len();
    format!("{purpose}; {work} of {count} pods since their last checkpoints or starts are lost")
}

/// Why the eviction plan of a gang has come to nothing before all evictions were sent.
pub(crate) fn why_failed(failure: &Failure) -> String {
    match failure {
        Failure::NominationRefused => "the API server has refused a nomination".into(),
        Failure::EvictionRefused(message) => format!("an eviction was refused: {message}"),
        Failure::GivesNoMore(queue) => {
            format!("the queue {queue} does not hold more than its own any more")
        }
        Failure::NotPreemptible(pod) => format!("pod {pod} may not be evicted any more"),
        Failure::KeptByBudget(pod) => {
            format!("a disruption budget keeps pod {pod} from being evicted")
        }
    }
}

/// Why the room on a node that is held for a gang does not come any more.
pub(crate) fn why_lost(state: &ClusterState, gang: GangId, node: NodeId) -> String {
    let known = state.nodes.get(node).filter(|node| node.known.is_some());
    let Some(Node { name, .. }) = known else {
        return "a node that was to have room for it has gone".into();
    };
    let hold = state.holds.get(Holder::Gang(gang));
    let leavers = hold.into_iter().flat_map(|hold| &hold.leavers);
    let pods = leavers.filter_map(|uid| state.pod_ids.get(uid));
    let mut pods = pods.map(|pod| &state.pods[*pod]);
    // A pod that should long be gone does not count as leaving any more.
    let stuck = pods.find(|pod| pod.stage.node() == Some(node) && !pod.leaving);
    match stuck {
        Some(pod) => format!("the pod {}/{} does not leave", pod.namespace, pod.name),
        None => format!("others have taken the room on the node {name}, or it has less"),
    }
}

/// Why the eviction plan of a gang has ended for another gang.
pub(crate) fn why_displaced(state: &ClusterState, first: GangId) -> String {
    let name = state.name_of(&state.gangs[first]);
    format!("the gang {name}, which comes before it, takes that room, or what queues give for it")
}

/// The event that the eviction plan of a gang has come to nothing; `None`: the gang has no object
/// on which it could stand.
pub(crate) fn plan_failed(
    state: &ClusterState,
    gang: GangId,
    sentence: &str,
) -> Option<Announcement> {
    Some(Announcement {
        regarding: state.object_of(state.gangs.get(gang)?)?,
        warning: true,
        reason: "EvictionPlanFailed".into(),
        message: format!("the eviction plan has come to nothing: {sentence}").into(),
        once: false,
    })
}

/// The event that so many members of a gang, or of its sub-group at position `group` in the tree,
/// are evicted: events on the pods themselves go with the pods. `None`: no member is evicted, the
/// gang has no object, or the evictions are for another gang.
pub(crate) fn members_evicted(
    state: &ClusterState,
    id: GangId,
    group: usize,
    cause: EvictionCause,
    pods: usize,
) -> Option<Announcement> {
    let gang = &state.gangs[id];
    let regarding = state.object_of(gang).filter(|_| pods > 0)?;
    let members = match pods {
        1 => String::from("1 bound member is evicted"),
        pods => format!("{pods} bound members are evicted"),
    };
    let whose = match gang.tree().filter(|_| group != 0) {
        Some(tree) => format!("the sub-group {}", tree.group(group).name),
        None => "the gang".into(),
    };
    let (reason, why) = match cause {
        EvictionCause::Stale => (
            "Stale",
            "lost members and stayed below its minimum for its grace period".into(),
        ),
        EvictionCause::Unwind => (
            "Unwind",
            "was bound in part, and the rest of its minimum has no place".into(),
        ),
        EvictionCause::CardFailed => (
            cards::CARD_FAILED,
            format!(
                "runs where GPUs have failed ({}), and starts again elsewhere",
                cards::signs(state, id)
            ),
        ),
        // The event of an eviction for a claimant names the claimant: `why_all` words it.
        EvictionCause::Reclaim | EvictionCause::Preempt | EvictionCause::Consolidate => {
            return None;
        }
    };
    Some(Announcement {
        regarding,
        warning: true,
        reason: reason.into(),
        message: format!("{members}: {whose} {why}").into(),
        once: false,
    })
}

/// How many pods a sentence names.
const NAMED: usize = 3;

/// Which pods are still to leave for a gang whose eviction plan is being carried out.
pub(super) fn waiting_for_eviction(state: &ClusterState, awaited: &Awaited) -> Verdict {
    let pods = awaited.pods.iter().filter_map(|uid| state.pod_ids.get(uid));
    let pods = pods.map(|pod| &state.pods[*pod]);
    let mut left = pods.filter(|pod| pod.leaving && pod.stage.node().is_some());
    let first = left.by_ref().take(NAMED);
    let names: Vec<String> = first
        .map(|pod| format!("{}/{}", pod.namespace, pod.name))
        .collect();
    let more = left.count();
    let count = names.len() + more;
    let since = date_and_time(awaited.since_ms);
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

/// Why a gang that is refused since `blocked_ms` and could take room from others does not yet. The
/// sentence tells the whole delay and not the rest of it, which would change each second.
pub(super) fn delayed(blocked_ms: Option<UnixMs>, until_ms: UnixMs) -> Verdict {
    let until = date_and_time(until_ms);
    let lasts = match blocked_ms {
        Some(blocked_ms) => format!(
            "for {}, until {until}",
            span(until_ms.saturating_sub(blocked_ms))
        ),
        None => format!("until {until}"),
    };
    let message = format!(
        "it could take room from others, and its preemptionDelay lasts {lasts}: new nodes may come \
         first"
    );
    Verdict {
        more_nodes_help: true,
        ..Verdict::new(Reason::PreemptionDelay, message)
    }
}

/// How far a queue stands over its bound, or the first queue above it that does not have the gang's
/// queue below it, too.
fn over(state: &ClusterState, queue: QueueId, gang: GangId, kind: ClaimKind) -> Option<String> {
    let queues = &state.queues;
    let claimant = queues.find(&state.gangs[gang].spec.queue)?;
    let bound_name = match kind {
        ClaimKind::Quota => "quota",
        ClaimKind::FairShare => "fair share",
    };
    let asked = demand::demand_of_pods(state, state.gangs[gang].members.iter());
    let gpu = queues.governed_id(GPU, None);
    // A key that the gang asks for comes before other keys, and GPUs before all else.
    let matters = |key: GovernedId| {
        let plain = queues.plain_of(key);
        let is_asked = |asked: GovernedId| queues.plain_of(asked) == plain;
        (
            asked.iter().any(|(key, _)| is_asked(*key)),
            Some(plain) == gpu,
            asked.iter().any(|(asked, _)| *asked == key),
        )
    };
    let beyond = |queue: &QueueId| {
        let held = queues.allocated(*queue);
        let over = held.filter_map(|(key, held): (GovernedId, _)| {
            let bound = queues.keeps(*queue, key, kind)?;
            (held > bound).then_some((key, held, bound))
        });
        let (key, held, bound) = over.min_by_key(|(key, ..)| {
            let name = queues.governed_name(*key);
            (Reverse(matters(*key)), name)
        })?;
        let name = queues.governed_name(key);
        Some(format!(
            "the queue {} holds {} of {name}, its {bound_name} is {}",
            queues.name(*queue),
            queue_quantity(name, held),
            queue_quantity(name, bound),
        ))
    };
    queues.below_common(queue, claimant).iter().find_map(beyond)
}
