//! Claims and volumes: where volumes are to be made, and for which claims they are kept.

use super::status::OTHER_UID;
use super::{Answer, ApiServer, Conflict, Name, found};
use gpu_batch_policies::command::{KeepVolume, SelectNode};
use gpu_batch_policies::event::{Kind, Object};
use gpu_batch_policies::facts::{ClaimFacts, StorageFacts, StorageKind, VolumeFacts};

impl ApiServer {
    /// Says where the volume of a claim is to be made. As in Kubernetes the node is not looked at.
    pub(super) fn select_node(&mut self, select: SelectNode) -> Answer {
        let name = Name {
            kind: Kind::Storage(StorageKind::Claim),
            namespace: select.namespace,
            name: select.name,
        };
        let Some(old) = self.get(&name).cloned() else {
            return Answer::NotFound;
        };
        let Object::Storage(StorageFacts::Claim(claim)) = &old.object else {
            return Answer::NotFound;
        };
        if claim.uid != select.uid {
            return Answer::Invalid(OTHER_UID);
        }
        let claim = StorageFacts::Claim(ClaimFacts {
            selected_node: select.node,
            ..claim.clone()
        });
        let status = old.status.clone();
        found(self.change(name, &old, Object::Storage(claim), status))
    }

    /// Keeps a volume for a claim, or frees it, if it is as it was seen.
    pub(super) fn keep_volume(&mut self, keep: KeepVolume) -> Answer {
        let name = Name {
            kind: Kind::Storage(StorageKind::Volume),
            namespace: "".into(),
            name: keep.volume,
        };
        let Some(old) = self.get(&name).cloned() else {
            return Answer::NotFound;
        };
        let Object::Storage(StorageFacts::Volume(volume)) = &old.object else {
            return Answer::NotFound;
        };
        if volume.version != keep.version {
            return Answer::Conflict(Conflict::Version);
        }
        let volume = StorageFacts::Volume(VolumeFacts {
            claim: keep.claim,
            ..volume.clone()
        });
        let status = old.status.clone();
        found(self.change(name, &old, Object::Storage(volume), status))
    }
}
