//! The provisioner, which makes volumes where claims say.

use super::Cluster;
use crate::api_server::{Answer, Request, Sort, Version};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{
    ClaimFacts, ClaimReference, StorageFacts, StorageKind, UnixMs, VolumeFacts,
};

impl Cluster {
    /// Makes the volumes of claims for which a node was selected since a version, and binds the
    /// claims to them. The volumes are reached from every node.
    pub(super) fn provision(&mut self, after: Version, now_ms: UnixMs) {
        let kind = Kind::Storage(StorageKind::Claim);
        let Answer::Changes { changes, .. } =
            self.api.handle(Request::Watch { kind, after }, now_ms)
        else {
            return;
        };
        for change in changes {
            let is_there = change.sort != Sort::Deleted;
            if let Object::Storage(StorageFacts::Claim(claim)) = &change.object.object
                && is_there
                && claim.selected_node.is_some()
                && claim.volume.is_none()
            {
                let (claim, volume) = provisioned(claim);
                self.put(Object::Storage(volume), now_ms);
                self.put(Object::Storage(claim), now_ms);
            }
        }
    }
}

/// A claim with its new volume, and the volume.
pub(crate) fn provisioned(claim: &ClaimFacts) -> (StorageFacts, StorageFacts) {
    let volume = VolumeFacts {
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
    };
    let claim = ClaimFacts {
        volume: Some(volume.name.clone()),
        bind_completed: true,
        ..claim.clone()
    };
    (StorageFacts::Claim(claim), StorageFacts::Volume(volume))
}
