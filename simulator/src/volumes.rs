//! What the volumes of simulated worlds are like.

use crate::objects::NAMESPACE;
use gpu_batch_policies::facts::{
    AccessModes, ClaimFacts, MatchOperator, MatchRequirement, NodeSelectorTerm, VolumeFacts,
};

/// The driver of all volumes.
pub(crate) const DRIVER: &str = "disks.example.com";
/// The size of a volume, in bytes.
const SIZE: u64 = 1 << 30;

/// A claim without a volume.
pub(crate) fn claim(name: &str, class: &str, access: AccessModes) -> ClaimFacts {
    ClaimFacts {
        class: class.into(),
        size: Some(SIZE),
        access,
        ..ClaimFacts::new(NAMESPACE, name)
    }
}

/// A free volume of so many GiB, which nodes reach that one of the terms selects; `None`: all do.
pub(crate) fn disk(
    name: &str,
    class: &str,
    gib: u64,
    affinity: Option<Vec<NodeSelectorTerm>>,
) -> VolumeFacts {
    VolumeFacts {
        affinity,
        class: class.into(),
        ..VolumeFacts::new(name, gib << 30)
    }
}

/// A term that selects the nodes of a zone.
pub(crate) fn zone_is(zone: &str) -> NodeSelectorTerm {
    label_is("zone", zone)
}

/// A term that selects the nodes with a label.
pub(crate) fn label_is(key: &str, value: &str) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: vec![MatchRequirement {
            key: key.into(),
            operator: MatchOperator::In,
            values: vec![value.into()],
        }],
        match_fields: Vec::new(),
    }
}
