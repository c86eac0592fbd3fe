//! Features that nodes declare, and pods that need them.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{each, with, world};

const DECLARED: &[&str] = &[
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "ExtendWebSocketsToKubelet",
    "SomethingElse",
];

/// Nodes that declare some features, and a pod that may need one.
pub(crate) fn case(draw: &mut Draw) -> Value {
    with(draw, add)
}

fn add(draw: &mut Draw, case: &mut Value) {
    for node in each(case, "nodes") {
        let mut declared = DECLARED.to_vec();
        declared.retain(|_| draw.percent(60));
        if draw.percent(85) {
            node["status"]["declaredFeatures"] = json!(declared);
        }
    }
    let spec = &mut case["pod"]["spec"];
    for (field, value) in [("hostNetwork", true), ("hostUsers", false)] {
        if draw.percent(60) {
            spec[field] = json!(value ^ draw.percent(15));
        }
    }
    spec["containers"] = json!([container(draw, 0), container(draw, 1)]);
    if draw.percent(40) {
        spec["initContainers"] = json!([container(draw, 2)]);
    }
}

/// A container with rules for its exit, perhaps.
fn container(draw: &mut Draw, index: usize) -> Value {
    let mut container = world::container(index);
    if draw.percent(35) {
        let action = *draw.pick(&["Restart", "RestartAllContainers"]);
        container["restartPolicy"] = json!("Never");
        container["restartPolicyRules"] = json!([{
            "action": action,
            "exitCodes": {"operator": "In", "values": [42]},
        }]);
    }
    container
}
