//! Facts as Kubernetes objects: the way back from what `convert` does.

use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    Amount, Amounts, GroupSource, JobFacts, LabelSelector, Labels, MatchOperator, NodeFacts,
    PodFacts, PodGroupFacts, PodPhase, QueueFacts, TaintEffect, Toleration, Uid, queue_quantity,
};
use gpu_batch_simulator::api_server::Name;
use serde_json::{Map, Value, json};

use super::names::Names;
use super::objects::{NO_VOLUMES, Place, SEQUENCE};

/// Where objects of a kind are: in the place's namespace, or selected by its label.
pub(super) fn collection(kind: Kind, place: &Place) -> String {
    let namespace = &place.namespace;
    match kind {
        Kind::Node => "/api/v1/nodes".into(),
        Kind::Namespace => "/api/v1/namespaces".into(),
        Kind::Queue => "/apis/gpu-batch.io/v1alpha1/queues".into(),
        Kind::Topology => "/apis/gpu-batch.io/v1alpha1/topologies".into(),
        Kind::PriorityClass => "/apis/scheduling.k8s.io/v1/priorityclasses".into(),
        Kind::Pod => format!("/api/v1/namespaces/{namespace}/pods"),
        Kind::Job => format!("/apis/batch/v1/namespaces/{namespace}/jobs"),
        Kind::DisruptionBudget => {
            format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
        }
        Kind::PodGroup => format!("/apis/gpu-batch.io/v1alpha1/namespaces/{namespace}/podgroups"),
        Kind::NativePodGroup => {
            format!("/apis/scheduling.k8s.io/v1alpha2/namespaces/{namespace}/podgroups")
        }
        Kind::Storage(_) | Kind::Numa => unreachable!("{NO_VOLUMES}"),
    }
}

/// What selects the objects of this place among all of the kind; empty where the path does.
pub(super) fn selector(kind: Kind, place: &Place) -> String {
    if is_namespaced(kind) {
        String::new()
    } else {
        format!("&labelSelector={SEQUENCE}%3D{}", place.id)
    }
}

pub(super) fn path(name: &Name, place: &Place) -> String {
    format!("{}/{}", collection(name.kind, place), name.name)
}

fn is_namespaced(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Pod | Kind::PodGroup | Kind::NativePodGroup | Kind::Job | Kind::DisruptionBudget
    )
}

/// The whole object, as it is created.
pub(super) fn manifest(object: &Object, place: &Place, names: &Names) -> Value {
    let name = Name::of(object);
    let (api_version, kind) = name.kind.api_type();
    let mut metadata = json!({"name": name.name, "labels": {}, "annotations": {}});
    if is_namespaced(name.kind) {
        metadata["namespace"] = json!(name.namespace);
    } else {
        metadata["labels"][SEQUENCE] = json!(place.id);
    }
    let mut value = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    match object {
        Object::Node(facts) => node(facts, &mut value),
        Object::Pod(facts) => pod(facts, names, &mut value),
        Object::Queue(facts) => value["spec"] = queue(facts),
        Object::PodGroup(facts) => pod_group(facts, &mut value),
        Object::Topology(facts) => {
            let levels = facts.levels.iter();
            let levels = levels.map(|l| json!({"name": l.name, "nodeLabel": l.node_label}));
            value["spec"]["levels"] = levels.collect();
        }
        Object::PriorityClass(facts) => {
            value["value"] = json!(facts.value);
            let policy = if facts.never_preempts {
                "Never"
            } else {
                "PreemptLowerPriority"
            };
            value["preemptionPolicy"] = json!(policy);
        }
        Object::Namespace(facts) => value["metadata"]["labels"] = pairs(&facts.labels),
        Object::Job(facts) => {
            // Without labels of its own a Job is read with those of its template.
            value["metadata"]["labels"]["example.com/job"] = json!(facts.name);
            value["spec"] = job(facts);
        }
        Object::DisruptionBudget(facts) => {
            let selector = facts.selector.as_ref().map(selector_of_labels);
            value["spec"] = json!({"minAvailable": 1, "selector": selector});
            value["status"] = json!({
                "disruptionsAllowed": facts.allowed,
                "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
            });
        }
        Object::Storage(_) | Object::Numa(_) => unreachable!("{NO_VOLUMES}"),
    }
    value
}

/// What a PUT sends: the object as it is on the API server, with what the facts say in its place,
/// the UID, and the version that is expected.
pub(super) fn replacement(object: &Object, place: &Place, names: &Names, now: Value) -> Value {
    let new = manifest(object, place, names);
    let mut body = if now.is_null() { new.clone() } else { now };
    for key in ["labels", "annotations", "ownerReferences"] {
        body["metadata"][key] = new["metadata"][key].clone();
    }
    match object {
        Object::Pod(_) => copy(
            &new["spec"],
            &mut body["spec"],
            &[
                "schedulerName",
                "nodeName",
                "schedulingGates",
                "schedulingGroup",
            ],
        ),
        Object::Job(_) => copy(
            &new["spec"],
            &mut body["spec"],
            &["parallelism", "completions", "activeDeadlineSeconds"],
        ),
        Object::Namespace(_) => {}
        Object::PriorityClass(_) => copy(&new, &mut body, &["value", "preemptionPolicy"]),
        Object::Node(_) => {
            copy(&new, &mut body, &["spec"]);
            body["status"] = new["status"].clone();
        }
        Object::PodGroup(facts) if facts.source == GroupSource::Native => copy(
            &new["spec"],
            &mut body["spec"],
            &["schedulingPolicy", "schedulingConstraints"],
        ),
        Object::Queue(_)
        | Object::PodGroup(_)
        | Object::Topology(_)
        | Object::DisruptionBudget(_) => {
            copy(&new, &mut body, &["spec"]);
        }
        Object::Storage(_) | Object::Numa(_) => unreachable!("{NO_VOLUMES}"),
    }
    body["metadata"]["uid"] = object.uid().map_or(Value::Null, |uid| uid_text(uid, names));
    body
}

/// What the PUT of a status by a kubelet or a controller sends; labels and spec are as they are.
pub(super) fn status_replacement(
    object: &Object,
    place: &Place,
    names: &Names,
    now: Value,
) -> Value {
    let new = manifest(object, place, names);
    let mut body = if now.is_null() { new.clone() } else { now };
    match object {
        Object::Pod(facts) => pod_status(facts, &mut body["status"]),
        Object::DisruptionBudget(_) => {
            body["status"] = new["status"].clone();
            body["status"]["observedGeneration"] = body["metadata"]["generation"].clone();
        }
        _ => body["status"] = new["status"].clone(),
    }
    body["metadata"]["uid"] = object.uid().map_or(Value::Null, |uid| uid_text(uid, names));
    body
}

fn copy(from: &Value, to: &mut Value, keys: &[&str]) {
    for key in keys {
        to[*key] = from[*key].clone();
    }
}

fn uid_text(uid: Uid, names: &Names) -> Value {
    json!(names.real_uid(uid).to_string())
}

fn pairs(labels: &Labels) -> Value {
    let pairs = labels.iter();
    pairs
        .map(|(k, v)| (k.to_string(), json!(v)))
        .collect::<Map<_, _>>()
        .into()
}

fn selector_of_labels(selector: &LabelSelector) -> Value {
    let expressions = selector.match_expressions.iter().map(|requirement| {
        let operator = match requirement.operator {
            MatchOperator::In => "In",
            MatchOperator::NotIn => "NotIn",
            MatchOperator::Exists => "Exists",
            MatchOperator::DoesNotExist => "DoesNotExist",
            MatchOperator::Gt | MatchOperator::Lt => "Gt",
        };
        json!({"key": requirement.key, "operator": operator, "values": requirement.values})
    });
    json!({
        "matchLabels": pairs(&selector.match_labels),
        "matchExpressions": expressions.collect::<Vec<_>>(),
    })
}

fn quantity((name, amount): &(Box<str>, Amount)) -> (String, Value) {
    let text = match &**name {
        "cpu" => format!("{amount}m"),
        _ => amount.to_string(),
    };
    (name.to_string(), json!(text))
}

fn amounts(amounts: &Amounts) -> Value {
    amounts.iter().map(quantity).collect::<Map<_, _>>().into()
}

fn effect(effect: TaintEffect) -> &'static str {
    match effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    }
}

fn node(facts: &NodeFacts, value: &mut Value) {
    value["metadata"]["labels"] = pairs(&facts.labels);
    value["metadata"]["annotations"] = pairs(&facts.annotations);
    let taints = facts.taints.iter();
    let taints: Vec<Value> = taints
        .map(|t| json!({"key": t.key, "value": t.value, "effect": effect(t.effect)}))
        .collect();
    value["spec"] = json!({"unschedulable": facts.unschedulable, "taints": taints});
    let ready = if facts.readiness.is_ready() {
        "True"
    } else {
        "False"
    };
    let features: Vec<&str> = facts.features.iter().map(|it| it.name()).collect();
    value["status"] = json!({
        "capacity": amounts(&facts.capacity),
        "allocatable": amounts(&facts.allocatable),
        "conditions": [{"type": "Ready", "status": ready}],
        "declaredFeatures": features,
    });
}

fn pod(facts: &PodFacts, names: &Names, value: &mut Value) {
    let labels = [
        ("pod-group", &facts.pod_group),
        ("subgroup", &facts.sub_group),
        ("queue", &facts.queue),
    ];
    let hints = &facts.hints;
    let text = |value: Option<&Box<str>>| value.map(ToString::to_string);
    let annotations = [
        ("bound-queue", text(facts.bound_queue.as_ref())),
        ("bound-podgroup", text(facts.bound_pod_group.as_ref())),
        ("bound-minimum", minima(&facts.bound_minima)),
        ("planned-node", text(facts.planned_node.as_ref())),
        ("min-member", hints.min_member.map(|n| n.to_string())),
        (
            "preemptible",
            hints.preemptible.map(|truth| truth.to_string()),
        ),
        (
            "expected-runtime",
            hints
                .expected_runtime_ms
                .map(|ms| format!("{}s", ms / 1_000)),
        ),
    ];
    let metadata = &mut value["metadata"];
    for (key, label) in labels {
        if let Some(label) = label {
            metadata["labels"][format!("gpu-batch.io/{key}")] = json!(label);
        }
    }
    for (key, annotation) in annotations {
        if let Some(annotation) = annotation {
            metadata["annotations"][format!("gpu-batch.io/{key}")] = json!(annotation);
        }
    }
    if let Some(owner) = &facts.owner {
        metadata["ownerReferences"] = json!([{
            "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name,
            "uid": uid_text(owner.uid, names), "controller": true,
        }]);
    }
    let gates = facts.gates.iter();
    let resources = facts
        .shape
        .requests
        .iter()
        .filter(|(name, _)| &**name != "pods");
    let (limits, requests): (Vec<_>, Vec<_>) = resources.partition(|(name, _)| name.contains('/'));
    let map = |list: Vec<&(Box<str>, Amount)>| list.into_iter().map(quantity).collect();
    let (limits, requests): (Map<_, _>, Map<_, _>) = (map(limits), map(requests));
    let tolerations = facts.shape.tolerations.iter();
    value["spec"] = json!({
        "schedulerName": if facts.ours { "gpu-batch" } else { "another" },
        "nodeName": facts.node,
        "schedulingGates": gates.map(|gate| json!({"name": gate})).collect::<Vec<_>>(),
        "schedulingGroup": facts.native_group.as_ref().map(|name| json!({"podGroupName": name})),
        "tolerations": tolerations.map(toleration).collect::<Vec<_>>(),
        "containers": [{
            "name": "main",
            "image": "none",
            "resources": {"limits": limits, "requests": requests},
        }],
    });
}

fn toleration(toleration: &Toleration) -> Value {
    json!({
        "key": toleration.key, "operator": "Exists",
        "effect": toleration.effect.map(effect),
    })
}

/// A running pod is ready, as the model's budgets take it to be. The condition `PodScheduled` keeps
/// its time.
fn pod_status(facts: &PodFacts, status: &mut Value) {
    let phase = match facts.phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
    };
    status["phase"] = json!(phase);
    let started = facts.started_ms.map(|started_ms| {
        let started = jiff::Timestamp::from_millisecond(i64::try_from(started_ms).unwrap());
        started.unwrap().to_string()
    });
    status["startTime"] = json!(started);
    status["nominatedNodeName"] = json!(facts.nominated);
    let mut conditions = match status["conditions"].take() {
        Value::Array(conditions) => conditions,
        _ => Vec::new(),
    };
    let running = facts.phase == PodPhase::Running;
    conditions.retain(|condition| running || condition["type"] != "Ready");
    let scheduled = conditions.iter_mut().find(|c| c["type"] == "PodScheduled");
    match (scheduled, &facts.unscheduled) {
        (Some(condition), None) if condition["status"] == "False" => {
            condition["status"] = json!("True");
            condition["reason"] = Value::Null;
            condition["message"] = Value::Null;
        }
        (Some(condition), Some(said)) => {
            condition["status"] = json!("False");
            condition["reason"] = json!(said.reason);
            condition["message"] = json!(said.message);
        }
        (None, Some(said)) => conditions.push(json!({
            "type": "PodScheduled", "status": "False",
            "reason": said.reason, "message": said.message,
        })),
        (_, None) => {}
    }
    if running && !conditions.iter().any(|c| c["type"] == "Ready") {
        conditions.push(json!({"type": "Ready", "status": "True"}));
    }
    status["conditions"] = json!(conditions);
}

fn queue(facts: &QueueFacts) -> Value {
    let resources = facts.resources.iter().map(|resource| {
        let mut entry = json!({
            "name": resource.name,
            "quota": queue_quantity(&resource.name, resource.quota),
            "weight": resource.weight,
        });
        if let Some(limit) = resource.limit {
            entry["limit"] = json!(queue_quantity(&resource.name, limit));
        }
        entry
    });
    let mut spec = json!({
        "priority": facts.priority,
        "closed": facts.closed,
        "resources": resources.collect::<Vec<_>>(),
    });
    set(&mut spec, "parent", facts.parent.as_deref());
    set(
        &mut spec,
        "preemptMinRuntime",
        facts.preempt_min_runtime_ms.map(seconds),
    );
    spec
}

fn pod_group(facts: &PodGroupFacts, value: &mut Value) {
    let mut spec = json!({});
    match facts.source {
        GroupSource::GpuBatch => {
            spec["minMember"] = json!(facts.minimum);
            set(&mut spec, "queue", facts.queue.as_deref());
            set(&mut spec, "preemptible", facts.preemptible);
            let grace = facts
                .staleness_grace_ms
                .map(|ms| format!("{}s", ms / 1_000));
            set(&mut spec, "stalenessGracePeriod", grace);
        }
        GroupSource::Native => {
            spec["schedulingPolicy"] = match facts.minimum {
                1 => json!({"basic": {}}),
                count => json!({"gang": {"minCount": count}}),
            };
            if let Some(label) = &facts.required_label {
                spec["schedulingConstraints"] = json!({"topology": [{"key": label}]});
            }
            set(
                &mut value["metadata"]["labels"],
                "gpu-batch.io/queue",
                facts.queue.as_deref(),
            );
        }
    }
    value["spec"] = spec;
}

fn job(facts: &JobFacts) -> Value {
    json!({
        "completionMode": if facts.indexed { "Indexed" } else { "NonIndexed" },
        "parallelism": facts.parallelism,
        "completions": facts.completions,
        "activeDeadlineSeconds": facts.active_deadline_ms.map(|ms| ms / 1_000),
        "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none"}],
        }},
    })
}

fn seconds(ms: u64) -> String {
    format!("{}s", ms / 1_000)
}

fn set(value: &mut Value, key: &str, set: Option<impl serde::Serialize>) {
    if let Some(set) = set {
        value[key] = json!(set);
    }
}

fn minima(minima: &[u32]) -> Option<String> {
    let words: Vec<String> = minima.iter().map(u32::to_string).collect();
    (!words.is_empty()).then(|| words.join("/"))
}
