//! The objects of a sequence: what they are called, how they look, and how they change.

use std::sync::Arc;

use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    AlignedContainer, Amounts, CARD, ContainerRole, DisruptionBudgetFacts, GANG_GATE, GangHints,
    GroupSource, JobFacts, LabelSelector, Labels, MatchOperator, NamespaceFacts, NodeFacts,
    OwnerReference, PodFacts, PodGroupFacts, PodShape, PriorityClassFacts, QueueFacts,
    QueueResource, Readiness, SelectorRequirement, Taint, TaintEffect, Toleration,
    TolerationOperator, TopologyLevel, Uid,
};
use gpu_batch_simulator::api_server::Name;
use gpu_batch_simulator::objects::{amounts, node, pod, pod_group, topology};
use gpu_batch_simulator::random::Random;

/// Objects without a namespace are of the sequence that this label names.
pub(super) const SEQUENCE: &str = "example.com/sequence";

/// Where one sequence works: a namespace of its own, and a prefix and a label for what is in none.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) id: Box<str>,
    pub(super) namespace: Box<str>,
}

/// Why nothing is said here about claims, volumes and NUMA nodes.
pub(super) const NO_VOLUMES: &str = "no sequence has claims, volumes or NUMA nodes";

/// The kinds of which sequences have objects: all but those about volumes and NUMA
/// nodes, of which the model does nothing that depends on what they say.
pub(super) fn kinds() -> Vec<Kind> {
    let all = Kind::ALL.into_iter();
    all.filter(|kind| !matches!(kind, Kind::Storage(_) | Kind::Numa))
        .collect()
}

impl Place {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            namespace: format!("s{id}").into(),
        }
    }

    /// A name of an object of this kind, one of few.
    pub(super) fn name(&self, kind: Kind, random: &mut Random) -> Name {
        let choices: &[&str] = match kind {
            Kind::Pod => &["p", "p", "q", "r"],
            Kind::Node | Kind::Queue => &["m", "n"],
            Kind::PodGroup | Kind::NativePodGroup => &["g", "h"],
            Kind::DisruptionBudget => &["b1", "b2"],
            Kind::Topology | Kind::PriorityClass | Kind::Namespace | Kind::Job => &["k"],
            Kind::Storage(_) | Kind::Numa => unreachable!("{NO_VOLUMES}"),
        };
        let name = *random.pick(choices);
        let namespaced = matches!(
            kind,
            Kind::Pod | Kind::PodGroup | Kind::NativePodGroup | Kind::Job | Kind::DisruptionBudget
        );
        if namespaced {
            Name {
                kind,
                namespace: self.namespace.clone(),
                name: name.into(),
            }
        } else {
            Name {
                kind,
                namespace: "".into(),
                name: format!("s{}-{name}", self.id).into(),
            }
        }
    }

    /// The labels of an object without a namespace, with others.
    fn labels(&self, others: &[(&str, &str)]) -> Labels {
        let all = others.iter().copied().chain([(SEQUENCE, &*self.id)]);
        let mut labels: Labels = all.map(|(k, v)| (k.into(), v.into())).collect();
        labels.sort();
        labels
    }
}

/// A new object as it stands after admission: with the API server's defaults filled in.
pub(super) fn object(name: Name, place: &Place, random: &mut Random) -> Object {
    let Name {
        kind,
        namespace,
        name,
    } = name;
    match kind {
        Kind::Pod => Object::Pod(new_pod(&namespace, &name, random)),
        Kind::Node => {
            let mut facts = node(&name, Uid(0), 64, random.between(1, 8), &[]);
            facts.labels = place.labels(&[("example.com/rack", "a")]);
            facts.readiness = readiness(random.percent(70));
            Object::Node(facts)
        }
        Kind::Queue => {
            let mut facts = QueueFacts::new(Uid(0), &name);
            facts.resources = vec![resource(random)];
            facts.parent = random.percent(30).then_some("parent".into());
            Object::Queue(facts)
        }
        Kind::PodGroup => {
            let mut facts = new_group(&namespace, &name, random);
            facts.preemptible = Some(random.percent(70));
            Object::PodGroup(facts)
        }
        Kind::NativePodGroup => {
            let mut facts = new_group(&namespace, &name, random);
            facts.source = GroupSource::Native;
            facts.priority = Some(0);
            if random.percent(30) {
                facts.minimum = 1;
            }
            facts.required_label = random.percent(30).then_some("example.com/rack".into());
            Object::PodGroup(facts)
        }
        Kind::Topology => Object::Topology(topology(&name, Uid(0), &["zone", "rack"])),
        Kind::PriorityClass => Object::PriorityClass(PriorityClassFacts {
            name,
            value: i32::try_from(random.below(3)).unwrap(),
            never_preempts: random.percent(30),
        }),
        Kind::Namespace => Object::Namespace(NamespaceFacts {
            labels: place.labels(&[("kubernetes.io/metadata.name", &name), ("team", "a")]),
            uid: Uid(0),
            name,
            problems: Vec::new(),
        }),
        Kind::Job => Object::Job(new_job(namespace, name, random)),
        Kind::DisruptionBudget => Object::DisruptionBudget(DisruptionBudgetFacts {
            uid: Uid(0),
            namespace,
            name,
            selector: pods_selected(random),
            allowed: u32::try_from(random.below(3)).unwrap(),
            problems: Vec::new(),
        }),
        Kind::Storage(_) | Kind::Numa => unreachable!("{NO_VOLUMES}"),
    }
}

/// Selects the pods of one gang mostly, else all pods, some, or none.
fn pods_selected(random: &mut Random) -> Option<LabelSelector> {
    let mut selector = LabelSelector::default();
    match random.below(10) {
        0 => return None,
        1 => {}
        2..4 => {
            let operators = [
                MatchOperator::In,
                MatchOperator::NotIn,
                MatchOperator::Exists,
                MatchOperator::DoesNotExist,
            ];
            let operator = *random.pick(&operators);
            let listed = matches!(operator, MatchOperator::In | MatchOperator::NotIn);
            selector.match_expressions = vec![SelectorRequirement {
                key: "gpu-batch.io/queue".into(),
                operator,
                values: Vec::from_iter(listed.then(|| "team".into())),
            }];
        }
        _ => selector.match_labels = vec![("gpu-batch.io/pod-group".into(), "g".into())],
    }
    Some(selector)
}

fn new_pod(namespace: &str, name: &str, random: &mut Random) -> PodFacts {
    let mut facts = pod(name, Uid(0), 0, 2, random.below(3));
    facts.namespace = namespace.into();
    let mut shape = PodShape {
        requests: facts.shape.requests.clone(),
        ..PodShape::default()
    };
    let gpus = shape.requests.iter().filter(|(name, _)| name.contains('/'));
    let gpus: Amounts = gpus.cloned().collect();
    if !gpus.is_empty() {
        shape.aligned = Vec::from([AlignedContainer {
            role: ContainerRole::Main,
            amounts: gpus.clone(),
        }]);
    }
    if random.percent(15) {
        facts.ours = false;
    } else {
        shape.largest_container = gpus;
        shape.tolerations = ["not-ready", "unreachable"].map(tolerated).into();
        facts.pod_group = random.percent(60).then_some("g".into());
        facts.queue = random.percent(40).then_some("team".into());
        facts.native_group = random.percent(20).then_some("h".into());
        if random.percent(10) {
            facts.hints.min_member = Some(2);
            facts.hints.expected_runtime_ms = Some(90_000);
        }
        facts.owner = random.percent(10).then(|| OwnerReference {
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            name: "k".into(),
            uid: Uid(1 << 50),
        });
        if facts.owner.is_none() && facts.pod_group.is_none() && facts.native_group.is_none() {
            // For a pod without an owner or a group `min-member` is a problem: such a pod is no
            // gang.
            facts.hints.min_member = None;
        }
    }
    match random.below(100) {
        0..8 => facts.node = Some("elsewhere".into()),
        8..28 if facts.ours => {
            facts.gates = vec!["example.com/first".into()];
            if random.percent(50) {
                facts.gates.push(GANG_GATE.into());
            }
            // Refused: a pod with gates has no node.
            facts.node = random.percent(10).then_some("elsewhere".into());
        }
        _ => {}
    }
    facts.shape = Arc::new(shape);
    facts
}

/// What admission adds to a pod that does not say it itself.
fn tolerated(condition: &str) -> Toleration {
    Toleration {
        key: format!("node.kubernetes.io/{condition}").into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: Some(TaintEffect::NoExecute),
    }
}

fn new_group(namespace: &str, name: &str, random: &mut Random) -> PodGroupFacts {
    let minimum = u32::try_from(random.between(1, 3)).unwrap();
    let mut facts = pod_group(name, Uid(0), 0, minimum);
    facts.namespace = namespace.into();
    facts.queue = random.percent(50).then_some("team".into());
    facts
}

fn new_job(namespace: Box<str>, name: Box<str>, random: &mut Random) -> JobFacts {
    let indexed = random.percent(50);
    let parallelism = u32::try_from(random.between(1, 3)).unwrap();
    JobFacts {
        uid: Uid(0),
        namespace,
        name,
        indexed,
        parallelism,
        completions: indexed.then_some(parallelism),
        succeeded: 0,
        active_deadline_ms: random.percent(50).then_some(60_000),
        ignores_evictions: false,
        unknown_keys: Vec::new(),
    }
}

fn resource(random: &mut Random) -> QueueResource {
    let quota = random.below(8) * CARD;
    QueueResource {
        name: "nvidia.com/gpu".into(),
        product: None,
        quota,
        limit: random.percent(50).then_some(quota + 8 * CARD),
        weight: 1,
    }
}

/// Changes an object, sometimes into what the API server does not allow, sometimes not at all.
pub(super) fn change(object: &mut Object, place: &Place, random: &mut Random) {
    if random.percent(15) {
        return;
    }
    match object {
        Object::Pod(facts) => change_pod(facts, random),
        Object::Node(facts) => change_node(facts, place, random),
        Object::Queue(facts) => change_queue(facts, random),
        Object::PodGroup(facts) => change_group(facts, random),
        Object::Topology(facts) => {
            let names = ["zone", "rack", "block"];
            let level = |name: &str| TopologyLevel {
                name: name.into(),
                node_label: format!("example.com/{name}").into(),
            };
            let count = usize::try_from(random.between(1, 3)).unwrap();
            facts.levels = names[..count].iter().map(|name| level(name)).collect();
        }
        Object::PriorityClass(facts) => facts.value += i32::from(random.percent(50)),
        Object::Namespace(facts) => {
            let team = *random.pick(&["a", "b"]);
            let own = [
                ("kubernetes.io/metadata.name", &*facts.name),
                ("team", team),
            ];
            facts.labels = place.labels(&own);
        }
        Object::Job(facts) => {
            facts.active_deadline_ms = random.percent(50).then_some(120_000);
            if !facts.indexed {
                facts.parallelism += 1;
            }
        }
        Object::DisruptionBudget(facts) => {
            facts.selector = pods_selected(random);
            // A status in a PUT is passed over.
            facts.allowed += 1;
        }
        Object::Storage(_) | Object::Numa(_) => unreachable!("{NO_VOLUMES}"),
    }
}

fn change_pod(facts: &mut PodFacts, random: &mut Random) {
    match random.below(20) {
        0..8 => facts.gates = facts.gates.drain(..).skip(1).collect(),
        8..12 => facts.queue = random.percent(70).then_some("other".into()),
        12..14 => facts.pod_group = random.percent(50).then_some("g".into()),
        14 => facts.hints = GangHints::default(),
        15 => facts.hints.preemptible = Some(false),
        16 => facts.bound_queue = Some("by-hand".into()),
        17 => facts.gates.push("example.com/new".into()),
        18 => facts.node = Some("by-hand".into()),
        _ => facts.ours = !facts.ours,
    }
    if !facts.ours {
        // Gates of another scheduler's pod are never read, so nobody sees whether they changed.
        facts.gates.clear();
    }
}

fn change_node(facts: &mut NodeFacts, place: &Place, random: &mut Random) {
    match random.below(5) {
        0 => facts.labels = place.labels(&[("example.com/rack", "b")]),
        1 => facts.unschedulable = !facts.unschedulable,
        2 => facts.annotations = vec![("nvidia.com/gpu-driver-upgrade-state".into(), "x".into())],
        3 => {
            facts.taints = vec![Taint {
                key: "example.com/sick".into(),
                value: "".into(),
                effect: TaintEffect::NoSchedule,
            }];
        }
        // A status in a PUT is passed over.
        _ => change_node_status(facts, random),
    }
}

fn readiness(ready: bool) -> Readiness {
    if ready {
        Readiness::Ready
    } else {
        Readiness::Lost { since_ms: None }
    }
}

pub(super) fn change_node_status(facts: &mut NodeFacts, random: &mut Random) {
    facts.readiness = readiness(random.percent(50));
    let gpus = random.below(9);
    let has = [("cpu", 64_000), ("nvidia.com/gpu", gpus), ("pods", 110)];
    facts.allocatable = amounts(&has);
}

fn change_queue(facts: &mut QueueFacts, random: &mut Random) {
    match random.below(4) {
        0 => facts.closed = !facts.closed,
        1 => facts.priority += 1,
        2 => facts.resources = vec![resource(random)],
        _ => facts.preempt_min_runtime_ms = Some(600_000),
    }
}

fn change_group(facts: &mut PodGroupFacts, random: &mut Random) {
    match (random.below(4), facts.source) {
        (0, _) => facts.minimum = 7,
        (1, _) => facts.queue = Some("other".into()),
        (2, GroupSource::GpuBatch) => facts.preemptible = Some(random.percent(50)),
        (_, GroupSource::GpuBatch) => facts.staleness_grace_ms = Some(30_000),
        (_, GroupSource::Native) => facts.required_label = Some("example.com/block".into()),
    }
}

pub(super) fn set_uid(object: &mut Object, uid: Uid) {
    match object {
        Object::Node(facts) => facts.uid = uid,
        Object::Pod(facts) => facts.uid = uid,
        Object::Queue(facts) => facts.uid = uid,
        Object::PodGroup(facts) => facts.uid = uid,
        Object::Topology(facts) => facts.uid = uid,
        Object::Job(facts) => facts.uid = uid,
        Object::Namespace(facts) => facts.uid = uid,
        Object::DisruptionBudget(facts) => facts.uid = uid,
        Object::PriorityClass(_) => {}
        Object::Storage(_) | Object::Numa(_) => unreachable!("{NO_VOLUMES}"),
    }
}
