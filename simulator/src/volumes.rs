//! What the volumes of simulated worlds are like.

use crate::objects::NAMESPACE;
use gpu_batch_policies::facts::{
    AccessModes, ClaimFacts, MatchOperator, MatchRequirement, NodeSelectorTerm, Uid,
};

/// The driver of all volumes.
pub(crate) const DRIVER: &str = "disks.example.com";
/// The size of a volume, in bytes.
const SIZE: u64 = 1 << 30;

/// A claim without a volume.
pub(crate) fn claim(name: &str, class: &str, access: AccessModes) -> ClaimFacts {
    ClaimFacts {
        namespace: NAMESPACE.into(),
        name: name.into(),
        uid: Uid(0),
        class: class.into(),
        volume: None,
        bind_completed: false,
        is_lost: false,
        is_deleting: false,
        size: Some(SIZE),
        access,
        is_block: false,
        selector: None,
        attributes_class: "".into(),
        selected_node: None,
        pod: None,
    }
}

/// A term that selects the nodes of a zone.
pub(crate) fn zone_is(zone: &str) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: vec![MatchRequirement {
            key: "zone".into(),
            operator: MatchOperator::In,
            values: vec![zone.into()],
        }],
        match_fields: Vec::new(),
    }
}
