//! The plain part of every case: nodes, and pods on them.

use serde_json::{Value, json};

use super::draw::Draw;
use super::quantities;

/// The names that nodes may have; pods may name others, too.
pub(crate) const NODES: &[&str] = &["n0", "n1", "n2", "n3", "n0.zone.example"];

/// One to four nodes.
pub(crate) fn nodes(draw: &mut Draw) -> Vec<Value> {
    let count = 1 + draw.below(4);
    let first = draw.below(2);
    (first..first + count)
        .map(|index| node(draw, NODES[usize::try_from(index).unwrap()]))
        .collect()
}

fn node(draw: &mut Draw, name: &str) -> Value {
    let amounts = match draw.percent(55) {
        true => roomy(),
        false => tight(draw),
    };
    // Without `allocatable`, the capacity counts.
    let status = match draw.below(12) {
        0 => json!({"capacity": amounts}),
        1 => json!({"capacity": amounts, "allocatable": {}}),
        _ => json!({"capacity": {"cpu": "64", "pods": "110"}, "allocatable": amounts}),
    };
    let mut node = json!({
        "metadata": {"name": name, "uid": format!("node-{name}"),
                     "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": status,
    });
    let ready = json!([{"type": "Ready", "status": "True"}]);
    node["status"]["conditions"] = ready;
    node
}

/// What most pods find room in.
fn roomy() -> Value {
    json!({
        "cpu": "64", "memory": "2Ti", "pods": "110", "ephemeral-storage": "2Ti",
        "nvidia.com/gpu": "16", "example.com/device": "16", "hugepages-2Mi": "4Gi",
        "example.kubernetes.io/device": "16",
    })
}

/// Amounts near those that pods ask for, and some that are missing.
fn tight(draw: &mut Draw) -> Value {
    let pods = *draw.pick(&["0", "1", "2", "3000m", "110", "110"]);
    let pages = *draw.pick(&["0", "4Mi", "512Mi", "1Gi"]);
    let amounts = [
        ("cpu", 90, quantities::fine_cpu(draw)),
        ("cpu", 40, json!("4")),
        ("memory", 90, quantities::bytes(draw)),
        ("memory", 40, json!("64Gi")),
        ("pods", 95, json!(pods)),
        ("ephemeral-storage", 60, quantities::bytes(draw)),
        ("nvidia.com/gpu", 75, quantities::count(draw)),
        ("example.com/device", 60, quantities::count(draw)),
        ("hugepages-2Mi", 60, json!(pages)),
        ("example.kubernetes.io/device", 30, quantities::count(draw)),
    ];
    draw.some_of(&amounts)
}

/// A pod, without a node, of a container that asks for nothing.
pub(crate) fn pod() -> Value {
    json!({
        "metadata": {"name": "judged", "namespace": "default"},
        "spec": {"schedulerName": "gpu-batch", "containers": [container(0)]},
    })
}

/// A container that asks for nothing.
pub(crate) fn container(index: usize) -> Value {
    json!({"name": format!("c{index}"), "image": "registry.example/image"})
}

/// Makes a pod one of those that are bound, perhaps to a node that there is not.
pub(crate) fn bind(draw: &mut Draw, mut pod: Value, index: usize, nodes: &[Value]) -> Value {
    let node = match draw.below(12) {
        0 => json!("gone"),
        _ => draw.pick(nodes)["metadata"]["name"].clone(),
    };
    let phases = [
        "Running",
        "Running",
        "Running",
        "Pending",
        "Succeeded",
        "Failed",
        "Unknown",
    ];
    pod["metadata"] = json!({
        "name": format!("bound-{index}"),
        "namespace": draw.pick(&["default", "default", "other"]),
        "uid": format!("uid-{index}"),
    });
    if draw.percent(15) {
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-01T10:00:00Z");
    }
    pod["spec"]["nodeName"] = node;
    pod["spec"]["schedulerName"] = json!(draw.pick(&["gpu-batch", "default-scheduler", "other"]));
    pod["status"] = json!({"phase": draw.pick(&phases)});
    pod
}

/// Fewer than six pods on these nodes, each made by `each`.
pub(crate) fn bound(
    draw: &mut Draw,
    nodes: &[Value],
    mut each: impl FnMut(&mut Draw) -> Value,
) -> Vec<Value> {
    let count = usize::try_from(draw.below(6)).unwrap();
    (0..count)
        .map(|index| {
            let pod = each(draw);
            bind(draw, pod, index, nodes)
        })
        .collect()
}
