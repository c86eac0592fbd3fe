//! Pods that the API server refuses, for a mistake or two in fields that decide where they run.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{mixed, quantities};

/// Makes one mistake in a pod.
type Mistake = fn(&mut Draw, &mut Value);

const MISTAKES: &[Mistake] = &[
    quantity,
    resource_name,
    request_without_limit,
    request_above_limit,
    part_of_a_device,
    pod_level,
    overhead,
    toleration,
    toleration,
    node_selector,
    labels,
    term,
    expression,
    expression,
    field,
    preferred,
    port,
    port,
    deadline,
    preemption_policy,
    restart_policy,
    sidecar,
];

const LISTS: &[&str] = &["requests", "limits"];

const KEYS: &[&str] = &[
    "",
    "/",
    "a/",
    "/a",
    "a/b/c",
    "A.example/b",
    "-a",
    "a-",
    "a b",
    "é",
    "_",
    "a..b/c",
    "012345678901234567890123456789012345678901234567890123456789abcd",
    "example.com/012345678901234567890123456789012345678901234567890123456789abcd",
];

const VALUES: &[&str] = &[
    "-5",
    "5-",
    "+5",
    " 5",
    "5 ",
    "a b",
    "a/b",
    "é",
    "_x",
    ".",
    "012345678901234567890123456789012345678901234567890123456789abcd",
];

/// A case of everything, in which the pod has one mistake, or two.
pub(crate) fn case(draw: &mut Draw) -> Value {
    let mut case = mixed(draw);
    for _ in 0..=draw.below(2) {
        let mistake = *draw.pick(MISTAKES);
        mistake(draw, &mut case["pod"]);
    }
    case
}

/// A container of the pod, perhaps an init container.
fn any_container<'a>(draw: &mut Draw, pod: &'a mut Value) -> &'a mut Value {
    let spec = &mut pod["spec"];
    let has_init = spec["initContainers"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    let list = if has_init && draw.percent(40) {
        "initContainers"
    } else {
        "containers"
    };
    let containers = spec[list].as_array_mut().unwrap();
    let index = draw.below(containers.len() as u64);
    &mut containers[usize::try_from(index).unwrap()]
}

fn quantity(draw: &mut Draw, pod: &mut Value) {
    let wrong = quantities::wrong(draw);
    let list = *draw.pick(LISTS);
    let name = *draw.pick(&["cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"]);
    any_container(draw, pod)["resources"][list][name] = wrong;
}

fn resource_name(draw: &mut Draw, pod: &mut Value) {
    let names = [
        "foo",
        "gpu",
        "pods",
        "storage",
        "nvidia.com/",
        "/gpu",
        "a/b/c",
        "NVIDIA.com/gpu",
        "",
        "requests.example.com/device",
        "requests.cpu",
        "kubernetes.io/foo",
        "cpu ",
        "Cpu",
        "hugepages-",
        "hugepages-2Mi",
        "hugepages-3M",
        "hugepages-x",
        "hugepages-0",
        "attachable-volumes-aws-ebs",
        "count/pods",
        "foo.kubernetes.io/bar",
        "example.com/requests.device",
        "requests.kubernetes.io/x",
        "nvidia.com/gpu-",
    ];
    let (list, name) = (*draw.pick(LISTS), *draw.pick(&names));
    let amount = draw.pick(&["1", "2Mi", "0"]);
    any_container(draw, pod)["resources"][list][name] = json!(amount);
}

fn request_without_limit(draw: &mut Draw, pod: &mut Value) {
    let name = *draw.pick(&["nvidia.com/gpu", "example.com/device", "hugepages-2Mi"]);
    let resources = &mut any_container(draw, pod)["resources"];
    resources["requests"][name] = json!("2Mi");
    if let Some(limits) = resources["limits"].as_object_mut() {
        limits.remove(name);
    }
}

fn request_above_limit(draw: &mut Draw, pod: &mut Value) {
    let name = *draw.pick(&[
        "cpu",
        "memory",
        "nvidia.com/gpu",
        "hugepages-2Mi",
        "ephemeral-storage",
    ]);
    let resources = &mut any_container(draw, pod)["resources"];
    let (request, limit) = *draw.pick(&[
        ("2", "1"),
        ("1001m", "1"),
        ("1", "2"),
        ("1", "1.0"),
        ("0", "1"),
    ]);
    resources["requests"][name] = json!(request);
    resources["limits"][name] = json!(limit);
}

fn part_of_a_device(draw: &mut Draw, pod: &mut Value) {
    let amount = *draw.pick(&[
        "500m", "0.5", "1.5", "1500m", "1e-1", "1n", "-1", "1.0", "1000m",
    ]);
    let name = *draw.pick(&[
        "nvidia.com/gpu",
        "example.com/device",
        "example.kubernetes.io/x",
    ]);
    any_container(draw, pod)["resources"]["limits"][name] = json!(amount);
}

fn pod_level(draw: &mut Draw, pod: &mut Value) {
    let list = *draw.pick(LISTS);
    let name = *draw.pick(&[
        "cpu",
        "memory",
        "nvidia.com/gpu",
        "ephemeral-storage",
        "foo",
        "hugepages-2Mi",
        "pods",
    ]);
    let amount = match draw.below(3) {
        0 => quantities::wrong(draw),
        1 => json!("1m"),
        _ => json!("1"),
    };
    pod["spec"]["resources"][list][name] = amount;
}

fn overhead(draw: &mut Draw, pod: &mut Value) {
    let name = *draw.pick(&[
        "cpu",
        "foo",
        "nvidia.com/gpu",
        "hugepages-2Mi",
        "a/b/c",
        "pods",
    ]);
    let amount = match draw.below(2) {
        0 => quantities::wrong(draw),
        _ => json!("500m"),
    };
    pod["spec"]["overhead"][name] = amount;
}

fn toleration(draw: &mut Draw, pod: &mut Value) {
    let wrong = [
        json!({"key": "", "operator": "Equal"}),
        json!({"value": "x"}),
        json!({}),
        json!({"key": "a", "operator": "Exists", "value": "x"}),
        json!({"operator": "Exists", "value": "x"}),
        json!({"key": draw.pick(KEYS), "operator": "Exists"}),
        json!({"key": "a", "value": draw.pick(VALUES)}),
        json!({"key": "a", "operator": "In"}),
        json!({"key": "a", "operator": "exists"}),
        json!({"key": "a", "operator": "Gt", "value": "5"}),
        json!({"key": "a", "operator": "Lt", "value": "x"}),
        json!({"key": "a", "effect": "NoRun"}),
        json!({"key": "a", "effect": "noschedule", "operator": "Exists"}),
        json!({"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}),
        json!({"key": "a", "tolerationSeconds": 1}),
        json!({"key": "a", "effect": "", "tolerationSeconds": 0}),
        json!({"key": "a", "effect": "PreferNoSchedule", "tolerationSeconds": -1}),
    ];
    let wrong = draw.pick(&wrong).clone();
    put(&mut pod["spec"]["tolerations"], wrong);
}

/// Adds an entry to a list, which may be missing.
fn put(list: &mut Value, entry: Value) {
    match list {
        Value::Array(list) => list.push(entry),
        _ => *list = json!([entry]),
    }
}

fn pair(draw: &mut Draw) -> (&'static str, &'static str) {
    match draw.percent(50) {
        true => (*draw.pick(KEYS), "x"),
        false => ("a", *draw.pick(VALUES)),
    }
}

fn node_selector(draw: &mut Draw, pod: &mut Value) {
    let (key, value) = pair(draw);
    pod["spec"]["nodeSelector"][key] = json!(value);
}

fn labels(draw: &mut Draw, pod: &mut Value) {
    let (key, value) = pair(draw);
    pod["metadata"]["labels"][key] = json!(value);
}

/// The terms of required node affinity, made if they are missing.
fn terms(pod: &mut Value) -> &mut Value {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    &mut pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]
}

fn term(draw: &mut Draw, pod: &mut Value) {
    *terms(pod) = draw.pick(&[json!([]), Value::Null, json!([{}])]).clone();
}

fn expression(draw: &mut Draw, pod: &mut Value) {
    let wrong = [
        json!({"key": "a", "operator": "In"}),
        json!({"key": "a", "operator": "NotIn", "values": []}),
        json!({"key": "a", "operator": "Exists", "values": ["x"]}),
        json!({"key": "a", "operator": "DoesNotExist", "values": [""]}),
        json!({"key": "a", "operator": "Gt"}),
        json!({"key": "a", "operator": "Lt", "values": ["1", "2"]}),
        json!({"key": "a", "operator": "Gt", "values": [draw.pick(VALUES)]}),
        json!({"key": "a", "operator": "Equal", "values": ["1"]}),
        json!({"key": "a", "operator": "", "values": ["1"]}),
        json!({"key": "a"}),
        json!({"key": draw.pick(KEYS), "operator": "Exists"}),
        json!({"key": "a", "operator": "In", "values": [draw.pick(VALUES)]}),
        json!({"key": "a", "operator": "NotIn", "values": ["x", draw.pick(VALUES)]}),
        json!({"operator": "Exists"}),
    ];
    let wrong = draw.pick(&wrong).clone();
    put(terms(pod), json!({"matchExpressions": [wrong]}));
}

fn field(draw: &mut Draw, pod: &mut Value) {
    let wrong = [
        json!({"key": "metadata.name", "operator": "In", "values": ["n0", "n1"]}),
        json!({"key": "metadata.name", "operator": "In", "values": []}),
        json!({"key": "metadata.name", "operator": "In"}),
        json!({"key": "metadata.name", "operator": "Exists"}),
        json!({"key": "metadata.name", "operator": "Gt", "values": ["1"]}),
        json!({"key": "metadata.uid", "operator": "In", "values": ["n0"]}),
        json!({"key": "", "operator": "In", "values": ["n0"]}),
        json!({"operator": "In", "values": ["n0"]}),
        json!({"key": "metadata.name", "operator": "", "values": ["n0"]}),
        json!({"key": "metadata.name", "operator": "In", "values": ["N_0"]}),
        json!({"key": "metadata.name", "operator": "NotIn", "values": ["a b"]}),
    ];
    let wrong = draw.pick(&wrong).clone();
    put(terms(pod), json!({"matchFields": [wrong]}));
}

/// A mistake in what only orders nodes.
fn preferred(draw: &mut Draw, pod: &mut Value) {
    let good = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]});
    let bad = json!({"matchExpressions": [{"key": "a", "operator": "In"}]});
    let wrong = [
        json!({"weight": 0, "preference": good}),
        json!({"weight": 101, "preference": good}),
        json!({"preference": good}),
        json!({"weight": 1, "preference": bad}),
        json!({"weight": 1}),
    ];
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let wrong = draw.pick(&wrong).clone();
    put(
        &mut pod["spec"]["affinity"]["nodeAffinity"][preferred],
        wrong,
    );
}

fn port(draw: &mut Draw, pod: &mut Value) {
    let wrong = [
        json!({"containerPort": 0}),
        json!({"containerPort": 65_536}),
        json!({"containerPort": -1}),
        json!({"hostPort": 80}),
        json!({"containerPort": 80, "hostPort": 65_536}),
        json!({"containerPort": 80, "hostPort": -1}),
        json!({"containerPort": 80, "hostPort": 80, "protocol": "ICMP"}),
        json!({"containerPort": 80, "protocol": "tcp"}),
        json!({"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0"}),
        json!({"containerPort": 80, "hostPort": 80, "hostIP": "010.0.0.1"}),
        json!({"containerPort": 80, "hostIP": "localhost"}),
        json!({"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1 "}),
        json!({"containerPort": "80"}),
    ];
    let container = any_container(draw, pod);
    let wrong = draw.pick(&wrong).clone();
    put(&mut container["ports"], wrong);
    match draw.below(4) {
        // Two of one pod cannot share a port of the host.
        0 => {
            let port = json!({"containerPort": 90, "hostPort": 90});
            container["ports"] = json!([port, port]);
        }
        1 => {
            container["ports"] = json!([{"containerPort": 90, "hostPort": 91}]);
            pod["spec"]["hostNetwork"] = json!(true);
        }
        _ => {}
    }
}

fn deadline(draw: &mut Draw, pod: &mut Value) {
    let seconds = draw.pick(&[0, -1, 1, 2_147_483_647, 2_147_483_648_i64]);
    pod["spec"]["activeDeadlineSeconds"] = json!(seconds);
}

fn preemption_policy(draw: &mut Draw, pod: &mut Value) {
    let policy = draw.pick(&["", "Never", "never", "Always", "PreemptLowerPriority"]);
    pod["spec"]["preemptionPolicy"] = json!(policy);
}

fn restart_policy(draw: &mut Draw, pod: &mut Value) {
    let policy = draw.pick(&["", "Never", "never", "Sometimes", "OnFailure"]);
    pod["spec"]["restartPolicy"] = json!(policy);
}

/// A restart policy of one container.
fn sidecar(draw: &mut Draw, pod: &mut Value) {
    let policy = *draw.pick(&["Always", "Never", "OnFailure", "Sometimes", ""]);
    any_container(draw, pod)["restartPolicy"] = json!(policy);
}
