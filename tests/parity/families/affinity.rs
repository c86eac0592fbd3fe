//! Node selectors and node affinity, on labels and on names.

use serde_json::{Map, Value, json};

use super::draw::Draw;
use super::{each, with, world};

const KEYS: &[&str] = &[
    "a",
    "b",
    "example.com/rank",
    "kubernetes.io/hostname",
    "Nobody.has-it",
];

/// Values of labels: numbers too, at the edges of what is compared.
const VALUES: &[&str] = &[
    "",
    "x",
    "y",
    "0",
    "5",
    "05",
    "10",
    "5.0",
    "5e0",
    "0x5",
    "9223372036854775807",
    "9223372036854775808",
    "n0",
    "n1",
    "1-1",
];

/// What a number is compared with; the API server lets some through that are none.
const BOUNDS: &[&str] = &[
    "0",
    "5",
    "05",
    "4",
    "6",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "5.0",
    "5e0",
    "0x5",
    "x",
    "",
    "1_0",
];

/// Labelled nodes, and a pod that is choosy.
pub(crate) fn case(draw: &mut Draw) -> Value {
    with(draw, add)
}

/// Labels nodes, and lets the pod choose among them.
pub(crate) fn add(draw: &mut Draw, case: &mut Value) {
    for node in each(case, "nodes") {
        for key in KEYS.iter().take(3) {
            if draw.percent(70) {
                node["metadata"]["labels"][*key] = json!(draw.pick(VALUES));
            }
        }
        if draw.percent(10) {
            node["metadata"]["labels"] = Value::Null;
        }
    }
    let spec = &mut case["pod"]["spec"];
    if draw.percent(30) {
        let pairs = draw.fewer(3, |draw| {
            ((*draw.pick(KEYS)).to_owned(), json!(draw.pick(VALUES)))
        });
        spec["nodeSelector"] = Value::Object(Map::from_iter(pairs));
    }
    if draw.percent(80) {
        spec["affinity"]["nodeAffinity"] = node_affinity(draw);
    }
}

fn node_affinity(draw: &mut Draw) -> Value {
    let count = 1 + draw.below(3);
    let terms = draw.several(count, term);
    let mut affinity = json!({});
    if draw.percent(92) {
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        affinity[required] = json!({"nodeSelectorTerms": terms});
    }
    if draw.percent(15) {
        // It orders nodes, and keeps the pod off none.
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        affinity[preferred] = json!([{"weight": 1, "preference": term(draw)}]);
    }
    affinity
}

pub(super) fn term(draw: &mut Draw) -> Value {
    let mut term = json!({});
    if draw.percent(80) {
        term["matchExpressions"] = draw.list(4, expression);
    }
    if draw.percent(30) {
        term["matchFields"] = draw.list(3, field);
    }
    term
}

fn expression(draw: &mut Draw) -> Value {
    let operator = *draw.pick(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
    let mut expression = json!({"key": draw.pick(KEYS), "operator": operator});
    match operator {
        "In" | "NotIn" => {
            let count = 1 + draw.below(3);
            expression["values"] = draw.several(count, |draw| json!(draw.pick(VALUES))).into();
        }
        "Gt" | "Lt" => expression["values"] = json!([draw.pick(BOUNDS)]),
        _ if draw.percent(20) => expression["values"] = json!([]),
        _ => {}
    }
    expression
}

fn field(draw: &mut Draw) -> Value {
    let name = match draw.below(8) {
        0 => "",
        1 => "gone",
        2 => "N0",
        _ => *draw.pick(world::NODES),
    };
    let operator = draw.pick(&["In", "In", "NotIn"]);
    json!({"key": "metadata.name", "operator": operator, "values": [name]})
}
