//! Codecs of the facts about claims and volumes.

use super::{Codec, Decoder, Encoder, Unreadable, fields, variants};
use gpu_batch_policies::facts::{
    AccessModes, AttachmentFacts, CapacityFacts, ClaimFacts, ClaimReference, ClaimUse,
    CsiDriverFacts, CsiNodeFacts, SharedVolume, StorageClassFacts, StorageFacts, StorageKind,
    VolumeFacts, VolumeNeeds, VolumePlaces, ZoneLabel,
};

impl Codec for AccessModes {
    fn encode(&self, out: &mut Encoder) {
        self.0.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, Unreadable> {
        u8::decode(input).map(Self)
    }
}

fields! {
    ClaimUse { name, is_ephemeral }
    ClaimFacts {
        namespace, name, uid, class, volume, bind_completed, is_lost, is_deleting, size, access,
        is_block, selector, attributes_class, selected_node, pod,
    }
    VolumeFacts {
        name, version, labels, affinity, affinity_once_bound, claim, class, size, access, is_block,
        attributes_class, is_available, is_deleting, csi, is_in_tree,
    }
    ClaimReference { namespace, name, uid }
    StorageClassFacts { name, provisioner, waits, topologies }
    CsiNodeFacts { name, drivers, migrated }
    AttachmentFacts { name, driver, node, volume }
    CsiDriverFacts { name, tells_capacity }
    CapacityFacts { namespace, name, class, largest, nodes }
    VolumeNeeds { missing, places, zones, shared }
    SharedVolume { driver, handle }
    VolumePlaces { is_bound, only_on, any_of }
    ZoneLabel { key, values }
}

variants! {
    StorageKind { 0 Claim, 1 Volume, 2 Class, 3 CsiNode, 4 CsiDriver, 5 Capacity, 6 Attachment }
    StorageFacts {
        0 Claim { 0: claim },
        1 Volume { 0: volume },
        2 Class { 0: class },
        3 CsiNode { 0: node },
        4 CsiDriver { 0: driver },
        5 Capacity { 0: capacity },
        6 Attachment { 0: attachment },
    }
}
