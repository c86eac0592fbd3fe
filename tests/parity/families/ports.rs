//! Ports of the host, and their addresses.

use serde_json::{Value, json};

use super::draw::Draw;
use super::{each, of, world};

const ADDRESSES: &[&str] = &[
    "",
    "0.0.0.0",
    "::",
    "127.0.0.1",
    "10.0.0.1",
    "::1",
    "0:0:0:0:0:0:0:1",
    "::ffff:10.0.0.1",
    "::ffff:0.0.0.0",
    "0:0:0:0:0:0:0:0",
];

/// Pods that take ports, and one that wants some.
pub(crate) fn case(draw: &mut Draw) -> Value {
    let nodes = world::nodes(draw);
    let pods = world::bound(draw, &nodes, |_| world::pod());
    let mut case = of(nodes, pods, world::pod());
    add(draw, &mut case);
    case
}

/// Gives ports to all pods.
pub(crate) fn add(draw: &mut Draw, case: &mut Value) {
    for pod in each(case, "pods") {
        take(draw, pod);
    }
    take(draw, &mut case["pod"]);
}

fn take(draw: &mut Draw, pod: &mut Value) {
    let spec = &mut pod["spec"];
    if draw.percent(12) {
        spec["hostNetwork"] = json!(true);
    }
    let in_host = spec["hostNetwork"] == true;
    if draw.percent(25) && spec["initContainers"].is_null() {
        let mut init = world::container(20);
        if draw.percent(60) {
            init["restartPolicy"] = json!("Always");
        }
        spec["initContainers"] = json!([init]);
    }
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            if draw.percent(70) {
                container["ports"] = draw.list(4, |draw| port(draw, in_host));
            }
        }
    }
}

fn port(draw: &mut Draw, in_host: bool) -> Value {
    let number = *draw.pick(&[80, 80, 81]);
    let mut port = json!({"containerPort": number});
    match (draw.below(10), in_host) {
        (0..5, true) => port["hostPort"] = json!(number),
        (0..7, false) => port["hostPort"] = json!(draw.pick(&[80, 80, 81])),
        (7, _) => port["hostPort"] = json!(0),
        _ => {}
    }
    if draw.percent(45) {
        port["hostIP"] = json!(draw.pick(ADDRESSES));
    }
    if draw.percent(35) {
        port["protocol"] = json!(draw.pick(&["TCP", "UDP", "SCTP", ""]));
    }
    port
}
