//! Which fields of an object a request may set, and which the API server sets itself.

use super::{PodStatus, Status, Stored};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    DisruptionBudgetFacts, GroupSource, Labels, NodeFacts, PodFacts, PodGroupFacts, PodLabels,
    PodPhase, ScheduledCondition, StorageFacts, Uid, UnixMs,
};
use std::sync::Arc;

/// Whether a PUT may leave out the version that it replaces. For custom resources and disruption
/// budgets it may not.
pub(super) fn may_replace_any_version(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Queue | Kind::PodGroup | Kind::Topology | Kind::DisruptionBudget
    )
}

/// Sets the fields of a new object that the API server decides, and returns the status it begins
/// with.
pub(super) fn created(
    object: &mut Object,
    uid: Uid,
    created_ms: UnixMs,
) -> Result<Status, &'static str> {
    Ok(match object {
        Object::Node(facts) => {
            facts.uid = uid;
            Status::Nothing
        }
        Object::Pod(facts) => {
            if facts.node.is_some() && !facts.gates.is_empty() {
                return Err("spec.nodeName must be empty while there are scheduling gates");
            }
            facts.uid = uid;
            facts.created_ms = created_ms;
            facts.bound_ms = None;
            facts.started_ms = None;
            facts.phase = PodPhase::Pending;
            (facts.nominated, facts.deletion_ms) = (None, None);
            facts.unscheduled = None;
            facts.labels = labels(facts);
            let mut status = PodStatus::default();
            if !facts.gates.is_empty() {
                facts.unscheduled = Some(ScheduledCondition {
                    reason: "SchedulingGated".into(),
                    message: "Scheduling is blocked due to non-empty scheduling gates".into(),
                });
                status.scheduled = Some(false);
                status.scheduled_since_s = created_ms / 1_000;
            }
            Status::Pod(status)
        }
        Object::Queue(facts) => {
            (facts.uid, facts.created_ms, facts.generation) = (uid, created_ms, 1);
            (facts.past_use, facts.runtimes) = (None, None);
            Status::Queue(None)
        }
        Object::PodGroup(facts) => {
            (facts.uid, facts.created_ms) = (uid, created_ms);
            // Kubernetes does not count generations of native PodGroups.
            facts.generation = i64::from(facts.source == GroupSource::GpuBatch);
            facts.status = None;
            Status::PodGroup(None)
        }
        Object::Topology(facts) => {
            facts.uid = uid;
            Status::Nothing
        }
        Object::Job(facts) => identified(&mut facts.uid, uid),
        Object::Namespace(facts) => identified(&mut facts.uid, uid),
        Object::DisruptionBudget(facts) => {
            (facts.uid, facts.allowed) = (uid, 0);
            Status::DisruptionBudget { observed: false }
        }
        Object::Storage(facts) => {
            if let StorageFacts::Claim(claim) = facts {
                claim.uid = uid;
            }
            Status::Nothing
        }
        Object::Numa(facts) => identified(&mut facts.uid, uid),
        Object::PriorityClass(_) => Status::Nothing,
    })
}

/// Gives an object without a status its UID.
fn identified(of: &mut Uid, uid: Uid) -> Status {
    *of = uid;
    Status::Nothing
}

/// The labels of a pod, with those that other facts repeat.
fn labels(facts: &PodFacts) -> PodLabels {
    let repeated = [
        ("gpu-batch.io/pod-group", &facts.pod_group),
        ("gpu-batch.io/queue", &facts.queue),
        ("gpu-batch.io/subgroup", &facts.sub_group),
    ];
    let stated = facts.labels.stated.iter().flat_map(|labels| labels.iter());
    let others = stated.filter(|(key, _)| repeated.iter().all(|(known, _)| **key != **known));
    let set = repeated.iter().filter_map(|(key, value)| {
        let value = value.as_ref()?;
        Some(((*key).into(), value.clone()))
    });
    let mut labels: Labels = others.cloned().chain(set).collect();
    labels.sort();
    PodLabels {
        implied: facts.labels.implied,
        stated: (!labels.is_empty()).then(|| Arc::new(labels)),
    }
}

/// The object that a PUT of `new` makes of `old`.
pub(super) fn replaced(old: &Object, new: &Object) -> Result<Object, &'static str> {
    Ok(match (old, new) {
        (Object::Node(old), Object::Node(new)) => Object::Node(NodeFacts {
            readiness: old.readiness,
            conditions: old.conditions.clone(),
            allocatable: old.allocatable.clone(),
            capacity: old.capacity.clone(),
            features: old.features.clone(),
            problems: old.problems.clone(),
            ..new.clone()
        }),
        (Object::Pod(old), Object::Pod(new)) => Object::Pod(pod_replaced(old, new)?),
        (Object::Queue(old), Object::Queue(new)) => {
            let mut new = new.clone();
            (new.created_ms, new.generation) = (old.created_ms, old.generation);
            new.past_use.clone_from(&old.past_use);
            new.runtimes.clone_from(&old.runtimes);
            new.generation += i64::from(new != *old);
            Object::Queue(new)
        }
        (Object::PodGroup(old), Object::PodGroup(new)) => {
            group_may_become(old, new)?;
            let mut new = new.clone();
            (new.created_ms, new.generation) = (old.created_ms, old.generation);
            new.status.clone_from(&old.status);
            let counted = old.source == GroupSource::GpuBatch;
            new.generation += i64::from(counted && new != *old);
            Object::PodGroup(new)
        }
        (Object::DisruptionBudget(old), Object::DisruptionBudget(new)) => {
            let allowed = if new.selector == old.selector {
                old.allowed
            } else {
                0
            };
            Object::DisruptionBudget(DisruptionBudgetFacts {
                allowed,
                ..new.clone()
            })
        }
        (Object::PriorityClass(old), Object::PriorityClass(new)) if old != new => {
            return Err("value and preemptionPolicy may not be changed");
        }
        (_, new) => new.clone(),
    })
}

/// The status of an object that a PUT has made of the stored one. What is known of a disruption
/// budget is about its old spec.
pub(super) fn status_of_replaced(old: &Stored, new: &Object) -> Status {
    match (&old.object, new) {
        (Object::DisruptionBudget(old), Object::DisruptionBudget(new))
            if old.selector != new.selector =>
        {
            Status::DisruptionBudget { observed: false }
        }
        (Object::Pod(_), Object::Pod(_)) => without_planned_at(&old.status),
        _ => old.status.clone(),
    }
}

/// The status of a pod that a client has replaced which does not keep the annotation with the time.
fn without_planned_at(status: &Status) -> Status {
    let mut status = status.clone();
    if let Status::Pod(status) = &mut status {
        status.planned_at_ms = 0;
    }
    status
}

/// Whether a PodGroup may be changed so. Its queue is fixed by a rule of the CRD. Of a native group
/// the whole spec is fixed; its queue is a label and may change.
fn group_may_become(old: &PodGroupFacts, new: &PodGroupFacts) -> Result<(), &'static str> {
    match old.source {
        GroupSource::GpuBatch if new.queue != old.queue => Err("spec.queue is immutable"),
        GroupSource::Native
            if new.minimum != old.minimum || new.required_label != old.required_label =>
        {
            Err("spec is immutable")
        }
        _ => Ok(()),
    }
}

/// When a pod was bound, in milliseconds, as its condition `PodScheduled` says.
pub(super) fn bound_ms(status: &PodStatus) -> Option<UnixMs> {
    let known = status.scheduled == Some(true) && status.scheduled_since_s > 0;
    known.then_some(status.scheduled_since_s * 1_000)
}

/// The pod that a PUT of `new` makes of `old`. Labels and annotations may change, and gates may be
/// removed. The rest of the spec is fixed, and the status stays as it was.
fn pod_replaced(old: &PodFacts, new: &PodFacts) -> Result<PodFacts, &'static str> {
    if new.gates.iter().any(|gate| !old.gates.contains(gate)) {
        return Err("spec.schedulingGates may only be removed");
    }
    let result = PodFacts {
        labels: labels(new),
        gates: new.gates.clone(),
        pod_group: new.pod_group.clone(),
        sub_group: new.sub_group.clone(),
        queue: new.queue.clone(),
        hints: new.hints.clone(),
        owner: new.owner.clone(),
        planned_node: new.planned_node.clone(),
        bound_queue: new.bound_queue.clone(),
        bound_pod_group: new.bound_pod_group.clone(),
        bound_minima: new.bound_minima.clone(),
        problems: new.problems.clone(),
        ..old.clone()
    };
    let fixed = new.node == old.node
        && new.ours == old.ours
        && new.priority == old.priority
        && new.never_preempts == old.never_preempts
        && new.native_group == old.native_group
        && new.shape == old.shape;
    if fixed {
        Ok(result)
    } else {
        Err("spec: pod updates may not change it")
    }
}

/// Whether a node may be nominated for a pod: for a bound pod only the nomination that it has.
pub(super) fn may_be_nominated(pod: &PodFacts, node: Option<&str>) -> Result<(), &'static str> {
    let new = node.is_some() && node != pod.nominated.as_deref();
    if new && pod.node.is_some() {
        Err("status.nominatedNodeName may not be set on pods that are already bound to a node")
    } else {
        Ok(())
    }
}

/// The object and the status that a PUT of `new` to `status` makes of the stored object; `None`:
/// the kind has no status that kubelets or controllers write.
pub(super) fn status_replaced(old: &Stored, new: &Object) -> Option<(Object, Status)> {
    match (&old.object, &old.status, new) {
        (Object::Node(facts), status, Object::Node(new)) => {
            let facts = NodeFacts {
                readiness: new.readiness,
                conditions: new.conditions.clone(),
                allocatable: new.allocatable.clone(),
                capacity: new.capacity.clone(),
                features: new.features.clone(),
                ..facts.clone()
            };
            Some((Object::Node(facts), status.clone()))
        }
        (Object::Pod(facts), Status::Pod(status), Object::Pod(new)) => {
            let mut facts = PodFacts {
                phase: new.phase,
                started_ms: new.started_ms,
                is_misaligned: new.is_misaligned,
                nominated: new.nominated.clone(),
                unscheduled: new.unscheduled.clone(),
                ..facts.clone()
            };
            let mut status = status.clone();
            status.planned_at_ms = 0;
            match (&facts.unscheduled, status.scheduled) {
                (Some(_), _) => status.scheduled = Some(false),
                (None, Some(false)) => status.scheduled = Some(true),
                (None, _) => {}
            }
            facts.bound_ms = bound_ms(&status);
            Some((Object::Pod(facts), Status::Pod(status)))
        }
        (Object::DisruptionBudget(facts), _, Object::DisruptionBudget(new)) => {
            let facts = DisruptionBudgetFacts {
                allowed: new.allowed,
                ..facts.clone()
            };
            let status = Status::DisruptionBudget { observed: true };
            Some((Object::DisruptionBudget(facts), status))
        }
        _ => None,
    }
}
