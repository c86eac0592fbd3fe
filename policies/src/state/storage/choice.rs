//! Which free volumes the claims of placed pods get.
//!
//! Each claim gets the smallest free volume that suits it and that the node of its pod reaches, the
//! claims for little first, as with kube-scheduler. Where that leaves a claim without a volume,
//! others change theirs, as long as each has one or can have one made. So a volume is found for
//! every claim wherever that is possible at all.

use super::stock::{Want, in_order, reaches};
use super::users::key;
use super::{Named, Storage};
use crate::facts::{ClaimFacts, Labels, Uid, VolumeFacts};
use crate::filter;
use crate::ids::{NodeId, PodId};
use crate::state::ClusterState;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// A claim that is to get a volume.
#[derive(Debug)]
struct Taker<'a> {
    claim: &'a ClaimFacts,
    /// The pod with which it gets the volume.
    pod: PodId,
    /// The nodes that must reach the volume.
    nodes: Vec<NodeId>,
}

/// A volume for each claim that gets a free one, as far as they are found.
#[derive(Debug, Default)]
struct Matching<'a> {
    /// The volumes that each claim could get, the best first.
    suitable: Vec<Vec<&'a str>>,
    /// Whether a volume can be made for each claim.
    can_be_made: Vec<bool>,
    takers: BTreeMap<&'a str, usize>,
}

impl<'a> Matching<'a> {
    /// Gives a claim a volume. Returns whether there is one for it, and for all that had one.
    fn give(&mut self, claim: usize, asked: &mut BTreeSet<&'a str>) -> bool {
        let free = |volume: &&&str| !self.takers.contains_key(**volume);
        if let Some(volume) = self.suitable[claim].iter().find(free) {
            self.takers.insert(volume, claim);
            return true;
        }
        for volume in self.suitable[claim].clone() {
            if !asked.insert(volume) {
                continue;
            }
            let other = self.takers[volume];
            if self.give(other, asked) || self.can_be_made[other] {
                self.takers.insert(volume, claim);
                return true;
            }
        }
        false
    }
}

impl ClusterState {
    /// Whether every claim of these pods, which have just got these nodes, gets a volume there.
    pub(crate) fn has_volumes_for(&self, placed: &[(PodId, NodeId)]) -> bool {
        self.volumes_for(placed).is_some()
    }

    /// Chooses free volumes for the claims of these pods, which have just got these nodes. The
    /// volumes are not free from now on.
    pub(crate) fn choose_volumes(&mut self, placed: &[(PodId, NodeId)]) {
        for (claim, pod, volume) in self.volumes_for(placed).unwrap_or_default() {
            let uid = self.pods[pod].uid;
            self.storage.choose(&volume, claim, uid);
        }
    }

    /// The free volumes for the claims of these pods; `None`: there are not enough.
    fn volumes_for(&self, placed: &[(PodId, NodeId)]) -> Option<Vec<(Named, PodId, Box<str>)>> {
        let takers = self.takers(placed);
        let mut matching = Matching::default();
        for taker in &takers {
            matching.suitable.push(self.suitable(taker));
            matching.can_be_made.push(self.can_be_made(taker));
        }
        for claim in 0..takers.len() {
            if !matching.give(claim, &mut BTreeSet::new()) && !matching.can_be_made[claim] {
                return None;
            }
        }
        let chosen = matching.takers.into_iter().map(|(volume, claim)| {
            let Taker { claim, pod, .. } = &takers[claim];
            (
                (claim.namespace.clone(), claim.name.clone()),
                *pod,
                volume.into(),
            )
        });
        Some(chosen.collect())
    }

    /// The claims of pods that take free volumes, in order.
    fn takers(&self, placed: &[(PodId, NodeId)]) -> Vec<Taker<'_>> {
        let mut takers: Vec<Taker<'_>> = Vec::new();
        for (pod, node) in placed {
            let record = &self.pods[*pod];
            let claims = record.claims.as_deref();
            // kube-scheduler chooses for pods that it asks to bind.
            let claims = claims.filter(|_| record.is_prepared());
            let facts = claims.into_iter().flatten().filter_map(|claim| {
                let name = key(&record.namespace, claim);
                self.storage
                    .claim(&name)
                    .filter(|it| self.storage.takes_free(it))
            });
            let mut facts: Vec<&ClaimFacts> = facts.collect();
            in_order(&mut facts);
            for claim in facts {
                match takers.iter_mut().find(|it| it.claim.uid == claim.uid) {
                    Some(known) => known.nodes.push(*node),
                    None => takers.push(Taker {
                        claim,
                        pod: *pod,
                        nodes: Vec::from([*node]),
                    }),
                }
            }
        }
        takers
    }

    fn node_labels(&self, node: NodeId) -> Option<&Labels> {
        let known = self.nodes[node].known.as_ref()?;
        Some(&known.facts.labels)
    }

    /// The free volumes that a claim could get, the smallest first.
    fn suitable(&self, taker: &Taker<'_>) -> Vec<&str> {
        let want = Want::of(taker.claim);
        let labels: Vec<&Labels> = (taker.nodes.iter())
            .filter_map(|node| self.node_labels(*node))
            .collect();
        let Some((first, _)) = labels.split_first() else {
            return Vec::new();
        };
        let storage = &self.storage;
        let near = storage
            .stock
            .near(first)
            .filter_map(|it| storage.volumes.get(it));
        let suits = |volume: &&VolumeFacts| {
            want.is_met_by(volume) && labels.iter().all(|it| reaches(it, volume))
        };
        let mut found: Vec<&VolumeFacts> = near.filter(suits).collect();
        found.sort_by(|one, other| (one.size, &one.name).cmp(&(other.size, &other.name)));
        found.dedup_by(|one, other| one.name == other.name);
        found.into_iter().map(|volume| &*volume.name).collect()
    }

    /// Whether a volume can be made for a claim on all nodes that must reach it.
    fn can_be_made(&self, taker: &Taker<'_>) -> bool {
        let made = self.storage.made_for(taker.claim);
        let mut labels = taker.nodes.iter().map(|node| self.node_labels(*node));
        made.is_some_and(|made| {
            labels.all(|labels| labels.is_some_and(|it| filter::one_place_holds(&made, it)))
        })
    }
}

impl Storage {
    /// Whether a claim gets a free volume before one is made for it.
    pub(super) fn takes_free(&self, claim: &ClaimFacts) -> bool {
        let waits = self.classes.get(&claim.class).is_some_and(|it| it.waits);
        waits
            && claim.volume.is_none()
            && claim.selected_node.is_none()
            && self.kept_for(claim).next().is_none()
    }

    fn choose(&mut self, volume: &str, claim: Named, pod: Uid) {
        if let Some(facts) = self.volumes.get(volume) {
            self.changed.insert(claim.clone());
            self.stock.choose(facts, claim, pod);
        }
    }
}
