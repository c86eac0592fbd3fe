//! HAMi's device plugin, and the kubelet that asks it, on a node of a real API server. What the
//! plugin makes of annotations is what the model of `gpu-batch-testing` does, which is held against
//! the answers of HAMi's own code.

use std::collections::BTreeMap;

use gpu_batch_testing::{BIND_PHASE, CARD_LOCK, DevicePlugin, Given, ServedPod};
use serde_json::{Value, json};

use super::{INSTANCES, unlock};
use crate::cluster::Cluster;

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
    let Some(text) = annotations.get(INSTANCES) else {
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
pub(super) async fn serve(cluster: &Cluster, node: &str) -> bool {
    let pods = cluster.list("/api/v1/pods").await.unwrap();
    let path = format!("/api/v1/nodes/{node}");
    let annotations = annotations_of(&cluster.get(&path).await.unwrap());
    let unserved = |pod: &&Value| {
        pod["spec"]["nodeName"] == node
            && pod["metadata"]["annotations"][BIND_PHASE] == "allocating"
    };
    let waiting: Vec<&Value> = pods.iter().filter(unserved).collect();
    assert!(
        waiting.len() <= 1,
        "bound to {node} at a time: {waiting:#?}"
    );
    let Some(pod) = waiting.first() else {
        return false;
    };
    let Some(lock) = annotations.get(CARD_LOCK) else {
        panic!("bound without a lock: {pod:#}");
    };
    let (time, _) = lock.split_once(',').unwrap();
    assert!(time.len() == 20 && time.ends_with('Z'), "{lock}");
    assert_eq!(pod["metadata"]["annotations"]["hami.io/vgpu-node"], node);
    assert!(pod["metadata"]["annotations"]["hami.io/bind-time"].is_string());
    let mut plugin = DevicePlugin {
        node: node.into(),
        lock: Some(lock.clone()),
        pods: pods.iter().map(served).collect(),
        is_mig: annotations
            .values()
            .any(|value| value.contains(r#""mode":"mig""#)),
    };
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
    unlock(cluster, node).await;
    true
}
