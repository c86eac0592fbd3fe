use super::*;
use gpu_batch_policies::event::Kind;
use gpu_batch_policies::facts::StorageKind;
use proptest::prelude::*;
use serde_json::json;

const NOW_MS: u64 = 1_795_255_200_000;

fn converter() -> Converter {
    Converter::new("gpu-batch", NOW_MS)
}

fn named(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
}

/// The objects of some documents, in the namespace `default` where they name none.
fn flat<S: Clone>(documents: impl IntoIterator<Item = (S, Value)>) -> Vec<(S, Value)> {
    let documents = documents.into_iter();
    let objects = documents.flat_map(|(source, document)| {
        let objects = taken_apart(document, "default").unwrap_or_default();
        objects
            .into_iter()
            .map(move |object| (source.clone(), object))
    });
    objects.collect()
}

fn object(value: Value) -> Object {
    match from_value(value, &mut converter()) {
        Ok(Document::Object(object)) => *object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_of_the_engine_is_read() {
    use StorageKind::{Attachment, Capacity, Claim, Class, CsiDriver, CsiNode, Volume};
    for (api_version, kind, expected) in [
        ("v1", "Node", Kind::Node),
        ("v1", "Pod", Kind::Pod),
        ("v1", "Namespace", Kind::Namespace),
        ("batch/v1", "Job", Kind::Job),
        (
            "topology.node.k8s.io/v1alpha2",
            "NodeResourceTopology",
            Kind::Numa,
        ),
        ("policy/v1", "PodDisruptionBudget", Kind::DisruptionBudget),
        ("scheduling.k8s.io/v1", "PriorityClass", Kind::PriorityClass),
        (
            "scheduling.k8s.io/v1alpha2",
            "PodGroup",
            Kind::NativePodGroup,
        ),
        ("v1", "PersistentVolumeClaim", Kind::Storage(Claim)),
        ("v1", "PersistentVolume", Kind::Storage(Volume)),
        ("storage.k8s.io/v1", "StorageClass", Kind::Storage(Class)),
        ("storage.k8s.io/v1", "CSINode", Kind::Storage(CsiNode)),
        ("storage.k8s.io/v1", "CSIDriver", Kind::Storage(CsiDriver)),
        (
            "storage.k8s.io/v1",
            "CSIStorageCapacity",
            Kind::Storage(Capacity),
        ),
        (
            "storage.k8s.io/v1",
            "VolumeAttachment",
            Kind::Storage(Attachment),
        ),
        ("gpu-batch.io/v1alpha1", "Queue", Kind::Queue),
        ("gpu-batch.io/v1alpha1", "PodGroup", Kind::PodGroup),
        ("gpu-batch.io/v1alpha1", "Topology", Kind::Topology),
    ] {
        assert_eq!(
            object(named(api_version, kind)).kind(),
            expected,
            "{api_version} {kind}"
        );
    }
}

#[test]
fn other_kinds_are_ignored_by_name() {
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("policy/v1", "PodSecurityPolicy"),
        ("v1", "Service"),
        ("example.com/v1", "Queue"),
        ("scheduling.k8s.io/v1beta1", "PodGroup"),
    ] {
        let document = from_value(named(api_version, kind), &mut converter());
        assert_eq!(
            document,
            Ok(Document::Ignored(format!("{api_version} {kind}")))
        );
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_object_and_field() {
    for (value, expected) in [
        (json!(5), "an object: apiVersion: is missing"),
        (json!({}), "an object: apiVersion: is missing"),
        (json!({"apiVersion": "v1"}), "an object: kind: is missing"),
        (
            json!({"apiVersion": "v1", "kind": 5}),
            "an object: kind: is missing",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Node"}),
            "Node: metadata.name: is missing",
        ),
        (
            named("gpu-batch.io/v1beta1", "Queue"),
            "Queue x: apiVersion: of Queue, only v1alpha1 is known",
        ),
        (
            named("gpu-batch.io/v1alpha1", "Gang"),
            "Gang x: kind: Gang is not a kind of gpu-batch.io in a cluster",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"},
                   "spec": {"containers": [{"name": 5}]}}),
            "Pod b/a: spec.containers[0].name: must be text, not 5",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                   "status": {"allocatable": {"cpu": []}}}),
            "Node n: status.allocatable.cpu: must be a quantity such as 500m, 2Gi or 8, not a list",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a",
                   "creationTimestamp": "today"}}),
            "Pod a: metadata.creationTimestamp: must be a time such as 2026-11-21T10:00:00Z, not \"today\"",
        ),
    ] {
        let refused = from_value(value, &mut converter()).unwrap_err();
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn lists_are_taken_apart_and_empty_documents_skipped() {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        named("v1", "Node"),
        {"apiVersion": "v1", "kind": "NamespaceList", "items": [
            {"metadata": {"name": "a"}}, {"metadata": {"name": "b"}},
        ]},
        named("apps/v1", "Deployment"),
        {"apiVersion": "v1", "kind": "PodList", "items": null},
        {"apiVersion": "v1", "kind": "Pod"},
    ]});
    let bad = json!({"apiVersion": "v1", "kind": "List", "items": 5});
    assert_eq!(taken_apart(bad, "default").unwrap_err().field, "items");
    let documents = [("f", list), ("g", Value::Null)];
    let files = from_files(flat(documents), &mut converter());
    let kinds: Vec<Kind> = files
        .objects
        .iter()
        .map(|(_, object)| object.kind())
        .collect();
    assert_eq!(kinds, [Kind::Node, Kind::Namespace, Kind::Namespace]);
    assert_eq!(files.ignored, [("f", "apps/v1 Deployment".to_owned())]);
    let refused: Vec<(&str, &str)> = files
        .refused
        .iter()
        .map(|(file, refused)| (*file, &*refused.field))
        .collect();
    assert_eq!(refused, [("f", "metadata.name")]);
}

#[test]
fn an_object_that_names_no_namespace_is_where_it_is_said() {
    let named = [named("v1", "Pod"), named("v1", "Node")];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": named});
    let objects = taken_apart(list, "team").unwrap();
    let identities = objects.iter().map(|object| Identity::of(object).unwrap());
    let identities: Vec<String> = identities.map(|identity| identity.to_string()).collect();
    assert_eq!(identities, ["Pod team/x", "Node x"]);
}

#[test]
fn pods_get_their_priority_from_the_classes_wherever_they_stand() {
    let class = |name: &str, value: i32, default: bool| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
               "metadata": {"name": name}, "value": value, "globalDefault": default,
               "preemptionPolicy": if value > 50 { "Never" } else { "PreemptLowerPriority" }})
    };
    let pod = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    let ours = |class: &str| json!({"schedulerName": "gpu-batch", "priorityClassName": class});
    let documents = [
        pod("a", ours("high")),
        pod("b", ours("")),
        pod(
            "c",
            json!({"schedulerName": "gpu-batch", "priority": 7, "priorityClassName": "high"}),
        ),
        pod("d", ours("system-node-critical")),
        pod("e", ours("missing")),
        class("high", 100, false),
        class("usual", 10, true),
    ];
    let documents = documents.into_iter().map(|document| ((), document));
    let files = from_files(flat(documents), &mut converter());
    let mut pods = Vec::new();
    for (_, object) in &files.objects {
        if let Object::Pod(pod) = object {
            pods.push((
                &*pod.name,
                pod.priority,
                pod.never_preempts,
                pod.problems.len(),
            ));
        }
    }
    let expected = [
        ("a", 100, true, 0),
        ("b", 10, false, 0),
        ("c", 7, false, 0),
        ("d", 2_000_001_000, false, 0),
        ("e", 0, false, 1),
    ];
    assert_eq!(pods, expected);
}

#[test]
fn files_have_the_api_servers_defaults() {
    let Object::Pod(pod) = object(named("v1", "Pod")) else {
        panic!("not a pod");
    };
    assert_eq!(
        (&*pod.namespace, pod.ours, pod.created_ms),
        ("default", false, NOW_MS)
    );
    let Object::Node(node) = object(named("v1", "Node")) else {
        panic!("not a node");
    };
    assert!(node.readiness.is_ready());
    let mut down = named("v1", "Node");
    down["status"] = json!({"conditions": [{"type": "Ready", "status": "Unknown"}]});
    let Object::Node(node) = object(down) else {
        panic!("not a node");
    };
    assert!(node.readiness.is_lost());
}

#[test]
fn an_ended_pod_of_another_scheduler_is_no_object() {
    let mut pod = named("v1", "Pod");
    pod["status"] = json!({"phase": "Succeeded"});
    assert_eq!(from_value(pod, &mut converter()), Ok(Document::Ended));
}

/// Words that mean something somewhere, so that random objects get past the first check.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "apiVersion",
            "kind",
            "metadata",
            "name",
            "namespace",
            "labels",
            "annotations",
            "spec",
            "status",
            "items",
            "containers",
            "initContainers",
            "resources",
            "requests",
            "limits",
            "cpu",
            "memory",
            "nvidia.com/gpu",
            "taints",
            "tolerations",
            "key",
            "operator",
            "values",
            "effect",
            "affinity",
            "nodeAffinity",
            "nodeSelectorTerms",
            "matchExpressions",
            "volumes",
            "requiredDuringSchedulingIgnoredDuringExecution",
            "conditions",
            "type",
            "allocatable",
            "capacity",
            "queue",
            "minMember",
            "subGroups",
            "topology",
            "levels",
            "nodeLabel",
            "quota",
            "limit",
            "weight",
            "placement",
            "gpu",
            "parent",
            "namespaceSelector",
            "overhead",
            "ports",
            "hostPort",
            "creationTimestamp",
            "gpu-batch.io/min-member",
            "gpu-batch.io/placement",
        ])
        .prop_map(str::to_owned),
        ".{0,12}",
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "1",
            "-1",
            "1e100",
            "0.1n",
            "5Gi",
            "90s",
            "-9h",
            "In",
            "Exists",
            "NoSchedule",
            "Always",
            "Running",
            "Failed",
            "gpu-batch",
            "2026-11-21T10:00:00Z",
            "binpack",
            "🦀",
            "best-fit",
        ])
        .prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    let known = 0..Known::ALL.len();
    (
        known,
        json_value(),
        json_value(),
        json_value(),
        json_value(),
    )
        .prop_map(|(known, meta, spec, status, rest)| {
            let known = &Known::ALL[known];
            let mut fields = rest.as_object().cloned().unwrap_or_default();
            let api_version = format!("{}/{}", known.group, known.version);
            fields.insert(
                "apiVersion".into(),
                api_version.trim_start_matches('/').into(),
            );
            fields.insert("kind".into(), known.kind.into());
            fields.insert("spec".into(), spec);
            fields.insert("status".into(), status);
            let mut meta = meta.as_object().cloned().unwrap_or_default();
            meta.insert("name".into(), "x".into());
            fields.insert("metadata".into(), meta.into());
            Value::Object(fields)
        })
}

proptest! {
    #[test]
    fn no_json_panics(value in json_value()) {
        from_files(flat([((), value)]), &mut converter());
    }

    #[test]
    fn no_object_of_a_known_kind_panics(value in any_object()) {
        let _ = from_value(value, &mut converter());
    }

    #[test]
    fn one_bad_object_never_changes_another(bad in any_object()) {
        let mut good = named("v1", "Pod");
        good["metadata"]["name"] = json!("good");
        good["spec"] = json!({"schedulerName": "gpu-batch", "priority": 1});
        let alone = from_files(flat([((), good.clone())]), &mut converter()).objects;
        let both = from_files(flat([((), bad), ((), good)]), &mut converter()).objects;
        prop_assert!(both.ends_with(&alone) || both.contains(&alone[0]));
    }
}

#[test]
fn a_claim_without_a_class_gets_the_default_class() {
    let class = |name: &str, key: &str, created: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": name, "creationTimestamp": created, "annotations": {key: "true"}}})
    };
    let is_default = "storageclass.kubernetes.io/is-default-class";
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    let claim = |name: &str, annotations: Value, spec: Value| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec,
            "metadata": {"name": name, "annotations": annotations}})
    };
    let bound = json!({"pv.kubernetes.io/bind-completed": "yes"});
    let objects = [
        claim("none", json!({}), json!({})),
        claim("empty", json!({}), json!({"storageClassName": ""})),
        claim("bound", bound, json!({"volumeName": "v"})),
        class("b", is_default, late),
        class("old", is_default, early),
        class(
            "a",
            "storageclass.beta.kubernetes.io/is-default-class",
            late,
        ),
        class("other", "unknown", late),
    ];
    let objects = objects.into_iter().map(|object| ((), object)).collect();
    let read = from_files(objects, &mut converter());
    assert!(read.refused.is_empty());
    let claims = read.objects.iter().filter_map(|(_, object)| match object {
        Object::Storage(gpu_batch_policies::facts::StorageFacts::Claim(claim)) => {
            Some((&*claim.name, &*claim.class))
        }
        _ => None,
    });
    let mut claims: Vec<_> = claims.collect();
    claims.sort_unstable();
    assert_eq!(claims, [("bound", ""), ("empty", ""), ("none", "a")]);
}
