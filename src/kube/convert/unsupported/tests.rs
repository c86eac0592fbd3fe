use super::*;
use serde_json::{Value, json};

fn check(pod: Value, expected: &[&str]) {
    let text = pod.to_string();
    let fields = fields(&serde_json::from_value(pod).unwrap());
    let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
    assert_eq!(fields, expected, "{text}");
}

fn check_spec(spec: Value, expected: &[&str]) {
    check(json!({"spec": spec}), expected);
}

#[test]
fn claims_of_devices_and_disks_that_no_driver_takes_are_named() {
    check_spec(
        json!({"resourceClaims": [{"name": "gpu"}], "resources": {"claims": [{}]}, "containers": [
            {"resources": {"claims": [{"name": "gpu"}]}}
        ]}),
        &[
            "spec.resourceClaims",
            "spec.resources.claims",
            "spec.containers[0].resources.claims",
        ],
    );
    check_spec(
        json!({"volumes": [
            {"name": "a", "emptyDir": {}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "x"}},
            {"name": "c", "ephemeral": {}},
            {"name": "d", "gcePersistentDisk": {}},
            {"name": "e", "iscsi": {}},
            {"name": "f", "persistentVolumeClaim": null, "configMap": {}},
            {"name": "g", "azureDisk": {"diskURI": "https://a", "kind": "Dedicated"}},
            {"name": "h", "awsElasticBlockStore": null},
        ]}),
        &["spec.volumes[6].azureDisk"],
    );
}

#[test]
fn priorities_and_rules_about_cards_are_named() {
    check_spec(
        json!({
            "initContainers": [{"resources": {"requests": {"nvidia.com/priority": "1"}}}],
            "containers": [
                {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
                {"resources": {
                    "requests": {"nvidia.com/gpumem": "3000"},
                    "limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"},
                }},
            ],
        }),
        &["spec.initContainers[0].resources.requests[nvidia.com/priority]"],
    );
    check_spec(
        json!({"containers": [{}, {"resources": {"limits": {
            "nvidia.com/gpu": "1", "nvidia.com/gpucores": "3", "nvidia.com/priority": "1",
        }}}]}),
        &["spec.containers[1].resources.limits[nvidia.com/priority]"],
    );
    check(
        json!({"metadata": {"annotations": {
            "nvidia.com/vgpu-mode": "mps",
            "gpu-fraction": "0.5",
            "hami.io/node-scheduler-policy": "binpack",
            "nvidia.com/use-gputype": "A100",
            "hami.io/gpu-scheduler-policy": "mutex,binpack",
            "nvidia.com/numa-bind": "true",
        }}}),
        &["metadata.annotations[nvidia.com/vgpu-mode]: `mps`"],
    );
}

#[test]
fn rules_about_cards_are_named_where_no_parts_of_cards_are_asked_for() {
    let rules = json!({
        "nvidia.com/use-gputype": "A100",
        "hami.io/gpu-scheduler-policy": "spread",
        "nvidia.com/numa-bind": "true",
    });
    let whole = json!({"nvidia.com/gpu": "1"});
    let part = json!({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "10"});
    let named = [
        "metadata.annotations[nvidia.com/use-gputype]",
        "metadata.annotations[hami.io/gpu-scheduler-policy]",
        "metadata.annotations[nvidia.com/numa-bind]",
    ];
    for (limits, expected) in [(json!({}), &named[..]), (whole, &named), (part, &[])] {
        let spec = json!({"containers": [{"resources": {"limits": limits}}]});
        check(
            json!({"metadata": {"annotations": rules}, "spec": spec}),
            expected,
        );
    }
    check(
        json!({"metadata": {"annotations": {"nvidia.com/numa-bind": "false"}}}),
        &[],
    );
}

#[test]
fn the_reference_to_a_workload_of_an_older_kubernetes_is_named() {
    check_spec(json!({"workloadRef": {"name": "w"}}), &["spec.workloadRef"]);
}
