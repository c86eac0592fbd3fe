//! Rules of pods about other pods, at rest.

use super::Binder;
use crate::cluster::Cluster;
use gpu_batch_policies::facts::{PodFacts, PodTerm, Uid, label};
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
            let domain = label(&node.labels, &term.topology_key);
            let near = bound.iter().find(|(other, at, by)| {
                other.uid != facts.uid
                    && by == binder
                    && domain.is_some()
                    && label(&at.labels, &term.topology_key) == domain
                    && selects(term, other)
            });
            if let Some((other, ..)) = near {
                let (name, other) = (&facts.name, &other.name);
                found.push(format!("pod {name} keeps away from {other}, which is near"));
            }
        }
    }
}

fn selects(term: &PodTerm, pod: &PodFacts) -> bool {
    let labels = term.selection.labels.as_ref();
    labels.is_some_and(|labels| {
        labels.selects(|key| pod.labels.value(key, &pod.name, pod.owner.as_ref()))
    })
}
