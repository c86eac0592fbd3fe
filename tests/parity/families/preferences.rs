//! What orders nodes and keeps pods off none: preferred affinity to nodes and to pods, spread with
//! ScheduleAnyway, and taints with PreferNoSchedule.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{affinity, each, relations};

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Labelled and tainted nodes, labelled pods on them, and a pod with preferences.
pub(crate) fn case(draw: &mut Draw) -> Value {
    let mut case = relations::of_pods(draw);
    for node in each(&mut case, "nodes") {
        // Most nodes fit, so that there is something to order.
        if draw.percent(80) {
            let roomy = json!({"cpu": "64", "memory": "2Ti", "pods": "110"});
            node["status"]["allocatable"] = roomy;
        }
        for key in &relations::KEYS[..2] {
            if draw.percent(85) {
                node["metadata"]["labels"][*key] = json!(draw.pick(&["1", "2", ""]));
            }
        }
    }
    for pod in each(&mut case, "pods") {
        relations::labels(draw, pod);
        if draw.percent(30) {
            let count = 1 + draw.below(2);
            let terms = draw.several(count, relations::term);
            pod["spec"]["affinity"]["podAffinity"][REQUIRED] = terms.into();
        }
    }
    relations::labels(draw, &mut case["pod"]);
    add(draw, &mut case);
    case
}

/// Adds preferences to the pods, and taints to the nodes.
pub(crate) fn add(draw: &mut Draw, case: &mut Value) {
    let namespaces = ["default", "other", "third"].map(|name| {
        let team = draw.pick(&["x", "y"]);
        json!({"metadata": {"name": name, "labels": {"team": team}}})
    });
    case["namespaces"] = namespaces.into_iter().collect();
    let sorts = draw.below(16);
    if sorts & 1 > 0 {
        for node in each(case, "nodes") {
            let taints = draw.fewer(4, |draw| {
                let (key, value) = (draw.pick(&["a", "b"]), draw.pick(&["x", "y"]));
                json!({"key": key, "value": value, "effect": "PreferNoSchedule"})
            });
            if node["spec"]["taints"].is_null() {
                node["spec"]["taints"] = json!(taints);
            }
        }
        if case["pod"]["spec"]["tolerations"].is_null() {
            let effect = draw.pick(&["PreferNoSchedule", "", "NoSchedule"]);
            let operator = draw.pick(&["Exists", "Equal"]);
            let mut toleration = json!({"key": "a", "operator": operator, "effect": effect});
            if toleration["operator"] == "Equal" {
                toleration["value"] = json!("x");
            }
            case["pod"]["spec"]["tolerations"] = json!([toleration]);
        }
    }
    let pod = &mut case["pod"];
    if sorts & 2 > 0 {
        let preferred = draw.list(6, |draw| {
            let weight = weight(draw, 60);
            // Few terms that are drawn freely hold of any node.
            let term = match draw.percent(80) {
                true => {
                    let (key, value) = (draw.pick(&relations::KEYS[..2]), draw.pick(&["1", "2"]));
                    let asked = json!({"key": key, "operator": "In", "values": [value]});
                    json!({"matchExpressions": [asked]})
                }
                false => affinity::term(draw),
            };
            json!({"weight": weight, "preference": term})
        });
        pod["spec"]["affinity"]["nodeAffinity"][PREFERRED] = preferred;
    }
    if sorts & 4 > 0 {
        of_pods(draw, pod, 60);
        for other in each(case, "pods") {
            if draw.percent(40) {
                // The oracle judges the mistakes of the pod alone.
                of_pods(draw, other, 0);
            }
        }
    }
    let pod = &mut case["pod"];
    if sorts & 8 > 0 && pod["spec"]["topologySpreadConstraints"].is_null() {
        let mut constraints = relations::constraints(draw);
        for constraint in constraints.as_array_mut().into_iter().flatten() {
            if draw.percent(85) {
                constraint["whenUnsatisfiable"] = json!("ScheduleAnyway");
                constraint.as_object_mut().unwrap().remove("minDomains");
                constraint["maxSkew"] = json!(1 + draw.below(6));
            }
        }
        pod["spec"]["topologySpreadConstraints"] = constraints;
    }
}

/// Gives a pod preferences about other pods, with wrong weights as [`weight`] draws them.
fn of_pods(draw: &mut Draw, pod: &mut Value, wrong_every: u64) {
    for name in ["podAffinity", "podAntiAffinity"] {
        if draw.percent(60) {
            let count = 1 + draw.below(3);
            let terms = draw.several(count, |draw| {
                let weight = weight(draw, wrong_every);
                json!({"weight": weight, "podAffinityTerm": relations::term(draw)})
            });
            pod["spec"]["affinity"][name][PREFERRED] = terms.into();
        }
    }
}

/// A weight; two of so many are ones that the API server refuses, none of 0.
fn weight(draw: &mut Draw, wrong_every: u64) -> u64 {
    let right = *draw.pick(&[1, 2, 3, 7, 50, 99, 100]);
    match wrong_every {
        0 => right,
        every => match draw.below(every) {
            0 => 0,
            1 => 101,
            _ => right,
        },
    }
}
