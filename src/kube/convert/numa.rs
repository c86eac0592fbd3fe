//! NodeResourceTopologies, and what of a pod the kubelet aligns.

use super::problems::{Problems, in_plain_words};
use super::{Converter, Watched, identity, limits, quantity};
use crate::kube::objects::{
    Meta, NodeResourceTopology, Quantity, TopologyAttribute, TopologyZone, ZoneResource,
};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{
    AlignmentPolicy, AlignmentScope, Amount, CELLS_MAX, CellResource, NumaCell, NumaFacts,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The attribute that names the policy.
const POLICY: &str = "topologyManagerPolicy";
/// The attribute that names the scope.
const SCOPE: &str = "topologyManagerScope";
/// The type of zones that are NUMA nodes.
const NUMA_NODE: &str = "Node";
/// What the name of a NUMA node begins with; its number follows.
const NAME: &str = "node-";

/// Policies and scopes in one word, as older exporters write them.
const IN_ONE_WORD: [(&str, AlignmentPolicy, AlignmentScope); 9] = {
    use AlignmentPolicy::{BestEffort, None, Restricted, SingleCell};
    use AlignmentScope::{Container, Pod};
    [
        ("None", None, Container),
        ("BestEffort", BestEffort, Container),
        ("BestEffortContainerLevel", BestEffort, Container),
        ("BestEffortPodLevel", BestEffort, Pod),
        ("Restricted", Restricted, Container),
        ("RestrictedContainerLevel", Restricted, Container),
        ("RestrictedPodLevel", Restricted, Pod),
        ("SingleNUMANodeContainerLevel", SingleCell, Container),
        ("SingleNUMANodePodLevel", SingleCell, Pod),
    ]
};

impl Watched for NodeResourceTopology {
    const KIND: Kind = Kind::Numa;
    const PATH: &'static str = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::Numa(self.metadata.name.clone())
    }

    fn convert(self, _converter: &mut Converter) -> Option<Object> {
        Some(Object::Numa(numa(self)))
    }
}

/// The facts of a NodeResourceTopology.
fn numa(object: NodeResourceTopology) -> NumaFacts {
    let mut problems = Problems::default();
    let uid = identity::uid("NodeResourceTopology", &object.metadata);
    let attributes = list(object.attributes, "attributes", &mut problems);
    let attributes: Vec<(usize, TopologyAttribute)> = attributes;
    let words = list(object.topology_policies, "topologyPolicies", &mut problems);
    let (policy, scope) = rules(&attributes, &words, &mut problems);
    let mut cells = cells(object.zones, &mut problems);
    cells.sort_by_key(|cell| cell.number);
    if cells.len() > CELLS_MAX {
        let count = cells.len();
        let message = format_args!("{count} NUMA nodes are more than {CELLS_MAX}");
        problems.push("zones", message);
        cells.clear();
    }
    NumaFacts {
        name: object.metadata.name,
        uid,
        policy,
        scope,
        cells,
        problems: problems.into_vec(),
    }
}

/// The policy and the scope of the kubelet, by attributes, else in one word, else the kubelet's
/// defaults.
fn rules(
    attributes: &[(usize, TopologyAttribute)],
    words: &[(usize, Box<str>)],
    problems: &mut Problems,
) -> (AlignmentPolicy, AlignmentScope) {
    let find = |name: &str| attributes.iter().find(|(_, it)| &*it.name == name);
    let mut rules = (AlignmentPolicy::None, AlignmentScope::Container);
    if let Some((index, word)) = words.first().filter(|_| find(POLICY).is_none()) {
        match IN_ONE_WORD.iter().find(|(known, ..)| *known == &**word) {
            Some((_, policy, scope)) => rules = (*policy, *scope),
            None => problems.push(
                format_args!("topologyPolicies[{index}]"),
                format_args!("`{word}` is not a policy"),
            ),
        }
    }
    if let Some((index, TopologyAttribute { value, .. })) = find(POLICY) {
        let policies = AlignmentPolicy::ALL;
        match policies.into_iter().find(|it| it.name() == &**value) {
            Some(policy) => rules.0 = policy,
            None => problems.push(
                format_args!("attributes[{index}].value"),
                format_args!("`{value}` is not a policy of the Topology Manager"),
            ),
        }
    }
    if let Some((index, TopologyAttribute { value, .. })) = find(SCOPE) {
        let scopes = AlignmentScope::ALL;
        match scopes.into_iter().find(|it| it.name() == &**value) {
            Some(scope) => rules.1 = scope,
            None => problems.push(
                format_args!("attributes[{index}].value"),
                format_args!("`{value}` is not a scope of the Topology Manager"),
            ),
        }
    }
    rules
}

/// The entries of a list that can be read, each with its place.
fn list<T: DeserializeOwned>(
    value: Value,
    field: &str,
    problems: &mut Problems,
) -> Vec<(usize, T)> {
    let entries = match value {
        Value::Array(entries) => entries,
        Value::Null => Vec::new(),
        _ => {
            problems.push(field, "is not a list");
            Vec::new()
        }
    };
    if entries.len() > limits::PAIRS {
        let count = entries.len();
        let most = limits::PAIRS;
        problems.push(field, format_args!("{count} entries are more than {most}"));
    }
    let entries = entries.into_iter().take(limits::PAIRS).enumerate();
    let read = entries.filter_map(|(index, entry)| match serde_json::from_value(entry) {
        Ok(entry) => Some((index, entry)),
        Err(error) => {
            let error = in_plain_words(&error.to_string());
            problems.push(format_args!("{field}[{index}]"), error);
            None
        }
    });
    read.collect()
}

fn cells(zones: Value, problems: &mut Problems) -> Vec<NumaCell> {
    let mut cells: Vec<NumaCell> = Vec::new();
    let zones: Vec<(usize, TopologyZone)> = list(zones, "zones", problems);
    for (index, zone) in zones {
        if &*zone.kind != NUMA_NODE {
            continue;
        }
        let field = format!("zones[{index}]");
        let number = zone.name.strip_prefix(NAME).map(str::parse::<u16>);
        let Some(Ok(number)) = number else {
            let message = format_args!(
                "`{}` does not name a NUMA node; such a name is like {NAME}0",
                zone.name
            );
            problems.push(format_args!("{field}.name"), message);
            continue;
        };
        if cells.iter().any(|cell| cell.number == number) {
            let message = format_args!("there is a zone for NUMA node {number} already");
            problems.push(format_args!("{field}.name"), message);
            continue;
        }
        cells.push(NumaCell {
            number,
            resources: resources(&zone, &field, problems),
        });
    }
    cells
}

fn resources(zone: &TopologyZone, field: &str, problems: &mut Problems) -> Vec<CellResource> {
    let listed = zone.resources.as_deref().unwrap_or_default();
    let field = format!("{field}.resources");
    let listed = problems.at_most(limits::PAIRS, listed, &field);
    let mut resources: Vec<CellResource> = Vec::with_capacity(listed.len());
    for (index, resource) in listed.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if resource.name.is_empty() || resource.name.len() > limits::TEXT {
            problems.push(
                format_args!("{field}.name"),
                "is not the name of a resource",
            );
        } else if resources.iter().any(|known| known.name == resource.name) {
            let message = format_args!("the zone has {} already", resource.name);
            problems.push(format_args!("{field}.name"), message);
        } else {
            resources.extend(amounts(resource, &field, problems));
        }
    }
    resources.sort_by(|one, other| one.name.cmp(&other.name));
    resources
}

/// The amounts of a resource in a zone, which must not contradict each other.
fn amounts(resource: &ZoneResource, field: &str, problems: &mut Problems) -> Option<CellResource> {
    let name = &resource.name;
    let mut read = |part: &str, quantity: &Option<Quantity>| -> Option<Amount> {
        let Some(Quantity(text)) = quantity else {
            problems.push(format_args!("{field}.{part}"), "is missing");
            return None;
        };
        match quantity::amount(name, text) {
            Ok(amount) => Some(amount),
            Err(error) => {
                let message = format_args!("`{text}` {error}");
                problems.push(format_args!("{field}.{part}"), message);
                None
            }
        }
    };
    let capacity = read("capacity", &resource.capacity);
    let allocatable = read("allocatable", &resource.allocatable);
    let available = read("available", &resource.available);
    let (capacity, allocatable, available) = (capacity?, allocatable?, available?);
    if allocatable > capacity {
        problems.push(
            format_args!("{field}.allocatable"),
            "is more than the capacity",
        );
        return None;
    }
    if available > allocatable {
        problems.push(
            format_args!("{field}.available"),
            "is more than what is allocatable",
        );
        return None;
    }
    Some(CellResource {
        name: name.clone(),
        capacity,
        allocatable,
        available,
    })
}

#[cfg(test)]
mod tests;
