//! Pods.

use super::problems::{Problems, shortened};
use super::{Converter, Watched, disks, hami, hints, identity, keys, limits, shape};
use crate::kube::objects::{Condition, Meta, Pod, Timestamp, protobuf};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{
    CardEntries, ClaimUse, GangHints, OwnerReference, PodFacts, PodLabels, PodPhase,
    ScheduledCondition,
};

/// The label of pods and ReplicaSets of a Deployment.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Why a kubelet rejects a pod that its Topology Manager could not align.
const MISALIGNED: &str = "TopologyAffinityError";

impl Watched for Pod {
    const KIND: Kind = Kind::Pod;
    const PATH: &'static str = "/api/v1/pods";
    const PROTOBUF: Option<&'static protobuf::Forms> = Some(&protobuf::POD_FORMS);

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::Pod(identity::uid("Pod", &self.metadata))
    }

    fn convert(self, converter: &mut Converter) -> Option<Object> {
        pod(&self, converter).map(Object::Pod)
    }
}

/// The facts of a pod; `None` for one of another scheduler that has ended.
pub(super) fn pod(pod: &Pod, converter: &mut Converter) -> Option<PodFacts> {
    let scheduler_name = pod.spec.scheduler_name.as_deref();
    let extended = scheduler_name.is_some()
        && scheduler_name == converter.extended.as_deref()
        && pod.metadata.labels.get(keys::QUEUE).is_some();
    let ours = extended || scheduler_name == Some(&converter.scheduler_name);
    let mut problems = Problems::default();
    let phase = phase(pod, &mut problems);
    if ours {
        let facts = own(pod, phase, problems, converter);
        Some(PodFacts { extended, ..facts })
    } else if phase.ended() {
        None
    } else {
        let shape = shape::foreign(pod);
        let mut facts = outline(pod, false, phase, shape, converter);
        facts.labels = PodLabels {
            implied: 0,
            stated: match pod.metadata.labels.0.is_empty() {
                true => None,
                false => Some(converter.labels.share(pod.metadata.labels.0.clone())),
            },
        };
        Some(facts)
    }
}

fn own(pod: &Pod, phase: PodPhase, mut problems: Problems, converter: &mut Converter) -> PodFacts {
    let (shape, card_entries) = shape::own(pod, converter.preferences, &mut problems);
    let hints = hints::hints(pod, converter, &mut problems);
    unnamed_claims(pod, &mut problems);
    let mut facts = outline(pod, true, phase, shape, converter);
    facts.hints = hints;
    facts.card_entries = card_entries;
    facts.gates = gates(pod, &mut problems);
    facts.pod_group = label(pod, keys::POD_GROUP, &mut problems);
    facts.sub_group = label(pod, keys::SUB_GROUP, &mut problems);
    facts.queue = label(pod, keys::QUEUE, &mut problems);
    facts.native_group = native_group(pod, &mut problems);
    facts.owner = identity::owner(pod);
    facts.labels = labels(pod, facts.owner.as_ref(), converter);
    facts.deployment = facts
        .owner
        .as_ref()
        .and_then(|owner| deployment(pod, owner));
    facts.planned_node = annotation(pod, keys::PLANNED_NODE);
    facts.bound_queue = annotation(pod, keys::BOUND_QUEUE);
    facts.bound_pod_group = annotation(pod, keys::BOUND_POD_GROUP);
    facts.bound_minima = bound_minima(pod).unwrap_or_default();
    facts.unscheduled = unscheduled(pod);
    if is_alone(&facts) && facts.hints.min_member.is_some_and(|minimum| minimum > 1) {
        let message =
            "makes a gang of the pods of one owner, and this pod has none; use a PodGroup";
        problems.push(keys::annotation(keys::MIN_MEMBER), message);
    }
    converter.impossible = problems.impossible();
    facts.problems = problems.into_vec();
    facts.unknown_keys = keys::unknown(&pod.metadata);
    if facts.shape.cards.is_some() {
        let mut notes = Problems::default();
        hami::note_unknown_order(&pod.metadata.annotations, &mut notes);
        hami::note_unknown_numa_bind(&pod.metadata.annotations, &mut notes);
        facts.unknown_keys.extend(notes.into_vec());
    }
    facts
}

/// The labels, in a copy that pods with equal ones share. However many there are, they hold no pod
/// up: the API server bounds the size of an object.
fn labels(pod: &Pod, owner: Option<&OwnerReference>, converter: &mut Converter) -> PodLabels {
    let labels = PodLabels::new(&pod.metadata.labels.0, &pod.metadata.name, owner);
    let stated = labels.stated.map(|stated| converter.labels.share(stated));
    PodLabels { stated, ..labels }
}

/// The minima that a binding of ours has recorded; `None` for any other text.
fn bound_minima(pod: &Pod) -> Option<Vec<u32>> {
    let text = annotation(pod, keys::BOUND_MINIMUM)?;
    let minima = text.split('/').take(limits::GROUPS_OF_A_POD + 1);
    let minima: Vec<u32> = minima
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let sound = minima.len() <= limits::GROUPS_OF_A_POD && !minima.contains(&0);
    sound.then_some(minima)
}

/// Whether nothing says that other pods belong to the same gang.
fn is_alone(facts: &PodFacts) -> bool {
    facts.owner.is_none() && facts.pod_group.is_none() && facts.native_group.is_none()
}

/// The facts that pods of all schedulers have.
fn outline(
    pod: &Pod,
    ours: bool,
    phase: PodPhase,
    shape: gpu_batch_policies::facts::PodShape,
    converter: &mut Converter,
) -> PodFacts {
    let meta = &pod.metadata;
    let created = meta.creation_timestamp;
    PodFacts {
        uid: identity::uid("Pod", meta),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        ours,
        extended: false,
        planned_node: None,
        node: named_node(pod.spec.node_name.as_deref()),
        nominated: named_node(pod.status.nominated_node_name.as_deref()),
        cards: hami::parts(pod, &mut Problems::default()),
        card_entries: CardEntries::default(),
        is_of_hami: !ours && pod.spec.scheduler_name.as_deref() == Some(hami::OWN_SCHEDULER),
        phase,
        is_misaligned: pod.status.reason.as_deref() == Some(MISALIGNED),
        deletion_ms: meta.deletion_timestamp.map(|time| time.0),
        created_ms: created.map_or(converter.now_ms, |time| converter.past(time)),
        bound_ms: bound(pod).map(|time| converter.past(time)),
        started_ms: pod.status.start_time.map(|time| converter.past(time)),
        priority: saturated(pod.spec.priority.unwrap_or(0)),
        never_preempts: pod.spec.preemption_policy.as_deref() == Some("Never"),
        gates: Vec::new(),
        shape: converter.shapes.share(shape),
        claims: claims(pod),
        labels: PodLabels::default(),
        pod_group: None,
        sub_group: None,
        queue: None,
        native_group: None,
        owner: None,
        deployment: None,
        hints: GangHints::default(),
        bound_queue: None,
        bound_pod_group: None,
        bound_minima: Vec::new(),
        unscheduled: None,
        problems: Vec::new(),
        unknown_keys: Vec::new(),
    }
}

/// The claims that a pod uses. One that is named by several volumes is made for the pod if one of
/// them says so.
fn claims(pod: &Pod) -> Vec<ClaimUse> {
    let volumes = pod.spec.volumes.iter().flatten().take(limits::ENTRIES);
    let claims = volumes.filter_map(|volume| match &volume.claim {
        Some(claim) => Some(ClaimUse {
            name: claim.claim_name.clone(),
            is_ephemeral: false,
        }),
        None if volume.is_ephemeral => Some(ClaimUse {
            name: format!("{}-{}", pod.metadata.name, volume.name).into(),
            is_ephemeral: true,
        }),
        None => disks::attached(volume),
    });
    let mut claims: Vec<ClaimUse> = claims.collect();
    claims.sort_unstable();
    claims.dedup_by(|later, earlier| {
        let same = later.name == earlier.name;
        earlier.is_ephemeral |= same && later.is_ephemeral;
        same
    });
    claims
}

/// A volume that names no claim would be one that is never there.
fn unnamed_claims(pod: &Pod, problems: &mut Problems) {
    let volumes = pod.spec.volumes.as_deref().unwrap_or_default();
    let volumes = problems.at_most(limits::ENTRIES, volumes, "spec.volumes");
    for (index, volume) in volumes.iter().enumerate() {
        let Some(claim) = &volume.claim else {
            continue;
        };
        let field = format_args!("spec.volumes[{index}].persistentVolumeClaim.claimName");
        if claim.claim_name.is_empty() {
            problems.push_impossible(field, "is missing");
        } else if claim.claim_name.contains('/') {
            problems.push_impossible(field, "has a slash, which no claim has");
        }
    }
}

/// The name of a node; an empty one names none.
fn named_node(name: Option<&str>) -> Option<Box<str>> {
    name.filter(|name| !name.is_empty()).map(Into::into)
}

/// A priority, brought into the range that Kubernetes has.
pub(super) fn saturated(priority: i64) -> i32 {
    i32::try_from(priority).unwrap_or(if priority < 0 { i32::MIN } else { i32::MAX })
}

fn phase(pod: &Pod, problems: &mut Problems) -> PodPhase {
    match pod.status.phase.as_deref() {
        None | Some("" | "Pending") => PodPhase::Pending,
        // `Unknown`: the node is silent, and what runs on it still takes its room.
        Some("Running" | "Unknown") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some(other) => {
            problems.push("status.phase", format_args!("`{other}` is not a phase"));
            PodPhase::Pending
        }
    }
}

fn gates(pod: &Pod, problems: &mut Problems) -> Vec<Box<str>> {
    let gates = pod.spec.scheduling_gates.as_deref().unwrap_or_default();
    let gates = problems.at_most(limits::ENTRIES, gates, "spec.schedulingGates");
    gates.iter().map(|gate| gate.name.clone()).collect()
}

fn label(pod: &Pod, key: &str, problems: &mut Problems) -> Option<Box<str>> {
    let value = pod.metadata.labels.get(key)?;
    named(value, keys::label(key), problems)
}

fn native_group(pod: &Pod, problems: &mut Problems) -> Option<Box<str>> {
    let name = pod
        .spec
        .scheduling_group
        .as_ref()?
        .pod_group_name
        .as_deref()?;
    named(name, "spec.schedulingGroup.podGroupName", problems)
}

fn named(value: &str, field: impl std::fmt::Display, problems: &mut Problems) -> Option<Box<str>> {
    match value.len() {
        0 => problems.push(field, "is empty"),
        1..=limits::TEXT => return Some(value.into()),
        length => problems.push(field, format_args!("is {length} bytes long")),
    }
    None
}

/// An annotation that a binding of ours has written; a value longer than a name is not ours.
fn annotation(pod: &Pod, key: &str) -> Option<Box<str>> {
    let value = pod.metadata.annotations.get(key)?;
    (1..=limits::TEXT)
        .contains(&value.len())
        .then(|| value.into())
}

/// The Deployment whose ReplicaSet controls the pod. The Deployment controller names a ReplicaSet
/// after the Deployment and the hash of the template, and writes the hash on the pods, too.
fn deployment(pod: &Pod, owner: &OwnerReference) -> Option<Box<str>> {
    let of_apps = owner.api_version.starts_with("apps/") && &*owner.kind == "ReplicaSet";
    let hash = pod.metadata.labels.get(TEMPLATE_HASH).filter(|_| of_apps)?;
    let name = owner.name.strip_suffix(&**hash)?.strip_suffix('-')?;
    (!name.is_empty()).then(|| name.into())
}

fn scheduled(pod: &Pod) -> Option<&Condition> {
    let mut conditions = pod.status.conditions.iter().flatten();
    conditions.find(|condition| &*condition.kind == "PodScheduled")
}

fn bound(pod: &Pod) -> Option<Timestamp> {
    let condition = scheduled(pod).filter(|condition| &*condition.status == "True")?;
    condition.last_transition_time
}

fn unscheduled(pod: &Pod) -> Option<ScheduledCondition> {
    let condition = scheduled(pod)?;
    (&*condition.status == "False").then(|| ScheduledCondition {
        reason: shortened(
            condition.reason.as_deref().unwrap_or_default(),
            limits::TEXT,
        )
        .into(),
        message: shortened(
            condition.message.as_deref().unwrap_or_default(),
            limits::MESSAGE,
        )
        .into(),
    })
}

#[cfg(test)]
mod tests;
