//! What pods ask for: containers, init containers, sidecars, the pod as a whole, overhead.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{each, of, quantities, world};

/// Pods that ask for amounts.
pub(crate) fn case(draw: &mut Draw) -> Value {
    let nodes = world::nodes(draw);
    let pods = world::bound(draw, &nodes, pod);
    let mut judged = pod(draw);
    judged["metadata"] = world::pod()["metadata"].clone();
    of(nodes, pods, judged)
}

/// A case of resources in which bound pods are being resized.
pub(crate) fn case_with_resizes(draw: &mut Draw) -> Value {
    let mut case = case(draw);
    for pod in each(&mut case, "pods") {
        resize(draw, pod);
    }
    case
}

fn pod(draw: &mut Draw) -> Value {
    let mut pod = world::pod();
    let spec = &mut pod["spec"];
    let mut amount: fn(&mut Draw) -> Value = quantities::fine_cpu;
    if draw.percent(25) {
        spec["resources"] = of_pod(draw);
        amount = quantities::cpu;
    }
    let containers = 1 + usize::try_from(draw.below(3)).unwrap();
    spec["containers"] = (0..containers)
        .map(|index| container(draw, index, amount))
        .collect();
    if draw.percent(50) {
        let count = usize::try_from(draw.below(4)).unwrap();
        let mut init: Vec<Value> = (10..10 + count)
            .map(|at| container(draw, at, amount))
            .collect();
        for container in &mut init {
            if draw.percent(50) {
                container["restartPolicy"] = json!("Always");
            }
        }
        spec["initContainers"] = json!(init);
    }
    if draw.percent(20) {
        let overhead = [
            ("cpu", 80, quantities::cpu(draw)),
            ("memory", 60, quantities::bytes(draw)),
            ("nvidia.com/gpu", 5, json!("1")),
        ];
        spec["overhead"] = draw.some_of(&overhead);
    }
    pod
}

fn container(draw: &mut Draw, index: usize, cpu: fn(&mut Draw) -> Value) -> Value {
    let mut container = world::container(index);
    if draw.percent(85) {
        container["resources"] = resources(draw, cpu);
    }
    container
}

/// Resources that the API server mostly lets in.
fn resources(draw: &mut Draw, cpu: fn(&mut Draw) -> Value) -> Value {
    let mut resources = json!({});
    let native = [("cpu", 60), ("memory", 50), ("ephemeral-storage", 15)];
    for (name, percent) in native {
        if draw.percent(percent) {
            let amount = match name {
                "cpu" => cpu(draw),
                _ => quantities::bytes(draw),
            };
            let (request, limit) = match draw.below(5) {
                0 => (None, Some(amount)),
                1 => (Some(amount.clone()), Some(amount)),
                2 => (Some(amount), Some(json!("3E"))),
                _ => (Some(amount), None),
            };
            set(&mut resources, "requests", name, request);
            set(&mut resources, "limits", name, limit);
        }
    }
    let devices = [
        ("nvidia.com/gpu", 30),
        ("example.com/device", 15),
        ("hugepages-2Mi", 10),
        ("example.kubernetes.io/device", 3),
    ];
    for (name, percent) in devices {
        if draw.percent(percent) {
            let amount = match name {
                "hugepages-2Mi" => json!(*draw.pick(&["0", "2Mi", "4Mi", "512Mi", "2097152"])),
                _ => quantities::count(draw),
            };
            let asks = draw.percent(60).then(|| amount.clone());
            set(&mut resources, "requests", name, asks);
            set(&mut resources, "limits", name, Some(amount));
        }
    }
    resources
}

fn set(resources: &mut Value, list: &str, name: &str, amount: Option<Value>) {
    if let Some(amount) = amount {
        resources[list][name] = amount;
    }
}

/// Resources of the pod as a whole.
fn of_pod(draw: &mut Draw) -> Value {
    let large = draw.percent(60);
    let some = |draw: &mut Draw| {
        let cpu = if large {
            json!("8")
        } else {
            quantities::cpu(draw)
        };
        let memory = if large {
            json!("2Ti")
        } else {
            quantities::bytes(draw)
        };
        let amounts = [
            ("cpu", 60, cpu),
            ("memory", 60, memory),
            ("hugepages-2Mi", 8, json!("4Mi")),
        ];
        draw.some_of(&amounts)
    };
    let mut resources = json!({});
    for (list, percent) in [("requests", 75), ("limits", 60)] {
        if draw.percent(percent) {
            resources[list] = some(draw);
        }
    }
    resources
}

/// Writes what the kubelet says of a pod whose resources change in place.
fn resize(draw: &mut Draw, pod: &mut Value) {
    let mut statuses = |list: &str| -> Vec<Value> {
        let names: Vec<Value> = pod["spec"][list]
            .as_array()
            .into_iter()
            .flatten()
            .map(|container| container["name"].clone())
            .collect();
        let mut statuses = Vec::new();
        for name in names {
            if draw.percent(70) {
                let mut status = json!({"name": name, "image": "", "imageID": ""});
                let parts = [("resources", 80), ("allocatedResources", 60)];
                for (part, percent) in parts {
                    if draw.percent(percent) {
                        status[part] = status_amounts(draw, part);
                    }
                }
                statuses.push(status);
            }
        }
        statuses
    };
    let (containers, init) = (statuses("containers"), statuses("initContainers"));
    pod["status"]["containerStatuses"] = json!(containers);
    pod["status"]["initContainerStatuses"] = json!(init);
    if draw.percent(40) {
        let reason = draw.pick(&["Infeasible", "Deferred"]);
        pod["status"]["conditions"] =
            json!([{"type": "PodResizePending", "status": "True", "reason": reason}]);
    }
    if draw.percent(15) {
        pod["status"]["allocatedResources"] = status_amounts(draw, "allocatedResources");
    }
    if draw.percent(15) {
        pod["status"]["resources"] = status_amounts(draw, "resources");
    }
}

fn status_amounts(draw: &mut Draw, part: &str) -> Value {
    let amounts = [
        ("cpu", 70, quantities::cpu(draw)),
        ("memory", 70, quantities::bytes(draw)),
    ];
    let amounts = draw.some_of(&amounts);
    match part {
        "resources" => json!({"requests": amounts}),
        _ => amounts,
    }
}
