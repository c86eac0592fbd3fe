//! The fields that the API server refuses, each alone. What it says of them was read in its source.

use super::refusals;
use crate::kube::objects::Pod;
use serde_json::{Value, json};

/// The fields of a pod that are refused.
fn refused(spec: Value) -> Vec<String> {
    let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
    let problems = refusals(&pod).into_iter();
    problems.map(|problem| problem.field.into()).collect()
}

fn of_resources(resources: Value) -> Vec<String> {
    let fields = refused(json!({"containers": [{"name": "main", "resources": resources}]}));
    let short = |field: String| field.replace("spec.containers[0].resources.", "");
    fields.into_iter().map(short).collect()
}

#[test]
fn what_a_cluster_may_have_is_let_in() {
    let spec = json!({
        "containers": [{
            "name": "main",
            "resources": {
                "requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 2, "hugepages-2Mi": "4Mi"},
                "limits": {"cpu": 1, "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"},
            },
        }],
        "tolerations": [
            {"operator": "Exists"},
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "team", "value": "vision"},
            {"key": "team", "operator": "Equal"},
        ],
        "nodeSelector": {"kubernetes.io/os": "linux", "disk": ""},
        "activeDeadlineSeconds": 1,
        "preemptionPolicy": "Never",
    });
    assert_eq!(refused(spec), [""; 0]);
    assert_eq!(refused(json!({"activeDeadlineSeconds": i32::MAX})), [""; 0]);
}

#[test]
fn amounts_that_no_container_may_have_are_refused() {
    let cases = [
        (json!({"limits": {"foo": 1}}), vec!["limits[foo]"]),
        (json!({"limits": {"pods": 1}}), vec!["limits[pods]"]),
        (
            json!({"limits": {"nvidia.com/gpu": "500m"}}),
            vec!["limits[nvidia.com/gpu]"],
        ),
        (
            json!({"limits": {"Nvidia.com/gpu": 1}}),
            vec!["limits[Nvidia.com/gpu]"],
        ),
        (
            json!({"requests": {"nvidia.com/gpu": 1}}),
            vec!["requests[nvidia.com/gpu]"],
        ),
        (
            json!({"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
            vec!["requests[nvidia.com/gpu]"],
        ),
        (
            json!({"requests": {"hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "4Mi"}}),
            vec!["requests[hugepages-2Mi]"],
        ),
        (
            json!({"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}),
            vec!["requests[memory]"],
        ),
        // A text that is no quantity is refused where quantities are read.
        (
            json!({"requests": {"cpu": "x"}, "limits": {"cpu": 1}}),
            vec![],
        ),
    ];
    for (resources, expected) in cases {
        assert_eq!(of_resources(resources.clone()), expected, "{resources}");
    }
}

#[test]
fn tolerations_deadlines_and_labels_are_refused_by_their_field() {
    let long = "a".repeat(64);
    let cases = [
        (
            json!({"tolerations": [{"operator": "Equal"}]}),
            "spec.tolerations[0].operator",
        ),
        (
            json!({"tolerations": [{"effect": "NoSchedule"}]}),
            "spec.tolerations[0].operator",
        ),
        (
            json!({"tolerations": [{"key": "a b"}]}),
            "spec.tolerations[0].key",
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}),
            "spec.tolerations[0].value",
        ),
        (
            json!({"tolerations": [{"key": "a", "value": "-b"}]}),
            "spec.tolerations[0].value",
        ),
        (json!({"nodeSelector": {"a/b/c": "d"}}), "spec.nodeSelector"),
        (json!({"nodeSelector": {"a": long}}), "spec.nodeSelector[a]"),
        (
            json!({"activeDeadlineSeconds": 0}),
            "spec.activeDeadlineSeconds",
        ),
        (
            json!({"activeDeadlineSeconds": -1}),
            "spec.activeDeadlineSeconds",
        ),
        (
            json!({"activeDeadlineSeconds": 1_u64 << 31}),
            "spec.activeDeadlineSeconds",
        ),
        (
            json!({"preemptionPolicy": "Sometimes"}),
            "spec.preemptionPolicy",
        ),
    ];
    for (spec, field) in cases {
        assert_eq!(refused(spec.clone()), [field], "{spec}");
    }
}

#[test]
fn node_affinity_needs_terms_with_keys_and_values_of_labels() {
    let terms = |terms: Value| {
        let required = json!({"nodeSelectorTerms": terms});
        let affinity =
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
        let fields = refused(json!({"affinity": affinity})).into_iter();
        let last = |field: String| field.rsplit_once("nodeSelectorTerms").unwrap().1.to_owned();
        fields.map(last).collect::<Vec<_>>()
    };
    let with = |key: &str, value: &str| json!([{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]);
    assert_eq!(terms(json!([])), [""]);
    assert_eq!(terms(with("disk", "fast")), [""; 0]);
    assert_eq!(terms(with("", "fast")), ["[0].matchExpressions[0].key"]);
    assert_eq!(
        terms(with("disk", "a b")),
        ["[0].matchExpressions[0].values"]
    );
}

/// A deadline may be lowered to 0 in a cluster, so a capture of it may hold one.
#[test]
fn a_pod_that_a_cluster_has_let_in_is_not_refused() {
    let with_uid = |uid: &str| {
        let pod = json!({"metadata": {"uid": uid}, "spec": {"activeDeadlineSeconds": 0}});
        refusals(&serde_json::from_value(pod).unwrap()).len()
    };
    assert_eq!((with_uid(""), with_uid("2b1d")), (1, 0));
}
