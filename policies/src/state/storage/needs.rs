//! What the claims of a pod ask of nodes.

use super::stock::{Want, no_volume};
use super::users::key;
use super::{Named, Storage};
use crate::facts::{
    CapacityFacts, ClaimFacts, ClaimUse, LabelSelector, MatchOperator, MatchRequirement,
    NodeSelectorTerm, StorageClassFacts, VolumeFacts, VolumeNeeds, VolumePlaces, ZONE_LABELS,
    ZoneLabel, label,
};
use crate::state::ClusterState;
use crate::state::pod::Pod;
use alloc::{borrow::ToOwned, boxed::Box, format, string::String, vec::Vec};

/// The provisioner of classes whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Places of which one will do, see [`VolumePlaces`].
type Places = Vec<Vec<Vec<NodeSelectorTerm>>>;

impl StorageClassFacts {
    /// Whether volumes are made for claims of the class.
    pub(super) fn makes_volumes(&self) -> bool {
        !self.provisioner.is_empty() && *self.provisioner != *NO_PROVISIONER
    }
}

impl ClusterState {
    /// What the claims of a pod ask of nodes.
    pub(super) fn volume_needs(&self, pod: &Pod, claims: &[ClaimUse]) -> VolumeNeeds {
        let mut needs = VolumeNeeds::default();
        for claim in claims {
            if let Err(missing) = self.add_needs(pod, claim, &mut needs) {
                let name = &claim.name;
                let missing = format!("PersistentVolumeClaim {name} {missing}");
                needs.missing = needs.missing.or(Some(missing.into()));
            }
        }
        needs.places.sort();
        needs.places.dedup();
        needs.zones.sort();
        needs.zones.dedup();
        needs
    }

    /// Adds what a claim asks for.
    ///
    /// # Errors
    /// Why the pod can be on no node: a sentence that goes on after the name of the claim.
    fn add_needs(
        &self,
        pod: &Pod,
        claim: &ClaimUse,
        needs: &mut VolumeNeeds,
    ) -> Result<(), String> {
        let storage = &self.storage;
        let name = key(&pod.namespace, claim);
        let Some(facts) = storage.claims.get(&name) else {
            return Err(match claim.is_ephemeral {
                true => "has not been made for the pod yet".to_owned(),
                false => format!("does not exist in namespace {}", pod.namespace),
            });
        };
        if facts.is_lost {
            return Err("has lost its volume".to_owned());
        }
        if facts.is_deleting {
            return Err("is being deleted".to_owned());
        }
        if claim.is_ephemeral && facts.pod != Some(pod.uid) {
            return Err("was not made for the pod, which has a volume of that name".to_owned());
        }
        self.check_first_user(pod, &name, facts, claim)?;
        match (&facts.volume, facts.bind_completed) {
            (Some(volume), true) => {
                let Some(volume) = storage.volumes.get(volume) else {
                    return Err(format!("has the volume {volume}, which does not exist"));
                };
                let affinity = volume.affinity_once_bound.as_ref();
                let affinity = affinity.or(volume.affinity.as_ref());
                needs.places.extend(affinity.map(|terms| {
                    let any_of = Vec::from([Vec::from([terms.clone()])]);
                    VolumePlaces {
                        is_bound: true,
                        only_on: None,
                        any_of,
                    }
                }));
                if !claim.is_ephemeral {
                    needs.zones.extend(zones(volume));
                }
                Ok(())
            }
            (Some(volume), false) => Err(format!("is not bound to its volume {volume} yet")),
            (None, _) => {
                needs.places.extend(storage.places(&name, facts)?);
                Ok(())
            }
        }
    }
}

impl Storage {
    /// Where a claim without a volume can get one; `None`: on every node, or wherever there are
    /// enough of those that are counted.
    ///
    /// # Errors
    /// Why it gets none: a sentence that goes on after the name of the claim.
    fn places(&self, name: &Named, claim: &ClaimFacts) -> Result<Option<VolumePlaces>, String> {
        if claim.class.is_empty() {
            return Err("is not bound yet, and names no StorageClass".to_owned());
        }
        let Some(class) = self.classes.get(&claim.class) else {
            let class = &claim.class;
            return Err(format!(
                "names the StorageClass {class}, which does not exist"
            ));
        };
        if !class.waits {
            let class = &class.name;
            return Err(format!(
                "is not bound yet; its StorageClass {class} does not wait for a pod"
            ));
        }
        if let Some(want) = self.stock.want_of(name) {
            return match self.stock.is_met(want) {
                true => Ok(None),
                false => Err(no_volume(&class.name)),
            };
        }
        let mut any_of = Places::new();
        // Where a node is selected already, a volume is to be made.
        if claim.selected_node.is_none() {
            let kept = self.kept_for(claim);
            any_of.extend(kept.map(reached_from));
            if any_of.is_empty() {
                any_of.extend(self.free_for(claim).map(reached_from));
            }
        }
        match self.made_for(claim) {
            Some(made) => any_of.extend(made),
            None if any_of.is_empty() => return Err(no_volume(&class.name)),
            None => {}
        }
        any_of.sort();
        any_of.dedup();
        let only_on = claim.selected_node.clone();
        let is_everywhere = only_on.is_none() && any_of.iter().any(Vec::is_empty);
        Ok((!is_everywhere).then_some(VolumePlaces {
            is_bound: false,
            only_on,
            any_of,
        }))
    }

    /// The volumes that exist and are kept for a claim without a volume, or are to be.
    pub(super) fn kept_for(&self, claim: &ClaimFacts) -> impl Iterator<Item = &VolumeFacts> {
        let name = (claim.namespace.clone(), claim.name.clone());
        let kept = self.kept.get(&name).into_iter().flatten();
        let kept = kept
            .map(|volume| &**volume)
            .chain(self.stock.chosen_for(&name));
        let volumes = kept.filter_map(|volume| self.volumes.get(volume));
        volumes.filter(|volume| suits(volume, claim))
    }

    /// The free volumes that suit a claim.
    fn free_for(&self, claim: &ClaimFacts) -> impl Iterator<Item = &VolumeFacts> {
        let want = Want::of(claim);
        let free = self.stock.of_class(&claim.class);
        let volumes = free.filter_map(|volume| self.volumes.get(volume));
        volumes.filter(move |volume| want.is_met_by(volume))
    }

    /// Where a volume can be made for a claim; `None`: its class makes none.
    pub(super) fn made_for(&self, claim: &ClaimFacts) -> Option<Places> {
        let class = self.classes.get(&claim.class)?;
        class
            .makes_volumes()
            .then(|| self.provisioned(class, claim))
    }

    /// Where a volume can be made for a claim, in alternatives.
    fn provisioned(&self, class: &StorageClassFacts, claim: &ClaimFacts) -> Places {
        let topologies: Vec<_> = class.topologies.iter().cloned().collect();
        let driver = self.drivers.get(&class.provisioner);
        let size = claim
            .size
            .filter(|_| driver.is_some_and(|it| it.tells_capacity));
        let Some(size) = size else {
            return Vec::from([topologies]);
        };
        let has_room = |capacity: &&CapacityFacts| {
            capacity.class == class.name && capacity.largest.is_some_and(|most| most >= size)
        };
        let with_room = self.capacities.values().filter(has_room);
        let reached = with_room.filter_map(|capacity| capacity.nodes.as_ref());
        let alternatives = reached.map(|nodes| {
            let mut all = topologies.clone();
            all.extend(term_of(nodes).map(|term| Vec::from([term])));
            all
        });
        alternatives.collect()
    }
}

/// Where a volume is.
fn reached_from(volume: &VolumeFacts) -> Vec<Vec<NodeSelectorTerm>> {
    volume.affinity.iter().cloned().collect()
}

/// A selector of labels as a term for nodes; `None`: it selects all.
fn term_of(selector: &LabelSelector) -> Option<NodeSelectorTerm> {
    let equal = selector.match_labels.iter();
    let equal = equal.map(|(key, value)| MatchRequirement {
        key: key.clone(),
        operator: MatchOperator::In,
        values: Vec::from([value.clone()]),
    });
    let expressions = selector.match_expressions.iter();
    let expressions = expressions.map(|requirement| MatchRequirement {
        key: requirement.key.clone(),
        operator: requirement.operator,
        values: requirement.values.clone(),
    });
    let match_expressions: Vec<_> = equal.chain(expressions).collect();
    (!match_expressions.is_empty()).then(|| NodeSelectorTerm {
        match_expressions,
        match_fields: Vec::new(),
    })
}

/// Whether a volume that is kept for a claim is what the claim asks for.
///
/// Source: `FindMatchingVolume` of Kubernetes.
fn suits(volume: &VolumeFacts, claim: &ClaimFacts) -> bool {
    let of = volume.claim.as_ref().and_then(|of| of.uid);
    of.is_none_or(|uid| uid == claim.uid)
        && volume.class == claim.class
        && volume.size >= claim.size.unwrap_or(0)
        && volume.is_block == claim.is_block
        && volume.attributes_class == claim.attributes_class
        && !volume.is_deleting
}

/// The zones and regions of a volume. A label may name several; one that names an empty zone counts
/// for nothing.
fn zones(volume: &VolumeFacts) -> impl Iterator<Item = ZoneLabel> {
    ZONE_LABELS.into_iter().filter_map(|key| {
        let text = label(&volume.labels, key)?;
        let values = text.split("__").map(str::trim);
        let mut values: Vec<Box<str>> = values.map(Into::into).collect();
        values.sort();
        let is_whole = values.iter().all(|value| !value.is_empty());
        is_whole.then(|| ZoneLabel {
            key: key.into(),
            values,
        })
    })
}
