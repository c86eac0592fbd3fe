use super::*;
use gpu_batch_policies::facts::AMOUNT_MAX;
use serde_json::{Value, json};

fn decoded(pod: Value) -> Pod {
    serde_json::from_value(pod).unwrap()
}

/// `pods: 1` is always there and is left out of `expected`.
fn check(name: &str, pod: Value, expected: &[(&str, u64)]) {
    let mut problems = Problems::default();
    let mut requests = requests(&decoded(pod), &mut problems);
    assert_eq!(problems.into_vec(), [], "{name}");
    let pods = requests
        .iter()
        .position(|(resource, _)| &**resource == "pods");
    assert_eq!(requests.remove(pods.unwrap()).1, 1, "{name}");
    let requests: Vec<(&str, u64)> = requests
        .iter()
        .map(|(resource, amount)| (&**resource, *amount))
        .collect();
    assert_eq!(requests, expected, "{name}");
}

fn container(cpu: &str, gpu: u32) -> Value {
    json!({"name": "c", "resources": {"requests": {"cpu": cpu, "nvidia.com/gpu": gpu}}})
}

fn sidecar(name: &str, cpu: &str) -> Value {
    json!({"name": name, "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
}

#[test]
fn containers_add_up() {
    check("nothing", json!({}), &[]);
    check(
        "no resources",
        json!({"spec": {"containers": [{"name": "c"}]}}),
        &[],
    );
    check(
        "two containers",
        json!({"spec": {"containers": [container("500m", 2), container("2", 1)]}}),
        &[("cpu", 2_500), ("nvidia.com/gpu", 3)],
    );
    check(
        "a zero is nothing",
        json!({"spec": {"containers": [container("0", 0)]}}),
        &[],
    );
    check(
        "thousandths are rounded up once, after the sum",
        json!({"spec": {"containers": [
            {"resources": {"requests": {"memory": "500m"}}},
            {"resources": {"requests": {"memory": "500m"}}},
        ]}}),
        &[("memory", 1)],
    );
    check(
        "a limit without a request is one",
        json!({"spec": {"containers": [
            {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4", "memory": "1Gi"}}},
        ]}}),
        &[("cpu", 1_000), ("memory", 1 << 30)],
    );
}

#[test]
fn init_containers_count_with_the_sidecars_before_them() {
    let init = |containers: Value| json!({"spec": {"containers": [container("1", 1)], "initContainers": containers}});
    check(
        "a larger init container decides, resource by resource",
        init(json!([container("3", 0)])),
        &[("cpu", 3_000), ("nvidia.com/gpu", 1)],
    );
    check(
        "init containers run one after the other",
        init(json!([container("2", 0), container("3", 4)])),
        &[("cpu", 3_000), ("nvidia.com/gpu", 4)],
    );
    check(
        "a sidecar runs beside the containers",
        init(json!([sidecar("s", "2")])),
        &[("cpu", 3_000), ("nvidia.com/gpu", 1)],
    );
    check(
        "a sidecar before an init container runs beside it",
        init(json!([sidecar("s", "2"), container("4", 0)])),
        &[("cpu", 6_000), ("nvidia.com/gpu", 1)],
    );
    check(
        "a sidecar after an init container does not",
        init(json!([container("4", 0), sidecar("s", "2")])),
        &[("cpu", 4_000), ("nvidia.com/gpu", 1)],
    );
    check(
        "only the sidecars before it",
        init(json!([
            sidecar("s", "1"),
            container("5", 0),
            sidecar("t", "2"),
            container("4", 0)
        ])),
        &[("cpu", 7_000), ("nvidia.com/gpu", 1)],
    );
}

#[test]
fn pod_level_requests_replace_the_sum() {
    let with = |resources: Value| {
        json!({"spec": {
            "resources": resources,
            "containers": [{"resources": {"requests": {
                "cpu": "1", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"
            }}}],
        }})
    };
    let gpu = ("nvidia.com/gpu", 1);
    check(
        "cpu, memory and hugepages only",
        with(json!({"requests": {
            "cpu": "3", "memory": "1Ki", "hugepages-2Mi": "2Mi", "nvidia.com/gpu": "8"
        }})),
        &[
            ("cpu", 3_000),
            ("hugepages-2Mi", 2 << 20),
            ("memory", 1_024),
            gpu,
        ],
    );
    check(
        "less than the sum is less",
        with(json!({"requests": {"cpu": "500m"}})),
        &[("cpu", 500), ("hugepages-2Mi", 4 << 20), gpu],
    );
    check(
        "a limit stands in where no container asks",
        with(json!({"limits": {"cpu": "3", "memory": "1Ki"}})),
        &[
            ("cpu", 1_000),
            ("hugepages-2Mi", 4 << 20),
            ("memory", 1_024),
            gpu,
        ],
    );
    check(
        "a limit of hugepages always stands in",
        with(json!({"limits": {"hugepages-2Mi": "8Mi"}})),
        &[("cpu", 1_000), ("hugepages-2Mi", 8 << 20), gpu],
    );
}

#[test]
fn overhead_comes_on_top() {
    check(
        "of the sum",
        json!({"spec": {"containers": [container("1", 0)], "overhead": {"cpu": "250m", "memory": "1Ki"}}}),
        &[("cpu", 1_250), ("memory", 1_024)],
    );
    check(
        "of a pod-level request",
        json!({"spec": {
            "containers": [container("1", 0)],
            "resources": {"requests": {"cpu": "4"}},
            "overhead": {"cpu": "250m"},
        }}),
        &[("cpu", 4_250)],
    );
}

#[test]
fn a_resize_in_place_counts_with_its_maximum() {
    let status = |in_force: &str, admitted: &str| {
        json!([{"name": "c", "resources": {"requests": {"cpu": in_force}},
                "allocatedResources": {"cpu": admitted}}])
    };
    let without_resources = json!([{"name": "c", "allocatedResources": {"cpu": "5"}}]);
    for (name, node, statuses, resize, expected) in [
        ("asked is most", "n", status("1", "1"), "", 2_000),
        ("in force is most", "n", status("5", "3"), "", 5_000),
        ("admitted is most", "n", status("3", "5"), "", 5_000),
        (
            "what can never be does not count",
            "n",
            status("1", "1"),
            "Infeasible",
            1_000,
        ),
        (
            "what may still be does",
            "n",
            status("1", "1"),
            "Deferred",
            2_000,
        ),
        (
            "an old kubelet says nothing",
            "n",
            without_resources,
            "",
            2_000,
        ),
        (
            "an unbound pod has nothing in force",
            "",
            status("5", "5"),
            "",
            2_000,
        ),
    ] {
        let conditions = json!([
            {"type": "Ready", "reason": "Infeasible"},
            {"type": "PodResizePending", "status": "True", "reason": resize},
        ]);
        let container = json!({"name": "c", "resources": {"requests": {"cpu": "2"}}});
        let pod = json!({
            "spec": {"nodeName": node, "containers": [container]},
            "status": {"containerStatuses": statuses, "conditions": conditions},
        });
        check(name, pod, &[("cpu", expected)]);
    }
}

#[test]
fn what_else_can_be_resized() {
    let status =
        |name: &str, cpu: &str| json!({"name": name, "resources": {"requests": {"cpu": cpu}}});
    check(
        "sidecars, and not init containers",
        json!({
            "spec": {"nodeName": "n", "initContainers": [
                sidecar("s", "1"),
                {"name": "i", "resources": {"requests": {"cpu": "1"}}},
            ]},
            "status": {"initContainerStatuses": [status("s", "3"), status("i", "9")]},
        }),
        &[("cpu", 4_000)],
    );
    check(
        "the whole pod",
        json!({
            "spec": {"nodeName": "n",
                     "resources": {"requests": {"cpu": "2", "memory": "1Ki"}}},
            "status": {"resources": {"requests": {"cpu": "3"}},
                       "allocatedResources": {"memory": "2Ki"}},
        }),
        &[("cpu", 3_000), ("memory", 2_048)],
    );
    check(
        "no container by another's status",
        json!({
            "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
            "status": {"containerStatuses": [status("d", "3")]},
        }),
        &[],
    );
}

#[test]
fn what_cannot_be_read_is_a_problem_and_counts_as_nothing() {
    for (quantity, message) in [
        (
            "many",
            "`many` is not a quantity; write it like 8, 500m or 16Gi",
        ),
        ("-1", "`-1` is negative"),
    ] {
        let pod = json!({"spec": {"containers": [
            {"resources": {"requests": {"cpu": "1"}}},
            {"resources": {"requests": {"cpu": quantity}}},
        ]}});
        let mut problems = Problems::default();
        let requests = requests(&decoded(pod), &mut problems);
        assert_eq!(requests, [("cpu".into(), 1_000), ("pods".into(), 1)]);
        let problems = problems.into_vec();
        assert_eq!(problems.len(), 1, "{quantity}");
        assert_eq!(
            &*problems[0].field,
            "spec.containers[1].resources.requests[cpu]"
        );
        assert_eq!(&*problems[0].message, message);
    }
}

#[test]
fn more_than_there_can_be_is_a_problem_and_counts_as_the_most() {
    let pod = json!({"spec": {"containers": [
        {"resources": {"requests": {"memory": "20Pi"}}},
        {"resources": {"requests": {"memory": "20Pi"}}},
    ]}});
    let mut problems = Problems::default();
    let requests = requests(&decoded(pod), &mut problems);
    assert_eq!(requests[0], ("memory".into(), AMOUNT_MAX));
    let problems = problems.into_vec();
    assert_eq!(
        &*problems[0].message,
        "asks for 45035996273704960 memory; 36028797018963967 is the most that can be counted"
    );
}

#[test]
fn hamis_parts_of_cards_take_no_room() {
    check(
        "gpumem",
        json!({"spec": {"containers": [{"resources": {"limits": {
            "nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"
        }}}]}}),
        &[("nvidia.com/gpu", 1)],
    );
}

#[test]
fn the_largest_container_is_told_for_extended_resources() {
    let pod = decoded(json!({"spec": {
        "initContainers": [container("9", 4)],
        "containers": [
            container("1", 2),
            {"resources": {"limits": {"example.com/nic": "1", "nvidia.com/gpucores": "5"}}},
        ],
    }}));
    assert_eq!(
        largest_container(&pod.spec),
        [("example.com/nic".into(), 1), ("nvidia.com/gpu".into(), 4)]
    );
}
