//! Topologies.

use super::fields::Fields;
use super::problems::Problems;
use super::{Converter, identity, limits};
use crate::objects::{Meta, Topology, Watched};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{TopologyFacts, TopologyLevel};

/// The level that always ends a Topology.
const NODE: &str = "node";
const NODE_LABEL: &str = "kubernetes.io/hostname";

impl Watched for Topology {
    const KIND: Kind = Kind::Topology;
    const PATH: &'static str = "/apis/gpu-batch.io/v1alpha1/topologies";

    fn meta(&self) -> &Meta {
        &self.metadata
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::Topology(self.metadata.name.clone())
    }

    fn convert(self, _converter: &mut Converter) -> Option<Object> {
        Some(Object::Topology(topology(self)))
    }
}

/// The facts of a Topology.
pub(super) fn topology(topology: Topology) -> TopologyFacts {
    let problems = &mut Problems::default();
    let uid = identity::uid("Topology", &topology.metadata);
    let mut spec = Fields::new("spec", topology.spec, problems);
    let mut levels: Vec<TopologyLevel> = Vec::new();
    for mut entry in spec.objects("levels", limits::TOPOLOGY_LEVELS, problems) {
        let level = level(&mut entry, problems).filter(|level| {
            let same = |other: &TopologyLevel| {
                other.name == level.name || other.node_label == level.node_label
            };
            let twice = levels.iter().any(same);
            if twice {
                entry.problem("name", "its name or its label is there twice", problems);
            }
            !twice
        });
        levels.extend(level);
        entry.end(problems);
    }
    spec.end(problems);
    TopologyFacts {
        name: topology.metadata.name,
        uid,
        levels,
        problems: std::mem::take(problems).into_vec(),
    }
}

fn level(entry: &mut Fields, problems: &mut Problems) -> Option<TopologyLevel> {
    let name = entry.name("name", problems);
    let node_label = entry.name("nodeLabel", problems);
    let (Some(name), Some(node_label)) = (name, node_label) else {
        entry.problem("name", "a level needs a name and a nodeLabel", problems);
        return None;
    };
    if &*name == NODE || &*node_label == NODE_LABEL {
        entry.problem(
            "name",
            "the level node always exists and is not written",
            problems,
        );
        return None;
    }
    Some(TopologyLevel { name, node_label })
}

#[cfg(test)]
mod tests;
