//! Claims, whose volumes are made as a provisioner makes them.

use super::World;
use gpu_batch_policies::command::SelectNode;
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
}
