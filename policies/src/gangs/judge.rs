//! What a gang waits for, as far as no node has to be looked at.

use crate::facts::{GroupSource, UnixMs};
use crate::gangs::counts::{Counts, by_leaf, has_place};
use crate::gangs::progress::Progress;
use crate::gangs::wait::{Verdict, Wait};
use crate::gangs::{failed_cards, near, places, sub_groups};
use crate::ids::ById;
use crate::ids::{GangId, PodId};
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::state::gang::{GangKey, SubGroup};
use crate::state::pod::{Own, Pod, Stage};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What the gang waits for, and when it must be looked at again although nothing happens.
pub(crate) fn judge(
    state: &mut ClusterState,
    progress: &ById<GangId, Progress>,
    id: GangId,
    counts: &Counts,
    now_ms: UnixMs,
) -> (Wait, Option<UnixMs>) {
    if let Some(wait) = judge_object(state, progress, id, counts) {
        return (wait, None);
    }
    if counts.short || (counts.needed == 0 && counts.placeable == 0) {
        if let Some((verdict, again_ms)) = unplaceable(state, id, now_ms) {
            return (Wait::Barred(verdict), again_ms);
        }
        let wait = if counts.short {
            Wait::Barred(waiting_for_members(state, id, counts))
        } else {
            Wait::Nothing
        };
        return (wait, None);
    }
    let barred = makes_room(state, id).or_else(|| domain_unknown(state, id));
    let barred = barred.or_else(|| leaves_failed(state, id, now_ms));
    let barred = barred.or_else(|| sub_domain_unknown(state, id));
    (barred.map_or(Wait::Turn, Wait::Barred), None)
}

/// What the gang waits for, whatever its waiting members are like; `None`: the waiting members
/// decide.
fn judge_object(
    state: &mut ClusterState,
    progress: &ById<GangId, Progress>,
    id: GangId,
    counts: &Counts,
) -> Option<Wait> {
    if counts.have_ended() || state.gangs[id].is_others() {
        return Some(Wait::Nothing);
    }
    if counts.waiting == 0 && (counts.needed == 0 || counts.created == 0) {
        return Some(match missing_object(state, id) {
            // The members of a gang whose PodGroup is gone go on running.
            Some(_) if counts.created > 0 => Wait::Nothing,
            // A mistake in a PodGroup is told before its pods exist.
            _ if counts.needed > 0 => Wait::Barred(match admitted(state, progress, id, counts) {
                Ok(()) => waiting_for_members(state, id, counts),
                Err(verdict) => verdict,
            }),
            _ => Wait::Nothing,
        });
    }
    let missing = missing_object(state, id);
    let verdict = missing.or_else(|| admitted(state, progress, id, counts).err());
    verdict.map(Wait::Barred)
}

/// Checks the gang's spec, whether its queue takes the gang, and its topology constraints. Makes
/// the topology of a label that the gang requires.
///
/// # Errors
/// The first obstacle to admitting the gang: a fault of its spec comes before a refusal of its
/// queue, and that before a fault of its topology constraints.
fn admitted(
    state: &mut ClusterState,
    progress: &ById<GangId, Progress>,
    id: GangId,
    counts: &Counts,
) -> Result<(), Verdict> {
    if let Some(verdict) = bad_spec(state, id) {
        return Err(verdict);
    }
    admit(state, progress, id, counts)?;
    near::make_label_topology(state, id);
    near::check_topologies(state, id)
}

/// The verdict on a gang whose members name a PodGroup that does not exist; `None`: the PodGroup
/// exists, or the members name none.
fn missing_object(state: &ClusterState, id: GangId) -> Option<Verdict> {
    let gang = &state.gangs[id];
    let GangKey::Group(source, namespace, name) = &gang.key else {
        return None;
    };
    if gang.object.is_some() {
        return None;
    }
    let kind = match source {
        GroupSource::GpuBatch => "PodGroup",
        GroupSource::Native => "scheduling.k8s.io PodGroup",
    };
    let message = format!("there is no {kind} {name:?} in namespace {namespace:?}");
    Some(Verdict::new(Reason::PodGroupNotFound, message))
}

/// The first fault of a gang's PodGroup, or the first field in it that is not supported. `None`:
/// the PodGroup can be followed as it stands.
fn bad_spec(state: &ClusterState, id: GangId) -> Option<Verdict> {
    let object = state.gangs[id].object.as_ref()?;
    let tree = state.gangs[id].tree.as_ref();
    if let Some(problem) = object.problems.first().or(tree.err()) {
        let message = format!("{}: {}", problem.field, problem.message);
        return Some(Verdict::new(Reason::InvalidSpec, message));
    }
    if let Some(field) = object.unsupported.first() {
        let message = format!("{field} is not supported yet");
        return Some(Verdict::new(Reason::Unsupported, message));
    }
    let class = object
        .priority_class
        .as_ref()
        .filter(|_| object.priority.is_none())?;
    if state.priority_classes.contains_key(class) {
        return None;
    }
    let message = format!("spec.priorityClassName: there is no PriorityClass {class:?}");
    Some(Verdict::new(Reason::InvalidSpec, message))
}

/// Why waiting members cannot be placed: the first reason, by member name, and when it passes by
/// itself.
fn unplaceable(
    state: &ClusterState,
    id: GangId,
    now_ms: UnixMs,
) -> Option<(Verdict, Option<UnixMs>)> {
    let mut members = state.gangs[id].members.clone();
    members.sort_by(|a, b| state.pods[*a].name.cmp(&state.pods[*b].name));
    let mut members = members.iter();
    members.find_map(|pod| hindrance(state, *pod, now_ms))
}

/// Why a member that waits cannot be placed, and when that passes by itself; `None`: nothing keeps
/// it from being placed.
fn hindrance(state: &ClusterState, id: PodId, now_ms: UnixMs) -> Option<(Verdict, Option<UnixMs>)> {
    let pod = &state.pods[id];
    let own = pod
        .own
        .as_ref()
        .filter(|_| pod.stage == Stage::Waiting && !pod.deleting)?;
    let name = &pod.name;
    let barred = |reason, message| Some((Verdict::new(reason, message), None));
    if own.pod_group.is_some() && own.native_group.is_some() {
        let message = format!(
            "pod {name} names a PodGroup by label and a native one in spec.schedulingGroup"
        );
        return barred(Reason::ConflictingGroups, message);
    }
    if let Some(problem) = own.problems.first() {
        let message = format!("pod {name}: {}: {}", problem.field, problem.message);
        return barred(Reason::InvalidSpec, message);
    }
    if let Some(field) = state.classes[pod.class].shape.unsupported.first() {
        let message = format!("pod {name}: {field} is not supported yet");
        return barred(Reason::Unsupported, message);
    }
    if state.classes[pod.class].confined.to_slots {
        let message = format!(
            "pod {name}: nvidia.com/gpu: only nodes of HAMi would do, which take pods that ask for \
             parts of cards; for whole cards add `nvidia.com/gpumem-percentage: 100` to the limits"
        );
        return barred(Reason::Unsupported, message);
    }
    let volumes = state.classes[pod.class].shape.volumes.as_ref();
    if let Some(missing) = volumes.and_then(|volumes| volumes.missing.as_ref()) {
        return barred(Reason::WaitingForVolumes, format!("pod {name}: {missing}"));
    }
    if let Some(message) = misplaced(state, pod, own) {
        return barred(Reason::SubGroupNotFound, message);
    }
    if !own.gates.is_empty() {
        let message = format!("pod {name} has scheduling gates: {}", own.gates.join(", "));
        return barred(Reason::SchedulingGated, message);
    }
    if own.is_chosen_elsewhere() {
        let message = format!(
            "kube-scheduler chooses the node of pod {name}, and asks this scheduler as its extender"
        );
        return barred(Reason::WaitingForKubeScheduler, message);
    }
    if pod.retry_at_ms > now_ms {
        let message = own.failure.as_deref().unwrap_or("a binding was refused");
        return Some((
            Verdict::new(Reason::BindingFailed, message),
            Some(pod.retry_at_ms),
        ));
    }
    let deadline_ms = state
        .job_deadline(pod)
        .filter(|deadline| *deadline > now_ms)?;
    let message = format!("pod {name}: its Job has not been seen yet");
    Some((
        Verdict::new(Reason::WaitingForMembers, message),
        Some(deadline_ms),
    ))
}

/// The queue that takes the gang. A closed queue, or one that does not let in the gang's namespace,
/// stops new gangs and surplus, never replacements.
///
/// # Errors
/// Why the queue does not take the gang.
pub(crate) fn admit(
    state: &ClusterState,
    progress: &ById<GangId, Progress>,
    id: GangId,
    counts: &Counts,
) -> Result<QueueId, Verdict> {
    let gang = &state.gangs[id];
    let labels = state.namespaces.get(&gang.namespace);
    let queues = &state.queues;
    let admitted = queues.admit(&gang.spec.queue, &gang.namespace, labels);
    admitted.or_else(|refusal| {
        // A raised minimum is no loss: the members that it adds are new.
        let replaces = counts.needed > 0 && (progress[id].bereaved || progress[id].is_unfinished());
        let replaces = replaces || !sub_groups::unfinished_of(state, progress, id).is_empty();
        let open = matches!(
            refusal.reason,
            Reason::QueueClosed | Reason::NamespaceNotAllowed
        );
        match queues.find(&gang.spec.queue) {
            Some(queue) if replaces && open => Ok(queue),
            _ => Err(Verdict::new(refusal.reason, refusal.message)),
        }
    })
}

/// The verdict on a gang without sub-groups of which too few members exist.
fn too_few_members(counts: &Counts) -> Verdict {
    let Counts {
        created, expected, ..
    } = counts;
    let ended = counts.succeeded + counts.failed;
    let leaving = created - ended - counts.bound - counts.assumed - counts.waiting;
    let exist = created - counts.failed;
    let failed = match counts.failed {
        0 => String::new(),
        failed => format!(" beside {failed} that failed"),
    };
    let leave = match leaving {
        0 => String::new(),
        1 => ", 1 of them is being deleted".into(),
        _ => format!(", {leaving} of them are being deleted"),
    };
    let message = format!("{exist} of at least {expected} members exist{failed}{leave}");
    Verdict::new(Reason::WaitingForMembers, message)
}

/// Why members that wait are not placed while other members are still to be evicted for another
/// gang. A new pod in the place of the first member that has left would have to be placed beside
/// the members that are still to leave, in their domain, and would keep the gang in that domain
/// when they have left, too: the gang could not be complete anywhere.
fn makes_room(state: &ClusterState, id: GangId) -> Option<Verdict> {
    let mut members = state.gangs[id].members.iter().map(|pod| &state.pods[*pod]);
    if !members.any(|pod| pod.leaving && !pod.deleting && pod.stage.node().is_some()) {
        return None;
    }
    let message = "new members wait until all members that make room for another gang have been \
                   asked to leave";
    Some(Verdict {
        more_nodes_help: false,
        ..Verdict::new(Reason::MembersLost, message)
    })
}

/// Why members that wait are not placed while other members are still to be evicted from failed
/// cards: they would have to leave again.
fn leaves_failed(state: &ClusterState, id: GangId, now_ms: UnixMs) -> Option<Verdict> {
    let message = "new members wait until all members of the gang, which runs on failed cards, \
                   have been asked to leave";
    let is_due = failed_cards::is_due(state, id, now_ms);
    is_due.then(|| Verdict {
        more_nodes_help: false,
        ..Verdict::new(Reason::MembersLost, message)
    })
}

/// Why it is not known in which domain the gang must stay: all nodes of its members are gone. The
/// nodes may come back with their labels.
fn domain_unknown(state: &ClusterState, id: GangId) -> Option<Verdict> {
    // tests plant bugs here: domain-unknown
    near::topology_of_gang(state, id)?.required?;
    if places::anchor(state, id).is_some() {
        return None;
    }
    let node = &state.nodes[*places::occupied(state, id).first()?].name;
    let message =
        format!("the domain of the members that run is not known while their node {node} is gone");
    Some(Verdict {
        more_nodes_help: false,
        ..Verdict::new(Reason::DoesNotFit, message)
    })
}

/// How many sub-groups that are short of members a message names.
const SHORT_NAMED: usize = 3;

/// Why it is not known in which domain a sub-group of which members wait must stay: all nodes of
/// its other members are gone. `None`: there is no such sub-group.
fn sub_domain_unknown(state: &ClusterState, id: GangId) -> Option<Verdict> {
    let gang = &state.gangs[id];
    let tree = gang.tree()?;
    let waits = |pod: &Pod| pod.stage == Stage::Waiting && !pod.deleting;
    let waiting = by_leaf(state, gang, &waits);
    for (index, group) in tree.groups().skip(1) {
        let mut leaves = (0..tree.len()).filter(|leaf| waiting[*leaf] > 0);
        let required = near::near_of(state, id, index, group).and_then(|near| near.required);
        if required.is_none() || !leaves.any(|leaf| tree.is_below(leaf, index)) {
            continue;
        }
        let occupied = places::occupied_below(state, id, tree, index);
        if let (Some(node), None) = (
            occupied.first(),
            places::anchor_among(state, &occupied, None),
        ) {
            let message = format!(
                "the domain of the members of sub-group {} that run is not known while their \
                 node {} is gone",
                group.name, state.nodes[*node].name
            );
            return Some(Verdict {
                more_nodes_help: false,
                ..Verdict::new(Reason::DoesNotFit, message)
            });
        }
    }
    None
}

/// Why a pod belongs to no leaf of its gang; `None`: it belongs to one.
fn misplaced(state: &ClusterState, pod: &Pod, own: &Own) -> Option<String> {
    let gang = &state.gangs[own.gang?];
    if gang.has_group_of(pod) {
        return None;
    }
    let name = &pod.name;
    let Some(sub_group) = &own.sub_group else {
        return Some(format!(
            "pod {name} names no sub-group, and its PodGroup has sub-groups: \
             the label gpu-batch.io/subgroup is missing"
        ));
    };
    let groups = gang.tree().into_iter().flat_map(|tree| tree.groups());
    let inner = groups
        .map(|(_, group)| &group.name)
        .any(|known| known == sub_group);
    let fault = if inner {
        "which has sub-groups itself: pods belong to a leaf"
    } else {
        "which its PodGroup lacks"
    };
    Some(format!("pod {name} names sub-group {sub_group:?}, {fault}"))
}

/// The verdict on a gang of which too few members exist, of a gang with sub-groups by sub-group.
fn waiting_for_members(state: &ClusterState, id: GangId, counts: &Counts) -> Verdict {
    let gang = &state.gangs[id];
    let Some(tree) = gang.tree() else {
        return too_few_members(counts);
    };
    let exist = |pod: &Pod| has_place(pod) || (pod.stage == Stage::Waiting && !pod.deleting);
    let exist = by_leaf(state, gang, &exist);
    let leaves = tree
        .groups()
        .filter(|(leaf, group)| group.is_leaf() && exist[*leaf] < group.minimum);
    let short: Vec<String> = leaves
        .map(|(leaf, group)| {
            let SubGroup { name, minimum, .. } = group;
            format!(
                "{} of at least {minimum} members of sub-group {name} exist",
                exist[leaf]
            )
        })
        .collect();
    let message = match short.len() {
        0 => String::from("members of its sub-groups cannot be placed yet"),
        1..=SHORT_NAMED => short.join(", "),
        more => format!(
            "{}, and {} more are short",
            short[..SHORT_NAMED].join(", "),
            more - SHORT_NAMED
        ),
    };
    Verdict::new(Reason::WaitingForMembers, message)
}
