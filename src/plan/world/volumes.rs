//! Claims, whose volumes are made as a provisioner makes them, or kept as they are.

use super::World;
use gpu_batch_policies::command::{KeepVolume, SelectNode};
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::StorageFacts;

impl World {
    /// Makes the volume of a claim at the node that was selected, and binds the claim to it. The
    /// pod is bound in the same cycle, so the volume needs not say where it is.
    pub(super) fn provision(&mut self, select: SelectNode, events: &mut Vec<Event>) {
        let Some(claim) = self.claims.get_mut(&select.uid) else {
            return;
        };
        claim.selected_node = select.node;
        let volume = claim.provision().map(StorageFacts::Volume);
        events.extend(volume.map(|volume| Object::Storage(volume).into()));
        events.push(Object::Storage(StorageFacts::Claim(claim.clone())).into());
    }

    /// Keeps a volume for a claim and binds the two.
    pub(super) fn keep_volume(&mut self, keep: KeepVolume, events: &mut Vec<Event>) {
        let Some(volume) = self.volumes.get_mut(&keep.volume) else {
            return;
        };
        let of = keep.claim.as_ref().and_then(|claim| claim.uid);
        let claim = of.and_then(|uid| self.claims.get_mut(&uid));
        let bound = volume.keep(keep.claim, claim).into_iter();
        events.extend(bound.map(|facts| Object::Storage(facts).into()));
    }
}
