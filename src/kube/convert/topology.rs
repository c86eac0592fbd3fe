//! Topologies.

use super::fields::Fields;
use super::problems::Problems;
use super::{Converter, Watched, identity, limits};
use crate::kube::objects::{Meta, Topology};
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
        let level = level(&mut entry, problems);
        let level = level.filter(|level| is_new(level, &levels, &entry, problems));
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
    let needs_both = "a level needs a name and a nodeLabel";
    let Some(name) = name else {
        entry.problem("name", needs_both, problems);
        return None;
    };
    let Some(node_label) = node_label else {
        entry.problem("nodeLabel", needs_both, problems);
        return None;
    };
    let always = "always exists as the last level, and is not written";
    if &*name == NODE {
        let message = format_args!("the level `{NODE}` {always}");
        entry.problem("name", message, problems);
        return None;
    }
    if &*node_label == NODE_LABEL {
        let message =
            format_args!("`{NODE_LABEL}` is the label of the level `{NODE}`, which {always}");
        entry.problem("nodeLabel", message, problems);
        return None;
    }
    if !is_label_key(&node_label) {
        let message = format_args!(
            "`{node_label}` cannot be the key of a label; write it like example.com/rack"
        );
        entry.problem("nodeLabel", message, problems);
        return None;
    }
    Some(TopologyLevel { name, node_label })
}

/// Whether no level before this one has its name or its label; else a problem is noted.
fn is_new(
    level: &TopologyLevel,
    before: &[TopologyLevel],
    entry: &Fields,
    problems: &mut Problems,
) -> bool {
    let TopologyLevel { name, node_label } = level;
    if before.iter().any(|other| other.name == *name) {
        let message = format_args!("there is a level `{name}` already");
        entry.problem("name", message, problems);
        return false;
    }
    if let Some(other) = before.iter().find(|other| other.node_label == *node_label) {
        let message = format_args!(
            "`{node_label}` is the label of the level `{}` already",
            other.name
        );
        entry.problem("nodeLabel", message, problems);
        return false;
    }
    true
}

/// Whether Kubernetes lets a label have this key: `rack`, or `example.com/rack`.
fn is_label_key(key: &str) -> bool {
    let ends = |part: &str, inside: fn(u8) -> bool| {
        let bytes = part.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        let ends = ends.map(|end| end.is_some_and(u8::is_ascii_alphanumeric));
        ends == [true, true] && bytes.iter().copied().all(inside)
    };
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let prefix_is_right = prefix.is_none_or(|prefix| {
        prefix.len() <= 253 && prefix.split('.').all(|part| ends(part, is_host))
    });
    prefix_is_right && name.len() <= 63 && ends(name, is_name)
}

#[cfg(test)]
mod tests;
