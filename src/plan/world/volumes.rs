//! Claims, whose volumes are made as a provisioner makes them.

use super::World;
use gpu_batch_policies::command::SelectNode;
use gpu_batch_policies::event::{Event, Object};
use gpu_batch_policies::facts::{ClaimFacts, ClaimReference, StorageFacts, VolumeFacts};

impl World {
    /// Makes the volume of a claim at the node that was selected, and binds the claim to it. The
    /// pod is bound in the same cycle, so the volume needs not say where it is.
    pub(super) fn provision(&mut self, select: SelectNode, events: &mut Vec<Event>) {
        let Some(claim) = self.claims.get_mut(&select.uid) else {
            return;
        };
        claim.selected_node = select.node;
        if claim.selected_node.is_some() && claim.volume.is_none() {
            let volume = new_volume(claim);
            claim.volume = Some(volume.name.clone());
            claim.bind_completed = true;
            events.push(Object::Storage(StorageFacts::Volume(volume)).into());
        }
        events.push(Object::Storage(StorageFacts::Claim(claim.clone())).into());
    }
}

/// A volume for a claim, which every node reaches.
fn new_volume(claim: &ClaimFacts) -> VolumeFacts {
    VolumeFacts {
        name: format!("pvc-{}", claim.uid).into(),
        labels: Vec::new(),
        affinity: None,
        claim: Some(ClaimReference {
            namespace: claim.namespace.clone(),
            name: claim.name.clone(),
            uid: Some(claim.uid),
        }),
        class: claim.class.clone(),
        size: claim.size.unwrap_or(0),
        access: claim.access,
        is_block: claim.is_block,
        attributes_class: claim.attributes_class.clone(),
        is_available: false,
        is_deleting: false,
        csi: None,
    }
}
