//! Claims, volumes, and what says where there can be volumes.
//!
//! These objects have no list of problems. What cannot be read of them makes them fit less, never
//! more: a quantity counts as absent, and a selector or term that is not read in full selects
//! nothing.

pub(super) mod taken_over;

use super::problems::Problems;
use super::quantity::{self, QuantityError};
use super::{Converter, Watched, identity, limits, selector};
use crate::kube::objects::{
    self, CsiDriver, CsiNode, CsiStorageCapacity, Meta, Pairs, PersistentVolume,
    PersistentVolumeClaim, Quantity, StorageClass, VolumeAttachment,
};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{
    AMOUNT_MAX, AccessModes, Amount, AttachmentFacts, CapacityFacts, ClaimFacts, ClaimReference,
    CsiDriverFacts, CsiNodeFacts, LabelSelector, MatchOperator, MatchRequirement, NodeSelectorTerm,
    SelectorRequirement, StorageClassFacts, StorageFacts, StorageKind, Uid, VolumeFacts,
};

/// The class of a claim or a volume, as it was written before there was a field for it.
pub(super) const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// On a claim that is bound.
pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// On a claim: the node where its volume is to be made.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// `volumeBindingMode` of classes whose volumes are made where a pod is to be.
const WAITS: &str = "WaitForFirstConsumer";

/// `volumeMode` of volumes without a file system.
const BLOCK: &str = "Block";

/// Implements [`Watched`] for a kind: where it is listed, and what reads its facts.
macro_rules! watched {
    ($($type:ident: $kind:ident, $path:literal, $facts:ident;)+) => {$(
        impl Watched for $type {
            const KIND: Kind = Kind::Storage(StorageKind::$kind);
            const PATH: &'static str = $path;

            fn meta(&self) -> &Meta {
                &self.metadata
            }

            fn key(&self) -> ObjectKey {
                let Meta { namespace, name, .. } = &self.metadata;
                ObjectKey::Storage(StorageKind::$kind, namespace.clone(), name.clone())
            }

            fn convert(self, _converter: &mut Converter) -> Option<Object> {
                Some(Object::Storage(StorageFacts::$kind($facts(self))))
            }
        }
    )+};
}

watched! {
    PersistentVolumeClaim: Claim, "/api/v1/persistentvolumeclaims", claim;
    PersistentVolume: Volume, "/api/v1/persistentvolumes", volume;
    StorageClass: Class, "/apis/storage.k8s.io/v1/storageclasses", class;
    CsiNode: CsiNode, "/apis/storage.k8s.io/v1/csinodes", csi_node;
    CsiDriver: CsiDriver, "/apis/storage.k8s.io/v1/csidrivers", csi_driver;
    CsiStorageCapacity: Capacity, "/apis/storage.k8s.io/v1/csistoragecapacities", capacity;
    VolumeAttachment: Attachment, "/apis/storage.k8s.io/v1/volumeattachments", attachment;
}

/// The facts of a claim.
fn claim(claim: PersistentVolumeClaim) -> ClaimFacts {
    let PersistentVolumeClaim {
        metadata,
        spec,
        status,
    } = claim;
    let annotations = &metadata.annotations;
    ClaimFacts {
        uid: identity::uid("PersistentVolumeClaim", &metadata),
        class: class_name(&metadata, spec.storage_class_name),
        volume: named(spec.volume_name),
        bind_completed: annotations.get(BIND_COMPLETED).is_some(),
        is_lost: status.phase.as_deref() == Some("Lost"),
        is_deleting: metadata.deletion_timestamp.is_some(),
        size: storage(&spec.resources.requests),
        access: access_modes(spec.access_modes.as_deref()),
        is_block: spec.volume_mode.as_deref() == Some(BLOCK),
        selector: spec.selector.map(|selector| {
            let read = label_selector(selector);
            read.unwrap_or_else(nothing)
        }),
        attributes_class: spec.volume_attributes_class_name.unwrap_or_default(),
        selected_node: named(annotations.get(SELECTED_NODE).map(Into::into)),
        pod: pod(&metadata),
        namespace: metadata.namespace,
        name: metadata.name,
    }
}

/// The pod that controls a claim.
fn pod(meta: &Meta) -> Option<Uid> {
    let mut owners = meta.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    let is_pod = &*owner.kind == "Pod" && &*owner.api_version == "v1";
    is_pod.then(|| identity::named_uid("Pod", &meta.namespace, &owner.name, &owner.uid))
}

/// The facts of a volume.
fn volume(volume: PersistentVolume) -> VolumeFacts {
    let PersistentVolume {
        metadata,
        spec,
        status,
    } = volume;
    let csi = spec.csi.as_ref();
    let csi = csi.map(|csi| (csi.driver.clone(), csi.volume_handle.clone()));
    let in_tree = spec.in_tree().filter(|_| csi.is_none());
    let translated =
        in_tree.and_then(|(field, disk)| taken_over::by(field, disk, &metadata.labels.0));
    let is_in_tree = translated.is_some();
    let field = in_tree.map(|(field, _)| field);
    let required = spec.node_affinity.and_then(|affinity| affinity.required);
    let affinity: Option<Vec<NodeSelectorTerm>> = required.map(|required| {
        let terms = required.node_selector_terms.unwrap_or_default();
        let terms = terms.iter().take(limits::ENTRIES);
        terms.map(node_selector_term).collect()
    });
    let affinity_once_bound = field.and_then(|field| {
        let (labels, terms) = (&metadata.labels.0, affinity.as_deref());
        taken_over::affinity_once_bound(field, is_in_tree, labels, terms)
    });
    VolumeFacts {
        class: class_name(&metadata, spec.storage_class_name),
        affinity,
        affinity_once_bound,
        claim: spec.claim_ref.and_then(claim_reference),
        size: storage(&spec.capacity).unwrap_or(0),
        access: access_modes(spec.access_modes.as_deref()),
        is_block: spec.volume_mode.as_deref() == Some(BLOCK),
        attributes_class: spec.volume_attributes_class_name.unwrap_or_default(),
        is_available: status.phase.as_deref() == Some("Available"),
        is_deleting: metadata.deletion_timestamp.is_some(),
        is_in_tree,
        csi: csi.or(translated),
        version: metadata.resource_version,
        labels: {
            let mut labels = metadata.labels.0;
            labels.truncate(limits::PAIRS);
            labels
        },
        name: metadata.name,
    }
}

/// The facts of a VolumeAttachment.
fn attachment(attachment: VolumeAttachment) -> AttachmentFacts {
    let VolumeAttachment { metadata, spec } = attachment;
    AttachmentFacts {
        name: metadata.name,
        driver: spec.attacher,
        node: spec.node_name,
        volume: spec.source.persistent_volume_name,
    }
}

fn claim_reference(reference: objects::ClaimRef) -> Option<ClaimReference> {
    let objects::ClaimRef {
        namespace,
        name,
        uid,
    } = reference;
    let is_certain = !uid.is_empty();
    let uid = identity::named_uid("PersistentVolumeClaim", &namespace, &name, &uid);
    (!name.is_empty()).then(|| ClaimReference {
        namespace,
        name,
        uid: is_certain.then_some(uid),
    })
}

/// A term of a volume's node affinity; one that holds nowhere if it is not read in full.
fn node_selector_term(term: &objects::NodeSelectorTerm) -> NodeSelectorTerm {
    let read = selector::node_selector_term(term, "", &mut Problems::default());
    let count =
        |list: Option<&[objects::Requirement]>| list.map_or(0, <[objects::Requirement]>::len);
    let is_whole = read.match_expressions.len() == count(term.match_expressions.as_deref())
        && read.match_fields.len() == count(term.match_fields.as_deref());
    if is_whole {
        return read;
    }
    let nothing = MatchRequirement {
        key: "".into(),
        operator: MatchOperator::In,
        values: Vec::new(),
    };
    NodeSelectorTerm {
        match_expressions: vec![nothing],
        match_fields: Vec::new(),
    }
}

/// The facts of a class.
fn class(class: StorageClass) -> StorageClassFacts {
    let topologies = class.allowed_topologies.unwrap_or_default();
    let topologies: Vec<_> = topologies
        .into_iter()
        .take(limits::ENTRIES)
        .map(topology_term)
        .collect();
    StorageClassFacts {
        name: class.metadata.name,
        provisioner: class.provisioner,
        waits: class.volume_binding_mode.as_deref() == Some(WAITS),
        topologies: (!topologies.is_empty()).then_some(topologies),
    }
}

fn topology_term(term: objects::TopologyTerm) -> NodeSelectorTerm {
    let requirements = term.match_label_expressions.unwrap_or_default();
    let requirements = requirements
        .into_iter()
        .map(|requirement| MatchRequirement {
            key: requirement.key,
            operator: MatchOperator::In,
            values: requirement.values.unwrap_or_default(),
        });
    NodeSelectorTerm {
        match_expressions: requirements.collect(),
        match_fields: Vec::new(),
    }
}

/// The facts of a CSINode.
fn csi_node(node: CsiNode) -> CsiNodeFacts {
    let drivers = node.spec.drivers.unwrap_or_default().into_iter();
    let drivers = drivers.take(limits::ENTRIES).map(|driver| {
        let count = driver.allocatable.and_then(|allocatable| allocatable.count);
        let count = count.map(|count| u32::try_from(count.max(0)).unwrap_or(u32::MAX));
        (driver.name, count)
    });
    CsiNodeFacts {
        drivers: drivers.collect(),
        migrated: taken_over::migrated(&node.metadata),
        name: node.metadata.name,
    }
}

/// The facts of a CSIDriver.
fn csi_driver(driver: CsiDriver) -> CsiDriverFacts {
    CsiDriverFacts {
        name: driver.metadata.name,
        tells_capacity: driver.spec.storage_capacity == Some(true),
    }
}

/// The facts of a CSIStorageCapacity.
fn capacity(capacity: CsiStorageCapacity) -> CapacityFacts {
    let sizes = [capacity.maximum_volume_size, capacity.capacity];
    CapacityFacts {
        namespace: capacity.metadata.namespace,
        name: capacity.metadata.name,
        class: capacity.storage_class_name,
        largest: sizes.iter().flatten().find_map(size),
        nodes: capacity.node_topology.and_then(label_selector),
    }
}

/// The class of a claim or a volume; empty: none.
fn class_name(meta: &Meta, field: Option<Box<str>>) -> Box<str> {
    let annotated = meta.annotations.get(CLASS).map(Into::into);
    annotated.or(field).unwrap_or_default()
}

/// A name; an empty one names nothing.
fn named(name: Option<Box<str>>) -> Option<Box<str>> {
    name.filter(|name| !name.is_empty())
}

/// `storage` of requests or of a capacity, in bytes.
fn storage(amounts: &Pairs<Quantity>) -> Option<Amount> {
    amounts.get("storage").and_then(size)
}

fn size(quantity: &Quantity) -> Option<Amount> {
    match quantity::amount("storage", &quantity.0) {
        Ok(amount) => Some(amount),
        Err(QuantityError::TooLarge) => Some(AMOUNT_MAX),
        Err(QuantityError::Malformed | QuantityError::Negative) => None,
    }
}

/// Modes that are not known are none that a pod could ask for.
fn access_modes(modes: Option<&[Box<str>]>) -> AccessModes {
    let bits = modes.unwrap_or_default().iter().map(|mode| match &**mode {
        "ReadWriteOnce" => AccessModes::ONE_NODE.0,
        "ReadOnlyMany" => AccessModes::READ_ONLY.0,
        "ReadWriteMany" => AccessModes::MANY.0,
        "ReadWriteOncePod" => AccessModes::ONE_POD.0,
        _ => 0,
    });
    AccessModes(bits.fold(0, |all, bit| all | bit))
}

/// A selector; `None`: it cannot be read in full.
fn label_selector(selector: objects::LabelSelector) -> Option<LabelSelector> {
    let mut problems = Problems::default();
    let read = selector::label_selector(selector, "", &mut problems);
    problems.into_vec().is_empty().then_some(read)
}

/// A selector that nothing matches.
fn nothing() -> LabelSelector {
    LabelSelector {
        match_labels: Vec::new(),
        match_expressions: vec![SelectorRequirement {
            key: "".into(),
            operator: MatchOperator::In,
            values: Vec::new(),
        }],
    }
}

#[cfg(test)]
mod tests;
