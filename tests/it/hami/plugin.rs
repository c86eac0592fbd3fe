//! HAMi's device plugin, and the kubelet that asks it, on a node of a real API server. What the
//! plugin makes of annotations is what the model of `gpu-batch-testing` does, which is held against
//! the answers of HAMi's own code.

use std::collections::BTreeMap;

use gpu_batch_testing::{BIND_PHASE, CARD_LOCK, DevicePlugin, Given, ServedPod};
use serde_json::{Value, json};

use crate::cluster::Cluster;

const RESERVED: &str = "hami.io/vgpu-mig-allocations";

type Annotations = BTreeMap<String, String>;

fn annotations_of(object: &Value) -> Annotations {
    serde_json::from_value(object["metadata"]["annotations"].clone()).unwrap_or_default()
}

/// How many slots each container asks for, init containers first.
fn asked(pod: &Value) -> Vec<usize> {
    let kinds = ["initContainers", "containers"].into_iter();
    let containers = kinds.flat_map(|kind| pod["spec"][kind].as_array().into_iter().flatten());
    let asked = containers.map(|container| {
        let slots = container["resources"]["limits"]["nvidia.com/gpu"].as_str();
        slots.map_or(0, |slots| slots.parse().unwrap())
    });
    asked.collect()
}

/// The places of the containers for which instances of MIG are reserved.
fn reserved(annotations: &Annotations) -> Vec<usize> {
    let Some(text) = annotations.get(RESERVED) else {
        return Vec::new();
    };
    let listed: Vec<Value> = serde_json::from_str(text).unwrap();
    let places = listed
        .iter()
        .map(|of| of["containerIndex"].as_u64().unwrap_or(0));
    places
        .map(|place| usize::try_from(place).unwrap())
        .collect()
}

fn served(pod: &Value) -> ((String, String), ServedPod) {
    let text = |key: &str| pod["metadata"][key].as_str().unwrap().to_owned();
    let annotations = annotations_of(pod);
    let served = ServedPod {
        node: pod["spec"]["nodeName"].as_str().map(str::to_owned),
        is_pending: pod["status"]["phase"] == "Pending",
        containers: asked(pod).len(),
        reserved: Some(reserved(&annotations)),
        annotations,
    };
    ((text("namespace"), text("name")), served)
}

/// A kubelet asks the plugin of its node for the cards of the pod that is bound and has none yet,
/// one container after the other. Returns whether there was such a pod.
pub(super) async fn serve(cluster: &Cluster, name: &str) -> bool {
    let pods = cluster.list("/api/v1/pods").await.unwrap();
    let path = format!("/api/v1/nodes/{name}");
    let node = cluster.get(&path).await.unwrap();
    let annotations = annotations_of(&node);
    let unserved = |pod: &&Value| {
        pod["spec"]["nodeName"] == name
            && pod["metadata"]["annotations"][BIND_PHASE] == "allocating"
    };
    let waiting: Vec<&Value> = pods.iter().filter(unserved).collect();
    assert!(
        waiting.len() <= 1,
        "bound to {name} at a time: {waiting:#?}"
    );
    let Some(pod) = waiting.first() else {
        return false;
    };
    let mut plugin = DevicePlugin {
        node: name.into(),
        lock: annotations.get(CARD_LOCK).cloned(),
        pods: pods.iter().map(served).collect(),
        is_mig: annotations
            .values()
            .any(|value| value.contains(r#""mode":"mig""#)),
    };
    assert!(plugin.lock.is_some(), "bound without a lock: {pod:#}");
    for (container, slots) in asked(pod).into_iter().enumerate() {
        if slots == 0 {
            continue;
        }
        let given = plugin.allocate(&[slots]);
        let is_for = |given: &Given| given.container == container && given.cards.len() == slots;
        let is_given = given
            .as_deref()
            .is_ok_and(|given| given.len() == 1 && is_for(&given[0]));
        assert!(is_given, "container {container}: {given:?}: {pod:#}");
    }
    let (key, before) = served(pod);
    let mut now = plugin.pods.remove(&key).unwrap();
    assert_eq!(now.annotations[BIND_PHASE], "success", "{pod:#}");
    assert_eq!(plugin.lock, None, "{pod:#}");
    let (namespace, name) = key;
    now.annotations
        .retain(|key, value| before.annotations.get(key) != Some(value));
    let changed = json!({"metadata": {"annotations": now.annotations}});
    let of_pod = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    cluster.merge(&of_pod, &changed).await;
    let unlocked = json!({"metadata": {"annotations": {CARD_LOCK: null}}});
    cluster.merge(&path, &unlocked).await;
    true
}
