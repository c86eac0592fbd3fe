//! Rules of pods about other pods, at rest.

use super::Binder;
use crate::cluster::Cluster;
use crate::rules::{near, selects};
use gpu_batch_policies::facts::Uid;
use std::collections::BTreeMap;

/// Whether any pod has rules about other pods. Which nodes others take decides then where a gang
/// fits, which `search` does not look at.
pub(super) fn has_rules(cluster: &Cluster) -> bool {
    cluster
        .api
        .pods()
        .any(|facts| facts.shape.relations.is_some())
}

/// No two pods that one process has bound are nearer to each other than anti-affinity allows.
/// Processes that overlap may not know of each other's pods, nor those of other schedulers.
pub(super) fn too_near(
    cluster: &Cluster,
    binders: &BTreeMap<Uid, Binder>,
    found: &mut Vec<String>,
) {
    let bound = cluster.api.pods().filter_map(|facts| {
        let node = cluster.node(facts.node.as_deref()?)?;
        let lives = !facts.phase.ended() && facts.deletion_ms.is_none();
        Some((facts, node, binders.get(&facts.uid)?)).filter(|_| lives)
    });
    let bound: Vec<_> = bound.collect();
    for (facts, node, binder) in &bound {
        let rules = facts.shape.relations.as_deref();
        for term in rules.into_iter().flat_map(|rules| &rules.anti_affinity) {
            let too_near = bound.iter().find(|(other, at, by)| {
                other.uid != facts.uid
                    && by == binder
                    && near(&term.topology_key, node, at)
                    && selects(&term.selection, other)
            });
            if let Some((other, ..)) = too_near {
                let (name, other) = (&facts.name, &other.name);
                found.push(format!("pod {name} keeps away from {other}, which is near"));
            }
        }
    }
}
