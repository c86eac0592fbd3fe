use super::*;
use serde_json::{Value, json};

fn of(spec: Value) -> Vec<String> {
    let spec: PodSpec = serde_json::from_value(spec).unwrap();
    let aligned = aligned(&spec);
    let containers = aligned.iter().map(|container| {
        let amounts = container.amounts.iter();
        let amounts = amounts.map(|(name, amount)| format!("{name}={amount}"));
        format!(
            "{:?} {}",
            container.role,
            amounts.collect::<Vec<_>>().join(" ")
        )
    });
    containers.collect()
}

fn container(limits: Value) -> Value {
    json!({"name": "c", "resources": {"limits": limits}})
}

#[test]
fn devices_are_aligned_whatever_the_quality_of_service() {
    let gpus = json!({"nvidia.com/gpu": "2", "cpu": "4", "ephemeral-storage": "1Gi"});
    assert_eq!(
        of(json!({"containers": [container(gpus)]})),
        ["Main nvidia.com/gpu=2"]
    );
    let sorts = json!({
        "initContainers": [
            container(json!({"nvidia.com/gpu": "1"})),
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"a.com/b": "1"}}},
        ],
        "containers": [container(json!({"cpu": "1"})), container(json!({"nvidia.com/gpu": 0}))],
    });
    assert_eq!(of(sorts), ["Init nvidia.com/gpu=1", "Sidecar a.com/b=1"]);
}

#[test]
fn guaranteed_pods_have_whole_cpus_and_memory_of_their_own() {
    let whole = json!({"cpu": "4", "memory": "1Ki", "hugepages-2Mi": "2Mi"});
    let asked = ["Main cpu=4000 hugepages-2Mi=2097152 memory=1024"];
    assert_eq!(of(json!({"containers": [container(whole.clone())]})), asked);
    let part = json!({"cpu": "1500m", "memory": "1Ki"});
    assert_eq!(
        of(json!({"containers": [container(part.clone())]})),
        ["Main memory=1024"]
    );
    // One container that is not limited takes it from all.
    let beside = json!({"containers": [container(whole.clone()), container(json!({"cpu": "1"}))]});
    assert_eq!(of(beside), Vec::<String>::new());
    let less = json!({"name": "c", "resources": {"limits": whole, "requests": {"cpu": "3"}}});
    assert_eq!(of(json!({"containers": [less]})), Vec::<String>::new());
    let of_pod = json!({"resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
                        "containers": [container(part)]});
    assert_eq!(of(of_pod), Vec::<String>::new());
}
