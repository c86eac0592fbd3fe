//! Claims whose volumes are to be made or kept before their pods are bound.

use super::Named;
use super::users::key;
use crate::facts::{ClaimUse, Uid};
use crate::filter;
use crate::ids::{GangId, NodeId, PodId};
use crate::state::ClusterState;
use crate::state::pod::Pod;
use alloc::{boxed::Box, format, vec::Vec};

/// A claim whose volume is not ready yet.
#[derive(Debug)]
pub(crate) struct OpenClaim {
    pub(crate) name: Named,
    pub(crate) uid: Uid,
    /// A volume was chosen or made, and is being bound.
    pub(crate) has_volume: bool,
    /// The claim was told the node on which its pod has a place, or a volume is kept for it.
    pub(crate) is_selected: bool,
    /// The free volume that the claim is to get; `None`: one is made, or it has one.
    pub(crate) chosen: Option<Box<str>>,
}

impl ClusterState {
    /// Whether volumes are to be made for claims of a pod before it is bound. kube-scheduler does
    /// that for pods that it asks to bind.
    pub(crate) fn has_open_claims(&self, pod: PodId) -> bool {
        let record = &self.pods[pod];
        let claims = record.claims.as_deref().filter(|_| record.is_prepared());
        claims.into_iter().flatten().any(|claim| {
            let name = key(&record.namespace, claim);
            let facts = self.storage.claim(&name);
            facts.is_some_and(|facts| !facts.is_bound())
        })
    }

    /// The claims of a pod that have no volume yet.
    ///
    /// # Errors
    /// Why the pod cannot be on the node, as a sentence without the final point.
    pub(crate) fn open_claims(&self, pod: PodId, node: NodeId) -> Result<Vec<OpenClaim>, Box<str>> {
        let record = &self.pods[pod];
        let mut open = Vec::new();
        for claim in record.claims.as_deref().into_iter().flatten() {
            let name = key(&record.namespace, claim);
            let facts = self.storage.claim(&name);
            let facts = facts.filter(|facts| !facts.is_lost && !facts.is_deleting);
            let Some(facts) = facts else {
                return Err(format!("PersistentVolumeClaim {} is lost", claim.name).into());
            };
            self.check_first_user(record, &name, facts, claim)
                .map_err(|why| format!("PersistentVolumeClaim {} {why}", claim.name))?;
            let volume = facts.volume.as_ref().filter(|_| facts.is_bound());
            let volume = volume.and_then(|volume| self.storage.volumes.get(volume));
            if volume.is_some() {
                self.check_volume(record, claim, node)?;
                continue;
            }
            let node = &self.nodes[node].name;
            let chosen = self.storage.stock.chosen_for(&name).map(Box::from);
            let is_kept = chosen.is_none() && self.storage.kept_for(facts).next().is_some();
            let is_waited_for = is_kept || chosen.is_some() || facts.volume.is_some();
            if !is_waited_for && self.storage.made_for(facts).is_none() {
                let claim = &claim.name;
                return Err(format!(
                    "the volume for PersistentVolumeClaim {claim} is gone, or another claim has it"
                )
                .into());
            }
            open.push(OpenClaim {
                name,
                uid: facts.uid,
                has_volume: facts.volume.is_some(),
                is_selected: facts.selected_node.as_ref() == Some(node) || is_kept,
                chosen,
            });
        }
        Ok(open)
    }

    /// Whether members of a gang have places, and wait for volumes.
    pub(crate) fn is_preparing(&self, gang: GangId) -> bool {
        let members = self.gangs[gang].members.iter();
        let mut own = members.filter_map(|pod| self.pods[*pod].own.as_ref());
        own.any(|own| own.prepares)
    }

    /// Checks that the volume of a claim can be used on a node.
    fn check_volume(&self, pod: &Pod, claim: &ClaimUse, node: NodeId) -> Result<(), Box<str>> {
        let mut needs = self.volume_needs(pod, core::slice::from_ref(claim));
        // A free volume was chosen by its affinity alone, as kube-scheduler does.
        needs.zones.clear();
        let known = self.nodes[node].known.as_ref();
        match known.map(|known| filter::allows_volumes(&needs, &known.facts)) {
            Some(true) | None => Ok(()),
            Some(false) => {
                let (claim, node) = (&claim.name, &self.nodes[node].name);
                let message = format!(
                    "the volume of PersistentVolumeClaim {claim} cannot be used on node {node}"
                );
                Err(message.into())
            }
        }
    }
}
