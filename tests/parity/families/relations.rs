//! Affinity and anti-affinity between pods, and topology spread constraints.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{each, of, taints, world};

pub(super) const KEYS: &[&str] = &["zone", "rack", "kubernetes.io/hostname"];
const APPS: &[&str] = &["web", "db", "batch"];
const NAMESPACES: &[&str] = &["default", "other", "third"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Labelled nodes, labelled pods on them, and a pod with rules about pods.
pub(crate) fn case(draw: &mut Draw) -> Value {
    let mut case = of_pods(draw);
    if draw.percent(30) {
        taints::add(draw, &mut case);
    }
    add(draw, &mut case);
    case
}

/// Nodes and pods on them, each with its own name.
pub(super) fn of_pods(draw: &mut Draw) -> Value {
    let nodes = world::nodes(draw);
    let mut pods = world::bound(draw, &nodes, |_| world::pod());
    pods.extend(world::bound(draw, &nodes, |_| world::pod()));
    for (index, pod) in pods.iter_mut().enumerate() {
        pod["metadata"]["name"] = json!(format!("bound-{index}"));
        pod["metadata"]["uid"] = json!(format!("uid-{index}"));
    }
    of(nodes, pods, world::pod())
}

/// Labels nodes, pods and namespaces, and gives pods rules.
pub(crate) fn add(draw: &mut Draw, case: &mut Value) {
    for node in each(case, "nodes") {
        for key in &KEYS[..2] {
            if draw.percent(85) {
                node["metadata"]["labels"][*key] = json!(draw.pick(&["1", "2", ""]));
            }
        }
    }
    let labelled = NAMESPACES.iter().map(|name| {
        let team = draw.pick(&["x", "y"]);
        json!({"metadata": {"name": name, "labels": {"team": team}}})
    });
    case["namespaces"] = labelled.collect();
    for pod in each(case, "pods") {
        labels(draw, pod);
        if draw.percent(40) {
            pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED] = terms(draw);
        }
        if draw.percent(10) {
            pod["spec"]["affinity"]["podAffinity"][REQUIRED] = terms(draw);
        }
    }
    let pod = &mut case["pod"];
    labels(draw, pod);
    let chances = match draw.below(5) {
        0 => [80, 0, 0],
        1 => [0, 80, 0],
        2 => [0, 0, 100],
        3 => [0, 0, 0],
        _ => [30, 40, 60],
    };
    for (name, percent) in ["podAffinity", "podAntiAffinity"].into_iter().zip(chances) {
        if draw.percent(percent) {
            pod["spec"]["affinity"][name][REQUIRED] = terms(draw);
        }
    }
    if draw.percent(chances[2]) {
        pod["spec"]["topologySpreadConstraints"] = constraints(draw);
    }
    if draw.percent(15) {
        pod["spec"]["nodeSelector"] = json!({"zone": "1"});
    }
}

pub(super) fn labels(draw: &mut Draw, pod: &mut Value) {
    if draw.percent(90) {
        pod["metadata"]["labels"]["app"] = json!(draw.pick(APPS));
    }
    if draw.percent(50) {
        pod["metadata"]["labels"]["track"] = json!(draw.pick(&["a", "b"]));
    }
    if draw.percent(15) {
        // Controllers label pods with their names.
        let name = draw.pick(&["judged", "bound-0", "bound-1"]);
        pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
    }
}

fn terms(draw: &mut Draw) -> Value {
    let count = 1 + draw.below(2);
    draw.several(count, term).into()
}

pub(super) fn term(draw: &mut Draw) -> Value {
    let mut term = json!({"topologyKey": draw.pick(KEYS)});
    if draw.percent(92) {
        term["labelSelector"] = selector(draw);
        if draw.percent(15) {
            term["matchLabelKeys"] = json!(["track"]);
        } else if draw.percent(15) {
            term["mismatchLabelKeys"] = json!(["track"]);
        }
    }
    if draw.percent(25) {
        let count = draw.below(3);
        term["namespaces"] = draw
            .several(count, |draw| json!(draw.pick(NAMESPACES)))
            .into();
    }
    if draw.percent(25) {
        term["namespaceSelector"] = match draw.percent(40) {
            true => json!({}),
            false => json!({"matchLabels": {"team": draw.pick(&["x", "y", "z"])}}),
        };
    }
    term
}

fn selector(draw: &mut Draw) -> Value {
    match draw.below(10) {
        0 => json!({}),
        1 => json!({"matchExpressions": [{"key": "nobody", "operator": "DoesNotExist"}]}),
        2 => json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
        3 => json!({"matchExpressions": [
            {"key": "app", "operator": "NotIn", "values": [draw.pick(APPS)]}]}),
        4 => json!({"matchExpressions": [{"key": "statefulset.kubernetes.io/pod-name",
            "operator": *draw.pick(&["In", "NotIn"]), "values": ["bound-0", "judged"]}]}),
        _ => json!({"matchLabels": {"app": draw.pick(APPS)}}),
    }
}

pub(super) fn constraints(draw: &mut Draw) -> Value {
    // The API server lets each key in once.
    let mut keys = KEYS.to_vec();
    let count = 1 + draw.below(3);
    let constraints = draw.several(count, |draw| {
        let at = usize::try_from(draw.below(keys.len() as u64)).unwrap();
        constraint(draw, keys.swap_remove(at))
    });
    constraints.into()
}

pub(super) fn constraint(draw: &mut Draw, key: &str) -> Value {
    let mut constraint = json!({
        "topologyKey": key,
        "maxSkew": 1 + draw.below(2),
        "whenUnsatisfiable": "DoNotSchedule",
    });
    if draw.percent(92) {
        constraint["labelSelector"] = selector(draw);
        if draw.percent(20) {
            constraint["matchLabelKeys"] = json!(["track"]);
        }
    }
    if draw.percent(30) {
        constraint["minDomains"] = json!(1 + draw.below(4));
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if draw.percent(35) {
            constraint[policy] = json!(draw.pick(&["Honor", "Ignore"]));
        }
    }
    constraint
}
