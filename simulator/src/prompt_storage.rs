//! Claims and volumes of worlds in which everything that is asked of Kubernetes about them is done
//! at once: volumes are made where claims say, and claims are bound to volumes that are kept for
//! them.

use gpu_batch_policies::command::{KeepVolume, SelectNode};
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{ClaimFacts, StorageFacts, Uid, VolumeFacts};
use std::collections::BTreeMap;

/// The claims and volumes that the engine was told of. One that is gone is never asked for again.
#[derive(Debug, Default)]
pub struct PromptStorage {
    claims: BTreeMap<Uid, ClaimFacts>,
    volumes: BTreeMap<Box<str>, VolumeFacts>,
}

impl PromptStorage {
    /// Notes an object that the engine is told of, if it is a claim or a volume.
    pub fn note(&mut self, object: &Object) {
        match object {
            Object::Storage(StorageFacts::Claim(claim)) => {
                self.claims.insert(claim.uid, claim.clone());
            }
            Object::Storage(StorageFacts::Volume(volume)) => {
                self.volumes.insert(volume.name.clone(), volume.clone());
            }
            _ => {}
        }
    }

    /// Makes the volume of a claim at the node that is selected, unless the claim has one. The
    /// volume does not say where it is: the pod is bound next. Returns the objects as they are
    /// now; `None`: there is no such claim.
    pub fn select_node(&mut self, select: SelectNode) -> Option<Vec<Object>> {
        let claim = self.claims.get_mut(&select.uid)?;
        claim.selected_node = select.node;
        let made = claim.provision().map(StorageFacts::Volume);
        let now = made.into_iter().chain([StorageFacts::Claim(claim.clone())]);
        Some(now.map(Object::Storage).collect())
    }

    /// Keeps a volume for a claim and binds the two, or frees the volume. Returns the objects as
    /// they are now; `None`: there is no such volume.
    pub fn keep_volume(&mut self, keep: KeepVolume) -> Option<Vec<Object>> {
        let volume = self.volumes.get_mut(&keep.volume)?;
        let of = keep.claim.as_ref().and_then(|claim| claim.uid);
        let claim = of.and_then(|uid| self.claims.get_mut(&uid));
        let now = volume.keep(keep.claim, claim).into_iter();
        Some(now.map(Object::Storage).collect())
    }
}
