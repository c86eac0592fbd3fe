//! What the pods on nodes add to a node, or take from it, in the eyes of a pod that has
//! preferences.

use super::{Counted, DomainKey, SpreadTallies, Tally};
use crate::facts::SpreadRule;
use crate::ids::{ClassId, Id, NodeId, PodId};
use crate::state::ClusterState;
use alloc::{collections::BTreeSet, vec, vec::Vec};

/// The label by which constraints count node by node, whatever other nodes have the same value.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The bits after the point of a logarithm.
const FRACTION: u32 = 32;

impl ClusterState {
    /// Whether which nodes a pod prefers may depend on other pods, and so change with each pod that
    /// gets a place.
    pub(crate) fn prefers_by_pods(&self, pod: PodId) -> bool {
        if self.relations.is_empty() {
            return false;
        }
        let relations = self.classes[self.pods[pod].class].relations.as_deref();
        let own = relations.is_some_and(|relations| {
            !relations.preferred.is_empty() || !relations.preferred_spread.tallies.is_empty()
        });
        own || self.drawn(pod).next().is_some()
    }

    /// Whether which nodes a pod prefers depends on nothing but terms about other pods.
    pub(crate) fn prefers_by_pods_alone(&self, pod: PodId) -> bool {
        let class = &self.classes[self.pods[pod].class];
        let preferences = class.shape.preferences.as_deref();
        self.softly_tainted.is_empty()
            && preferences
                .is_none_or(|it| it.nodes.is_empty() && it.spread.is_empty() && it.images.is_none())
    }

    /// What the preferred terms of a pod, and those of others that select it, give each node: the
    /// sum of their weights, once for each pod in the domain.
    pub(crate) fn drawn_to(&self, pod: PodId, nodes: &[NodeId]) -> Vec<i64> {
        let terms = self.drawing_terms(pod);
        let sum = |node: &NodeId| {
            let given = terms.iter().map(|(tally, key, weight)| {
                let domain = key.of_node[*node];
                let pods = if domain > 0 { tally.count(domain) } else { 0 };
                weight.saturating_mul(i64::from(pods))
            });
            given.fold(0, i64::saturating_add)
        };
        nodes.iter().map(sum).collect()
    }

    /// What [`ClusterState::drawn_to`] says, by the number of each node. Most domains have no such
    /// pod, and are passed over.
    pub(crate) fn drawn_everywhere(&self, pod: PodId) -> Vec<i64> {
        let mut drawn = vec![0i64; self.nodes.bound()];
        for (tally, key, weight) in self.drawing_terms(pod) {
            let counts = tally.counts.iter().enumerate();
            for (domain, pods) in counts.filter(|(_, pods)| **pods > 0) {
                let given = weight.saturating_mul(i64::from(*pods));
                for node in key.nodes_of(domain) {
                    let sum = &mut drawn[node.index()];
                    *sum = sum.saturating_add(given);
                }
            }
        }
        drawn
    }

    /// The preferred terms of a pod, and those of others that select it: what each counts, by which
    /// label, and what a node gets for each pod.
    fn drawing_terms(&self, pod: PodId) -> Vec<(&Tally, &DomainKey, i64)> {
        let relations = &self.relations;
        let own = self.classes[self.pods[pod].class].relations.as_deref();
        let own = own.map_or(&[] as &[_], |own| &own.preferred);
        let of_others = self.drawn(pod).map(|id| {
            let Counted::Drawing(_, _, weight) = *relations.tallies[id].of else {
                return (id, 0);
            };
            (id, weight)
        });
        let terms = own.iter().copied().chain(of_others);
        let terms = terms.map(|(id, weight)| {
            let tally = &relations.tallies[id];
            (tally, &relations.keys[tally.of.key()], i64::from(weight))
        });
        terms.collect()
    }

    /// How crowded each node's domains are with the pods that the preferred spread of a class
    /// counts, in pods weighted by how many domains there are; `None` for nodes that lack one of
    /// the labels, unless the constraints are the cluster's defaults. Empty: the class has no such
    /// constraint.
    pub(crate) fn crowding(&mut self, class: ClassId, nodes: &[NodeId]) -> Vec<Option<u64>> {
        self.include_nodes(class);
        let shape = self.classes[class].shape.clone();
        let Some(preferences) = shape.preferences.as_deref() else {
            return Vec::new();
        };
        let rules = &preferences.spread;
        let Some(relations) = self.classes[class].relations.as_deref() else {
            return Vec::new();
        };
        let spread = &relations.preferred_spread;
        if spread.tallies.is_empty() {
            return Vec::new();
        }
        let key = |at: usize| {
            let tally = &self.relations.tallies[spread.tallies[at]];
            &self.relations.keys[tally.of.key()]
        };
        let is_labelled = |node: NodeId| {
            preferences.spread_is_default || (0..rules.len()).all(|at| key(at).of_node[node] > 0)
        };
        let mut crowding: Vec<Option<u128>> = nodes
            .iter()
            .map(|node| is_labelled(*node).then_some(0))
            .collect();
        for (at, rule) in rules.iter().enumerate() {
            self.add_crowding(rule, (spread, at), key(at), nodes, &mut crowding);
        }
        let rounded = |sum: u128| whole((sum + (1 << (FRACTION - 1))) >> FRACTION);
        crowding.into_iter().map(|sum| sum.map(rounded)).collect()
    }

    /// Adds what one constraint says, with [`FRACTION`] bits after the point.
    fn add_crowding(
        &self,
        rule: &SpreadRule,
        (spread, at): (&SpreadTallies, usize),
        key: &DomainKey,
        nodes: &[NodeId],
        crowding: &mut [Option<u128>],
    ) {
        let by_node = &*key.name == HOSTNAME;
        let tally = &self.relations.tallies[spread.tallies[at]];
        let counts = match by_node {
            true => Vec::new(),
            false => self.counts_by_domain(spread, at),
        };
        let scored = nodes
            .iter()
            .zip(crowding.iter())
            .filter(|(_, sum)| sum.is_some());
        let domains = match by_node {
            true => scored.count(),
            false => {
                let domains = scored.map(|(node, _)| key.of_node[*node]);
                domains.collect::<BTreeSet<u32>>().len()
            }
        };
        let weight = u128::from(logarithm(domains as u64 + 2));
        let tolerated = u128::from(rule.max_skew.saturating_sub(1)) << FRACTION;
        for (node, sum) in nodes.iter().zip(crowding) {
            // Of the cluster's defaults, those count for a node whose label it has.
            let Some(sum) = sum.as_mut().filter(|_| key.of_node[*node] > 0) else {
                continue;
            };
            let pods = match by_node {
                true => tally.at(*node),
                false => {
                    let domain = key.of_node[*node] as usize;
                    counts
                        .get(domain)
                        .map_or(0, |found| found.saturating_sub(1))
                }
            };
            *sum += u128::from(pods) * weight + tolerated;
        }
    }
}

/// The natural logarithm of a number of at least 1, with [`FRACTION`] bits after the point: its
/// binary logarithm, bit by bit, times that of the base.
fn logarithm(number: u64) -> u64 {
    /// The natural logarithm of 2 with 32 bits after the point.
    const OF_TWO: u128 = 0xb172_17f7;
    let exponent = number.ilog2();
    // From 1 to 2, with 63 bits after the point.
    let mut rest = u128::from(number) << (63 - exponent);
    let mut binary = u64::from(exponent);
    for _ in 0..FRACTION {
        rest = (rest * rest) >> 63;
        let bit = u64::from(rest >= 1 << 64);
        rest >>= bit;
        binary = (binary << 1) | bit;
    }
    whole((u128::from(binary) * OF_TWO) >> FRACTION)
}

fn whole(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{FRACTION, logarithm};

    #[test]
    fn logarithms_are_those_of_floating_point() {
        let half = |bits: u64| f64::from(u32::try_from(bits).unwrap());
        for number in (1..2_000).chain([5_002, 65_536, u32::MAX]) {
            let found = logarithm(number.into());
            let fraction = found & u64::from(u32::MAX);
            let found = half(found >> FRACTION) + half(fraction) / 2f64.powi(32);
            let expected = f64::from(number).ln();
            let differs = (found - expected).abs() > 1e-7;
            assert!(!differs, "{number}: {found} {expected}");
        }
    }
}
