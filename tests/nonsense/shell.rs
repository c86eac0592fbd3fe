//! The way of one object: text, decoding, conversion.

use gpu_batch::kube::convert::{Converter, Watched, from_value};
use gpu_batch::kube::objects::{
    CsiDriver, CsiNode, CsiStorageCapacity, DisruptionBudget, Job, Namespace, NativePodGroup, Node,
    NodeResourceTopology, PersistentVolume, PersistentVolumeClaim, Pod, PodGroup, PriorityClass,
    Queue, StorageClass, Topology, VolumeAttachment,
};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{Problem, StorageKind};
use serde_json::Value;

/// What a watch makes of an object.
#[derive(Debug)]
pub(crate) enum Seen {
    /// A fact.
    Fact(ObjectKey, Box<Object>),
    /// A pod of another scheduler that has ended.
    Ended(ObjectKey),
    /// Text that the API server would never send.
    Unreadable,
}

/// Decodes and converts, as a watch does.
pub(crate) fn see(kind: Kind, text: &str, converter: &mut Converter) -> Seen {
    match kind {
        Kind::Node => decode::<Node>(text, converter),
        Kind::Pod => decode::<Pod>(text, converter),
        Kind::Queue => decode::<Queue>(text, converter),
        Kind::PodGroup => decode::<PodGroup>(text, converter),
        Kind::NativePodGroup => decode::<NativePodGroup>(text, converter),
        Kind::Topology => decode::<Topology>(text, converter),
        Kind::PriorityClass => decode::<PriorityClass>(text, converter),
        Kind::Namespace => decode::<Namespace>(text, converter),
        Kind::Job => decode::<Job>(text, converter),
        Kind::DisruptionBudget => decode::<DisruptionBudget>(text, converter),
        Kind::Numa => decode::<NodeResourceTopology>(text, converter),
        Kind::Storage(kind) => match kind {
            StorageKind::Claim => decode::<PersistentVolumeClaim>(text, converter),
            StorageKind::Volume => decode::<PersistentVolume>(text, converter),
            StorageKind::Class => decode::<StorageClass>(text, converter),
            StorageKind::CsiNode => decode::<CsiNode>(text, converter),
            StorageKind::CsiDriver => decode::<CsiDriver>(text, converter),
            StorageKind::Capacity => decode::<CsiStorageCapacity>(text, converter),
            StorageKind::Attachment => decode::<VolumeAttachment>(text, converter),
        },
    }
}

fn decode<T: Watched>(text: &str, converter: &mut Converter) -> Seen {
    let Ok(object) = serde_json::from_str::<T>(text) else {
        return Seen::Unreadable;
    };
    let key = object.key();
    match object.convert(converter) {
        Some(fact) => Seen::Fact(key, Box::new(fact)),
        None => Seen::Ended(key),
    }
}

/// Checks an object as one in a file: it may be refused, but then with a field and a sentence.
pub(crate) fn check_file(kind: Kind, mut object: Value, converter: &mut Converter) {
    let (version, name) = kind.api_type();
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), version.into());
        fields.insert("kind".to_owned(), name.into());
    }
    if let Err(refused) = from_value(object, converter) {
        let told = !refused.field.is_empty() && !refused.message.is_empty();
        assert!(told, "refused without a reason: {refused:?}");
    }
}

/// The problems of a fact.
pub(crate) fn problems(object: &Object) -> &[Problem] {
    match object {
        Object::Node(facts) => &facts.problems,
        Object::Pod(facts) => &facts.problems,
        Object::Queue(facts) => &facts.problems,
        Object::PodGroup(facts) => &facts.problems,
        Object::Topology(facts) => &facts.problems,
        Object::Numa(facts) => &facts.problems,
        Object::Namespace(facts) => &facts.problems,
        Object::DisruptionBudget(facts) => &facts.problems,
        Object::PriorityClass(_) | Object::Job(_) | Object::Storage(_) => &[],
    }
}
