//! The fields that the API server refuses, each alone. What it says of them was read in its source.

use super::refusals;
use crate::kube::objects::Pod;
use serde_json::{Value, json};

/// The fields of a pod that are refused.
fn refused(spec: Value) -> Vec<String> {
    let document = json!({"spec": spec});
    let pod: Pod = serde_json::from_value(document.clone()).unwrap();
    let problems = refusals(&pod, &document).into_iter();
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
            vec!["limits[nvidia.com/gpu]"],
        ),
        (
            json!({"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
            vec!["requests[nvidia.com/gpu]"],
        ),
        (
            json!({"requests": {"hugepages-2Mi": "2Mi", "cpu": 1}, "limits": {"hugepages-2Mi": "4Mi"}}),
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

/// A pod of one container with these parts beside it.
fn beside(spec: Value) -> Vec<String> {
    let mut all = json!({"containers": [{
        "name": "main",
        "resources": {"requests": {"cpu": 2}, "limits": {"hugepages-2Mi": "4Mi", "cpu": 3}},
        "ports": [{"containerPort": 80}, {"containerPort": 81}],
    }]});
    for (name, value) in spec.as_object().unwrap() {
        all[name] = value.clone();
    }
    refused(all)
}

#[test]
fn a_pod_as_a_whole_has_no_less_than_its_containers() {
    let resources = |resources: Value| beside(json!({"resources": resources}));
    let enough = json!({"requests": {"cpu": 2}, "limits": {"cpu": "3", "hugepages-2Mi": "4Mi"}});
    assert_eq!(resources(enough), [""; 0]);
    for (amounts, expected) in [
        (
            json!({"requests": {"cpu": 1}}),
            "spec.resources.requests[cpu]",
        ),
        (
            json!({"limits": {"cpu": 4, "foo": 1}}),
            "spec.resources.limits[foo]",
        ),
        (
            json!({"limits": {"cpu": 4, "hugepages-2Mi": "2Mi"}}),
            "spec.resources.requests[hugepages-2Mi]",
        ),
        (
            json!({"requests": {"cpu": 5}, "limits": {"cpu": 4}}),
            "spec.resources.requests[cpu]",
        ),
    ] {
        assert_eq!(resources(amounts.clone())[0], expected, "{amounts}");
    }
    // The sum of the containers is filled in, and is above the limit.
    let low = resources(json!({"limits": {"cpu": 1}}));
    let limit = "spec.containers[0].resources.limits[cpu]";
    assert_eq!(low, ["spec.resources.requests[cpu]", limit]);
}

#[test]
fn what_is_filled_in_is_added_before_it_is_rounded() {
    let pod = |cpu: &str| {
        let container = |name| json!({"name": name, "resources": {"requests": {"cpu": cpu}}});
        let containers = [container("a"), container("b")];
        refused(json!({"containers": containers, "resources": {"limits": {"memory": "1"}}}))
    };
    // Each of the containers is stored with 1m, and the pod too.
    assert_eq!(pod("1e-4"), ["spec.resources.requests[cpu]"]);
    assert_eq!(pod("6e-4"), [""; 0]);
    assert_eq!(pod("1m"), [""; 0]);
}

#[test]
fn amounts_are_whole_devices_and_whole_pages_and_overhead_is_one_of_them() {
    let page = |amount: &str| json!({"limits": {"hugepages-2Mi": amount, "cpu": 1}});
    assert_eq!(of_resources(page("4Mi")), [""; 0]);
    assert_eq!(of_resources(page("3Mi")), ["limits[hugepages-2Mi]"]);
    let alone = of_resources(json!({"limits": {"hugepages-2Mi": "2Mi"}}));
    assert_eq!(alone, ["spec.containers[0].resources"]);
    let overhead = beside(json!({"overhead": {"foo": 1, "nvidia.com/gpu": "500m"}}));
    assert_eq!(
        overhead,
        ["spec.overhead[foo]", "spec.overhead[nvidia.com/gpu]"]
    );
}

#[test]
fn ports_are_ports_and_each_of_the_host_is_taken_once() {
    let ports = |ports: Value, in_host: bool| {
        let containers = json!([{"name": "a", "ports": ports}]);
        let fields = refused(json!({"hostNetwork": in_host, "containers": containers}));
        let short = |field: String| field.replace("spec.containers[0].ports", "");
        fields.into_iter().map(short).collect::<Vec<_>>()
    };
    let port = |inner: u32, outer: u32| json!({"containerPort": inner, "hostPort": outer});
    assert_eq!(ports(json!([port(80, 81), port(80, 82)]), false), [""; 0]);
    assert_eq!(ports(json!([port(80, 80), port(81, 0)]), true), [""; 0]);
    assert_eq!(
        ports(json!([{"hostPort": 1}]), false),
        ["[0].containerPort"]
    );
    assert_eq!(ports(json!([port(1, 65_536)]), false), ["[0].hostPort"]);
    assert_eq!(ports(json!([port(80, 81)]), true), ["[0].hostPort"]);
    assert_eq!(
        ports(json!([port(80, 1), port(81, 1)]), false),
        ["[1].hostPort"]
    );
    let udp = json!({"containerPort": 1, "protocol": "udp"});
    assert_eq!(ports(json!([udp]), false), ["[0].protocol"]);
}

#[test]
fn what_the_scheduler_does_not_read_is_looked_up_in_the_document() {
    let toleration = |effect: &str| json!({"tolerations": [{"key": "a", "effect": effect, "tolerationSeconds": 1}]});
    assert_eq!(refused(toleration("NoExecute")), [""; 0]);
    assert_eq!(
        refused(toleration("NoSchedule")),
        ["spec.tolerations[0].effect"]
    );
    assert_eq!(
        refused(json!({"restartPolicy": "never"})),
        ["spec.restartPolicy"]
    );
    assert_eq!(refused(json!({"restartPolicy": ""})), [""; 0]);
}

#[test]
fn preferred_node_affinity_needs_keys_of_labels() {
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let preferred = |key: &str| {
        let preference = json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
        let preferred = json!([{"weight": 1, "preference": preference}]);
        refused(json!({"affinity": {"nodeAffinity": {PREFERRED: preferred}}}))
    };
    assert_eq!(preferred("disk"), [""; 0]);
    let field = format!("spec.affinity.nodeAffinity.{PREFERRED}[0].preference");
    assert_eq!(
        preferred("a b"),
        [format!("{field}.matchExpressions[0].key")]
    );
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
        ["[0].matchExpressions[0].values[0]"]
    );
}

/// A deadline may be lowered to 0 in a cluster, so a capture of it may hold one.
#[test]
fn a_pod_that_a_cluster_has_let_in_is_not_refused() {
    let with_uid = |uid: &str| {
        let pod = json!({"metadata": {"uid": uid}, "spec": {"activeDeadlineSeconds": 0}});
        refusals(&serde_json::from_value(pod.clone()).unwrap(), &pod).len()
    };
    assert_eq!((with_uid(""), with_uid("2b1d")), (1, 0));
}
