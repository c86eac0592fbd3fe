//! What kube-scheduler prefers for pods that state nothing: nodes that have their images, and few
//! pods of the same controller.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{each, relations, world};

const ZONE: &str = "topology.kubernetes.io/zone";
const UID: &str = "0b9f6f0c-13a7-4f5e-8a2b-00ff00aa1234";

/// Images as pods name them, as nodes do, and their sizes in MiB.
const IMAGES: &[(&str, &str, u64)] = &[
    (
        "registry.example/image",
        "registry.example/image:latest",
        700,
    ),
    (
        "registry.example/image:v1",
        "registry.example/image:v1",
        2_400,
    ),
    (
        "other.example:5000/small",
        "other.example:5000/small:latest",
        24,
    ),
    (
        "other.example:5000/x@sha256:0123",
        "other.example:5000/x@sha256:0123",
        1_100,
    ),
    ("tiny", "tiny:latest", 5),
];

/// Controllers whose pods spread by default, and one whose do not.
const OWNERS: &[(&str, &str)] = &[
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("v1", "ReplicationController"),
    ("batch/v1", "Job"),
];

/// Nodes with images in zones, and a pod of a controller that has other pods.
pub(crate) fn case(draw: &mut Draw) -> Value {
    let mut case = relations::of_pods(draw);
    case["defaults"] = json!(true);
    for node in each(&mut case, "nodes") {
        if draw.percent(80) {
            let roomy = json!({"cpu": "64", "memory": "2Ti", "pods": "110"});
            node["status"]["allocatable"] = roomy;
        }
        if draw.percent(80) {
            node["metadata"]["labels"][ZONE] = json!(draw.pick(&["1", "2"]));
        }
        let images = IMAGES
            .iter()
            .filter(|_| draw.percent(50))
            .map(|(_, name, size)| {
                let digest = format!("{}@sha256:abc", name.split('@').next().unwrap());
                json!({"names": [digest, name], "sizeBytes": size << 20})
            });
        node["status"]["images"] = images.collect();
    }
    if draw.percent(80) {
        containers(draw, &mut case["pod"]);
    }
    if draw.percent(70) {
        owned(draw, &mut case);
    }
    case
}

/// Gives a pod containers of several images, and perhaps a volume of one.
fn containers(draw: &mut Draw, pod: &mut Value) {
    for (list, least) in [("containers", 1), ("initContainers", 0)] {
        let count = least + draw.below(3);
        let containers = (0..count).map(|index| {
            let mut container = world::container(usize::try_from(index).unwrap());
            container["name"] = json!(format!("{}-{index}", list.to_lowercase()));
            container["image"] = json!(draw.pick(IMAGES).0);
            container
        });
        let containers: Vec<Value> = containers.collect();
        if !containers.is_empty() {
            pod["spec"][list] = json!(containers);
        }
    }
    if draw.percent(20) {
        let reference = draw.pick(IMAGES).0;
        pod["spec"]["volumes"] = json!([{"name": "data", "image": {"reference": reference}}]);
    }
}

/// Has a controller own the pod and some of the others.
fn owned(draw: &mut Draw, case: &mut Value) {
    let (version, kind) = *draw.pick(OWNERS);
    let labels = json!({"app": "owned"});
    let owner = json!([{"apiVersion": version, "kind": kind, "name": "owner", "uid": UID,
        "controller": true}]);
    let belong = |pod: &mut Value| {
        pod["metadata"]["labels"]["app"] = json!("owned");
        pod["metadata"]["ownerReferences"] = owner.clone();
        pod["spec"]["schedulerName"] = json!("gpu-batch");
    };
    belong(&mut case["pod"]);
    for pod in each(case, "pods") {
        if pod["metadata"]["namespace"] == "default" && draw.percent(70) {
            belong(pod);
        }
    }
    let selector = match kind {
        "ReplicationController" => labels.clone(),
        _ => json!({"matchLabels": labels}),
    };
    let mut spec = json!({"selector": selector, "template": {
        "metadata": {"labels": labels}, "spec": {"containers": [world::container(0)]}}});
    if kind != "Job" {
        spec["replicas"] = json!(0);
        case["objects"] = json!([{"apiVersion": version, "kind": kind,
            "metadata": {"name": "owner", "namespace": "default", "uid": UID}, "spec": spec}]);
    }
    if draw.percent(15) {
        let constraint = relations::constraint(draw, "kubernetes.io/hostname");
        case["pod"]["spec"]["topologySpreadConstraints"] = json!([constraint]);
    }
}
