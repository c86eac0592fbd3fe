//! Nodes.

use super::problems::Problems;
use super::{Converter, Watched, hami, identity, limits, resources, shape};
use crate::kube::objects::{
    self, ContainerImage, Meta, Node, NodeStatus, Pairs, Quantity, protobuf,
};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{
    Amounts, CardClosed, CardFacts, ConditionStatus, HAMI_REGISTER, Labels, NodeCondition,
    NodeFacts, NodeFeature, NodeImage, Readiness, Taint, TaintEffect,
};

impl Watched for Node {
    const KIND: Kind = Kind::Node;
    const PATH: &'static str = "/api/v1/nodes";
    const PROTOBUF: Option<&'static protobuf::Forms> = Some(&protobuf::NODE_FORMS);

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::Node(
            self.metadata.name.clone(),
            identity::uid("Node", &self.metadata),
        )
    }

    fn convert(self, converter: &mut Converter) -> Option<Object> {
        Some(Object::Node(node(self, converter)))
    }
}

/// The facts of a node.
///
/// A node with more labels or annotations than there may be is cordoned here: it is not known which
/// pods the node would fit with those that are left out.
pub(super) fn node(node: Node, converter: &mut Converter) -> NodeFacts {
    let mut problems = Problems::default();
    let uid = identity::uid("Node", &node.metadata);
    let taints = taints(
        node.spec.taints.as_deref().unwrap_or_default(),
        &mut problems,
    );
    // An empty list is lost on the way to the store, so that the API server fills it in, too.
    let allocatable = node
        .status
        .allocatable
        .as_ref()
        .filter(|amounts| !amounts.is_empty())
        .unwrap_or(&node.status.capacity);
    let allocatable = amounts(allocatable, "status.allocatable", &mut problems);
    let capacity = amounts(&node.status.capacity, "status.capacity", &mut problems);
    let declared = node.status.declared_features.as_deref();
    let features = features(declared.unwrap_or_default());
    let readiness = readiness(&node.status, converter);
    let conditions = conditions(&node.status, converter);
    let cards = cards(&node.metadata, &allocatable, &mut problems);
    let card_links = hami::links(&node.metadata.annotations, &cards, &mut problems);
    let card_lock = hami::lock(&node.metadata.annotations);
    let (annotations, annotations_whole) = annotations(&node.metadata, &mut problems);
    let mut labels = node.metadata.labels.0;
    let labels_whole = labels.len() <= limits::PAIRS;
    problems.at_most(limits::PAIRS, &labels, "metadata.labels");
    labels.truncate(limits::PAIRS);
    converter.impossible = problems.impossible();
    NodeFacts {
        name: node.metadata.name,
        uid,
        labels,
        annotations,
        taints,
        unschedulable: node.spec.unschedulable == Some(true) || !labels_whole || !annotations_whole,
        readiness,
        conditions,
        allocatable,
        capacity,
        features,
        cards,
        card_links,
        card_lock,
        images: match converter.preferences.image_locality {
            true => images(node.status.images.unwrap_or_default()),
            false => Vec::new(),
        },
        problems: problems.into_vec(),
    }
}

/// The cards that HAMi's device plugin lists. Where the node offers none of its slots, the plugin
/// does not run, and the list is from when it ran.
fn cards(meta: &Meta, allocatable: &Amounts, problems: &mut Problems) -> Vec<CardFacts> {
    let mut cards = hami::cards(&meta.annotations, problems);
    if !allocatable
        .iter()
        .any(|(name, _)| **name == *resources::GPU)
    {
        for card in &mut cards {
            card.closed = Some(CardClosed::Unhealthy);
        }
    }
    cards
}

/// The images of a node, by each of their names. A size that makes no sense counts as none.
fn images(images: Vec<ContainerImage>) -> Vec<NodeImage> {
    let images = images.into_iter().flat_map(|image| {
        let size_bytes = u64::try_from(image.size_bytes).unwrap_or(0);
        let names = image.names.unwrap_or_default().into_iter();
        names.map(move |name| NodeImage { name, size_bytes })
    });
    let short = images.filter(|image| image.name.len() <= limits::TEXT);
    short.take(limits::ENTRIES).collect()
}

/// The declared features that decide where a pod may run.
fn features(declared: &[Box<str>]) -> Vec<NodeFeature> {
    let is_declared = |feature: &NodeFeature| declared.iter().any(|it| **it == *feature.name());
    NodeFeature::ALL.into_iter().filter(is_declared).collect()
}

fn readiness(status: &NodeStatus, converter: &Converter) -> Readiness {
    let mut conditions = status.conditions.iter().flatten();
    match conditions.find(|condition| &*condition.kind == "Ready") {
        None => Readiness::Unsaid,
        Some(condition) if &*condition.status == "True" => Readiness::Ready,
        Some(condition) => Readiness::Lost {
            since_ms: condition
                .last_transition_time
                .map(|time| converter.past(time)),
        },
    }
}

/// The conditions that are bad.
fn conditions(status: &NodeStatus, converter: &Converter) -> Vec<NodeCondition> {
    let all = status.conditions.iter().flatten();
    let read = all.filter_map(|condition| {
        let mut known = ConditionStatus::ALL.into_iter();
        let status = known.find(|known| *known.as_str() == *condition.status)?;
        let mut kept = converter.conditions.iter();
        let is_kept = kept.any(|(kind, kept)| *kind == condition.kind && *kept == status);
        is_kept.then(|| NodeCondition {
            kind: condition.kind.clone(),
            status,
            since_ms: condition
                .last_transition_time
                .map(|time| converter.past(time)),
        })
    });
    read.take(limits::ENTRIES).collect()
}

/// The annotations of the GPU operator and the name of HAMi's, and whether these are all of them.
fn annotations(meta: &Meta, problems: &mut Problems) -> (Labels, bool) {
    let all = meta.annotations.0.iter();
    let operator = all.filter(|(key, _)| key.starts_with("nvidia.com/"));
    let mut text = 0;
    let mut annotations = Labels::new();
    if meta.annotations.get(HAMI_REGISTER).is_some() {
        annotations.push((HAMI_REGISTER.into(), "".into()));
    }
    for (key, value) in operator {
        text += key.len() + value.len();
        if text > limits::ANNOTATION_TEXT {
            problems.push(
                "metadata.annotations",
                format_args!(
                    "nvidia.com/* are more than {} bytes",
                    limits::ANNOTATION_TEXT
                ),
            );
            return (annotations, false);
        }
        annotations.push((key.into(), value.clone()));
    }
    (annotations, true)
}

fn amounts(quantities: &Pairs<Quantity>, field: &str, problems: &mut Problems) -> Amounts {
    let mut amounts = resources::amounts(quantities, field, problems);
    problems.at_most(limits::PAIRS, &amounts, field);
    amounts.truncate(limits::PAIRS);
    amounts
}

fn taints(taints: &[objects::Taint], problems: &mut Problems) -> Vec<Taint> {
    let mut list = Vec::with_capacity(taints.len().min(limits::ENTRIES));
    for (index, taint) in problems
        .at_most(limits::ENTRIES, taints, "spec.taints")
        .iter()
        .enumerate()
    {
        let effect = shape::taint_effect(&taint.effect).unwrap_or_else(|| {
            problems.push_impossible(
                format_args!("spec.taints[{index}].effect"),
                format_args!(
                    "`{}` is not an effect; it counts as NoSchedule",
                    taint.effect
                ),
            );
            TaintEffect::NoSchedule
        });
        list.push(Taint {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect,
        });
    }
    list
}

#[cfg(test)]
mod tests;
