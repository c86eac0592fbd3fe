//! Cases, drawn from a seed: a few nodes, pods that are bound to them, and the pod to be judged.
//!
//! A family is a part of what a pod may say, with the values at which schedulers differ. Another
//! family is one more line in [`ALL`]; `objects` of a case may have any kind that the API server
//! knows, such as PersistentVolumes.

mod affinity;
mod defaults;
pub(crate) mod draw;
mod features;
mod mistakes;
mod ports;
mod preferences;
mod quantities;
mod relations;
mod resources;
mod taints;
mod volumes;
mod world;

use serde_json::{Value, json};

use draw::Draw;

/// Draws a case.
type Family = fn(&mut Draw) -> Value;

/// Adds a part to a case.
type Part = fn(&mut Draw, &mut Value);

/// The annotation of CSINodes that names the kinds from before CSI that drivers have taken over.
pub(crate) const MIGRATED: &str = "storage.alpha.kubernetes.io/migrated-plugins";

/// Every family, by its name.
pub(crate) const ALL: [(&str, Family); 12] = [
    ("resources", resources::case),
    ("resizes", resources::case_with_resizes),
    ("taints", taints::case),
    ("affinity", affinity::case),
    ("ports", ports::case),
    ("relations", relations::case),
    ("features", features::case),
    ("preferences", preferences::case),
    ("defaults", defaults::case),
    ("volumes", volumes::case),
    ("mixed", mixed),
    ("mistakes", mistakes::case),
];

/// The family and the case of a number under a seed.
pub(crate) fn case(seed: u64, number: u64) -> (&'static str, Value) {
    let mut draw = Draw::new(seed, number);
    let (name, family) = *draw.pick(&ALL);
    (name, family(&mut draw))
}

/// A bit of everything.
fn mixed(draw: &mut Draw) -> Value {
    let mut case = resources::case(draw);
    let parts: [(u64, Part); 6] = [
        (60, taints::add),
        (50, affinity::add),
        (40, ports::add),
        (20, relations::add),
        (20, preferences::add),
        (10, volumes::add),
    ];
    for (percent, add) in parts {
        if draw.percent(percent) {
            add(draw, &mut case);
        }
    }
    case
}

/// Nodes and a pod, to which a part is added.
fn with(draw: &mut Draw, add: Part) -> Value {
    let nodes = world::nodes(draw);
    let mut case = of(nodes, Vec::new(), world::pod());
    add(draw, &mut case);
    case
}

/// A case without namespaces and objects of other kinds.
fn of(nodes: Vec<Value>, pods: Vec<Value>, pod: Value) -> Value {
    json!({"nodes": nodes, "pods": pods, "namespaces": [], "objects": [], "pod": pod})
}

/// The entries of a list in a case.
fn each<'a>(case: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    case[list].as_array_mut().into_iter().flatten()
}
