use super::*;
use crate::kube::objects::{
    CsiDriver, CsiNode, CsiStorageCapacity, DisruptionBudget, Job, Namespace, NativePodGroup, Node,
    NodeResourceTopology, PersistentVolume, PersistentVolumeClaim, Pod, PodGroup, PriorityClass,
    Queue, StorageClass, Topology, VolumeAttachment,
};
use gpu_batch_policies::facts::{AMOUNT_MAX, PodFacts};
use proptest::prelude::*;
use serde_json::{Value, json};

fn quantity() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,3}(m|Ki|Gi|k)?",
        "-?[0-9]{0,25}[.]?[0-9]{0,25}(n|u|m|k|M|G|T|P|E|Ki|Ei|e-?[0-9]{1,3})?",
        ".{0,6}",
    ]
}

fn quantities() -> impl Strategy<Value = BTreeMap<&'static str, String>> {
    let names = vec!["cpu", "memory", "hugepages-2Mi", "nvidia.com/gpu", "pods"];
    prop::collection::btree_map(prop::sample::select(names), quantity(), 0..4)
}

fn resources() -> impl Strategy<Value = Value> {
    (quantities(), quantities())
        .prop_map(|(requests, limits)| json!({"requests": requests, "limits": limits}))
}

fn containers() -> impl Strategy<Value = Vec<Value>> {
    let container =
        (resources(), any::<bool>(), any::<i64>()).prop_map(|(resources, sidecar, port)| {
            json!({
                "name": "c",
                "resources": resources,
                "restartPolicy": if sidecar { "Always" } else { "" },
                "ports": [{"hostPort": port}],
            })
        });
    prop::collection::vec(container, 0..4)
}

/// Pods whose fields have the right types and wild values.
fn any_pod() -> impl Strategy<Value = Value> {
    let text = ".{0,8}";
    (
        (containers(), containers(), resources(), resources()),
        prop::collection::btree_map("gpu-batch.io/[a-z-]{1,20}|nvidia.com/[a-z-]{1,20}", ".{0,12}", 0..4),
        (text, text, text, text),
        prop::sample::select(vec!["", "Pending", "Running", "Succeeded", "Failed", "Unknown"]),
        prop::sample::select(vec!["gpu-batch", "default-scheduler"]),
        any::<i64>(),
    )
        .prop_map(|((main, init, pod, status), annotations, (a, b, c, d), phase, scheduler, number)| {
            json!({
                "metadata": {"name": a, "namespace": b, "labels": annotations,
                             "annotations": annotations},
                "spec": {
                    "schedulerName": scheduler, "nodeName": c, "priority": number,
                    "containers": main, "initContainers": init, "resources": pod,
                    "overhead": status["limits"], "activeDeadlineSeconds": number,
                    "tolerations": [{"key": a, "operator": d, "effect": b}],
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": a, "operator": b}]}],
                    }}},
                },
                "status": {
                    "phase": phase,
                    "containerStatuses": [{"name": "c", "resources": status}],
                    "conditions": [{"type": "PodResizePending", "reason": d}],
                },
            })
        })
}

fn convert(pod: &Value, now_ms: UnixMs) -> Option<PodFacts> {
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    match pod.convert(&mut Converter::new("gpu-batch", now_ms))? {
        Object::Pod(facts) => Some(facts),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn any_pod_becomes_facts_that_keep_their_promises(pod in any_pod(), now_ms in any::<u64>()) {
        let Some(facts) = convert(&pod, now_ms) else {
            prop_assert!(pod["spec"]["schedulerName"] != "gpu-batch");
            return Ok(());
        };
        for amounts in [&facts.shape.requests, &facts.shape.largest_container] {
            prop_assert!(amounts.is_sorted_by(|one, other| one.0 < other.0));
            prop_assert!(amounts.iter().all(|(_, amount)| (1..=AMOUNT_MAX).contains(amount)));
        }
        prop_assert!(facts.shape.requests.contains(&("pods".into(), 1)));
        prop_assert!(facts.created_ms <= now_ms);
        prop_assert!(facts.problems.len() <= limits::PROBLEMS);
        prop_assert!(facts.shape.unsupported.len() <= limits::PROBLEMS);
        prop_assert!(facts.ours || facts.problems.is_empty());
        let again = convert(&pod, now_ms);
        prop_assert_eq!(again, Some(facts));
    }
}

#[test]
fn shapes_that_nobody_holds_are_dropped() {
    let mut shapes = Shared::default();
    let shape = |cpu: u64| PodShape {
        requests: vec![("cpu".into(), cpu)],
        ..PodShape::default()
    };
    let held: Vec<_> = (1..=10).map(|cpu| shapes.share(shape(cpu))).collect();
    for cpu in 11..100_000 {
        shapes.share(shape(cpu));
    }
    let most = Shared::<PodShape>::BEFORE_FIRST_SWEEP + held.len();
    assert!(shapes.values.len() <= most);
    assert!(Arc::ptr_eq(&held[0], &shapes.share(shape(1))));
}

#[test]
fn kinds_and_paths_are_those_of_the_engine_and_the_api_server() {
    let watched = [
        (Node::KIND, Node::PATH),
        (Pod::KIND, Pod::PATH),
        (NodeResourceTopology::KIND, NodeResourceTopology::PATH),
        (Queue::KIND, Queue::PATH),
        (PodGroup::KIND, PodGroup::PATH),
        (NativePodGroup::KIND, NativePodGroup::PATH),
        (Topology::KIND, Topology::PATH),
        (PriorityClass::KIND, PriorityClass::PATH),
        (Namespace::KIND, Namespace::PATH),
        (Job::KIND, Job::PATH),
        (DisruptionBudget::KIND, DisruptionBudget::PATH),
        (PersistentVolumeClaim::KIND, PersistentVolumeClaim::PATH),
        (PersistentVolume::KIND, PersistentVolume::PATH),
        (StorageClass::KIND, StorageClass::PATH),
        (CsiNode::KIND, CsiNode::PATH),
        (CsiDriver::KIND, CsiDriver::PATH),
        (CsiStorageCapacity::KIND, CsiStorageCapacity::PATH),
        (VolumeAttachment::KIND, VolumeAttachment::PATH),
    ];
    for kind in Kind::ALL {
        let paths = watched.iter().filter(|(of, _)| *of == kind);
        assert_eq!(paths.count(), 1, "{kind:?}");
    }
}
