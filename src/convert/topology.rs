//! Topologies.

use super::fields::Fields;
use super::problems::Problems;
use super::{Converter, identity, limits, queue};
use crate::objects::{Meta, Topology, Watched};
use gpu_batch_policies::event::{Kind, Object, ObjectKey};
use gpu_batch_policies::facts::{TopologyFacts, TopologyLevel};

/// The level that always ends a Topology.
const NODE: &str = "node";

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

/// The facts of a Topology. The level `node` may be written at the end and means nothing new there.
pub(super) fn topology(topology: Topology) -> TopologyFacts {
    let problems = &mut Problems::default();
    let uid = identity::uid("Topology", &topology.metadata);
    let mut spec = Fields::new("spec", topology.spec, problems);
    let entries = spec.objects("levels", limits::TOPOLOGY_LEVELS, problems);
    let last = entries.len().saturating_sub(1);
    let mut levels: Vec<TopologyLevel> = Vec::with_capacity(entries.len());
    for (index, mut entry) in entries.into_iter().enumerate() {
        let name = entry.name("name", problems);
        let node_label = entry.name("nodeLabel", problems);
        queue::not_known(&entry, problems);
        let (Some(name), Some(node_label)) = (name, node_label) else {
            problems.push(
                format_args!("spec.levels[{index}]"),
                "needs a name and a nodeLabel",
            );
            continue;
        };
        if &*name == NODE {
            if index != last || &*node_label != "kubernetes.io/hostname" {
                entry.problem(
                    "name",
                    "`node` is the last level, with the label kubernetes.io/hostname",
                    problems,
                );
            }
            continue;
        }
        if levels
            .iter()
            .any(|level| level.name == name || level.node_label == node_label)
        {
            entry.problem("name", "its name or its label is there twice", problems);
            continue;
        }
        levels.push(TopologyLevel { name, node_label });
    }
    queue::not_known(&spec, problems);
    TopologyFacts {
        name: topology.metadata.name,
        uid,
        levels,
        problems: std::mem::take(problems).into_vec(),
    }
}

#[cfg(test)]
mod tests;
