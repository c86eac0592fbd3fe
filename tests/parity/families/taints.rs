//! Taints and tolerations, cordons, and nodes that are not ready.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{each, with};

const KEYS: &[&str] = &[
    "a",
    "b",
    "example.com/dedicated",
    "node.kubernetes.io/unschedulable",
];
const VALUES: &[&str] = &["", "x", "y", "5", "10"];
const EFFECTS: &[&str] = &["NoSchedule", "NoExecute", "PreferNoSchedule"];

/// Tainted nodes, and a pod with tolerations.
pub(crate) fn case(draw: &mut Draw) -> Value {
    with(draw, add)
}

/// Taints nodes, and lets the pod tolerate some of it.
pub(crate) fn add(draw: &mut Draw, case: &mut Value) {
    for node in each(case, "nodes") {
        let mut taints = draw.fewer(4, taint);
        if draw.percent(15) {
            node["spec"]["unschedulable"] = json!(true);
            // A controller adds the taint, a moment later.
            if draw.percent(60) {
                taints.push(of_node("unschedulable", "NoSchedule"));
            }
        }
        if draw.percent(6) {
            silence(draw, node, &mut taints);
        }
        node["spec"]["taints"] = json!(taints);
    }
    case["pod"]["spec"]["tolerations"] = draw.list(6, toleration);
}

/// A node is not ready, as its condition and its taints say.
fn silence(draw: &mut Draw, node: &mut Value, taints: &mut Vec<Value>) {
    let (status, key) = *draw.pick(&[("False", "not-ready"), ("Unknown", "unreachable")]);
    node["status"]["conditions"] = json!([{"type": "Ready", "status": status}]);
    taints.push(of_node(key, "NoSchedule"));
    taints.push(of_node(key, "NoExecute"));
}

fn of_node(key: &str, effect: &str) -> Value {
    json!({"key": format!("node.kubernetes.io/{key}"), "effect": effect})
}

fn taint(draw: &mut Draw) -> Value {
    let mut taint = json!({"key": draw.pick(KEYS), "effect": draw.pick(EFFECTS)});
    if draw.percent(80) {
        taint["value"] = json!(draw.pick(VALUES));
    }
    taint
}

fn toleration(draw: &mut Draw) -> Value {
    let mut toleration = json!({});
    let exists = draw.percent(45);
    if exists {
        toleration["operator"] = json!("Exists");
    } else if draw.percent(60) {
        toleration["operator"] = json!(draw.pick(&["Equal", ""]));
    }
    if !exists || draw.percent(75) {
        toleration["key"] = json!(draw.pick(KEYS));
    } else if draw.percent(40) {
        toleration["key"] = json!("");
    }
    if !exists && draw.percent(80) {
        toleration["value"] = json!(draw.pick(VALUES));
    }
    if draw.percent(60) {
        toleration["effect"] = json!(draw.pick(&["NoSchedule", "NoExecute", ""]));
    }
    // Of other effects the API server refuses it.
    if toleration["effect"] == "NoExecute" && draw.percent(50) {
        toleration["tolerationSeconds"] = json!(draw.pick(&[-1, 0, 300]));
    }
    toleration
}
