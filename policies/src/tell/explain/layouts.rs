//! Idle nodes that would hold members if their cards were cut in another way.
//!
//! A node is named only where nobody is harmed: no pod uses a GPU of it, and no pod that waits asks
//! for a GPU resource that it offers. Nothing is changed: the GPU operator cuts the cards once
//! somebody sets a label of the node. Nodes that offer MIG devices of all profiles under one name
//! (strategy `single`) are left aside: there a pod asks for `nvidia.com/gpu` whatever it gets.

use super::advice::members;
use crate::facts::{Amount, label};
use crate::gpu::{self, is_gpu_resource, mig};
use crate::ids::{ClassId, NodeId, ResourceId};
use crate::state::ClusterState;
use crate::state::class::Class;
use crate::state::node::Node;
use crate::tell::gpus::least_asked;
use alloc::{format, string::String, vec::Vec};
use core::cmp::Reverse;

/// How many nodes are named.
const NODES_NAMED: usize = 3;

/// The label by which the GPU operator is told how to cut the cards of a node.
const CONFIG_LABEL: &str = "nvidia.com/mig.config";

/// A node that would hold members.
struct Recut<'a> {
    node: &'a Node,
    config: String,
    holds: u64,
    /// The GPU operator cuts the cards of the node.
    is_operated: bool,
}

/// A sentence for each node that would hold members of a class with its cards cut in another way,
/// the node that would hold most first, until `short` members have a place. `nodes`: those that the
/// members may use.
pub(crate) fn other_layouts(
    state: &ClusterState,
    class: ClassId,
    nodes: impl Iterator<Item = NodeId>,
    mut short: u64,
) -> Vec<String> {
    let class = &state.classes[class];
    let Some((wanted, asked)) = only_gpu_resource(state, class) else {
        return Vec::new();
    };
    let recuts = nodes.filter_map(|node| recut(state, class, &state.nodes[node], (wanted, asked)));
    let mut recuts: Vec<Recut<'_>> = recuts.collect();
    if recuts.is_empty() {
        return Vec::new();
    }
    let waited_for = least_asked(state);
    recuts.retain(|recut| {
        let facts = recut.node.known.as_ref().map(|known| &known.facts);
        let is_waited_for = |(name, _)| waited_for.contains_key(name);
        facts.is_some_and(|facts| !gpu::existing(facts).any(is_waited_for))
    });
    recuts.sort_by_key(|recut| (Reverse(recut.holds), recut.node.rank));
    let mut sentences = Vec::new();
    for recut in recuts.into_iter().take(NODES_NAMED) {
        if short == 0 {
            break;
        }
        short = short.saturating_sub(recut.holds);
        sentences.push(sentence(&recut));
    }
    sentences
}

fn sentence(recut: &Recut<'_>) -> String {
    let Recut {
        node,
        config,
        holds,
        is_operated,
    } = recut;
    let name = &node.name;
    let how = match is_operated {
        true => format!(" (kubectl label node {name} {CONFIG_LABEL}={config} --overwrite)"),
        false => String::new(),
    };
    format!(
        "another MIG layout of node {name}, whose GPUs nobody uses or waits for: as {config} it \
         would hold {}{how}",
        members(*holds)
    )
}

/// The only GPU resource that a class asks for, and how much; `None`: it asks for none, or for
/// several.
fn only_gpu_resource(state: &ClusterState, class: &Class) -> Option<(ResourceId, Amount)> {
    let is_gpu = |(id, _): &&(ResourceId, Amount)| is_gpu_resource(state.resource_names.name(*id));
    let mut asked = class.requests.iter().filter(is_gpu);
    let only = asked.next().copied();
    only.filter(|_| asked.next().is_none() && class.cards.is_none())
}

/// The node with its cards cut as suits a class best; `None`: GPUs of the node are in use, or no
/// layout makes it hold a member.
fn recut<'a>(
    state: &ClusterState,
    class: &Class,
    node: &'a Node,
    (wanted, asked): (ResourceId, Amount),
) -> Option<Recut<'a>> {
    let known = node.known.as_ref().filter(|_| node.is_whole())?;
    let labels = &known.facts.labels;
    let is_mixed = label(labels, "nvidia.com/mig.strategy") == Some("mixed");
    let resource = state.resource_names.name(wanted);
    let product = known.gpu.product.as_deref().filter(|_| is_mixed)?;
    let layout = mig::layout_with(resource, product)?;
    let is_cut_so = label(labels, CONFIG_LABEL) == Some(&*layout.config);
    if is_cut_so || gpu::existing(&known.facts).any(|(name, _)| name == resource) {
        return None;
    }
    let cards: u64 = label(labels, "nvidia.com/gpu.count")?.parse().ok()?;
    let devices = cards.saturating_mul(layout.devices_per_card.into());
    let others = class.requests.iter().filter(|(id, _)| *id != wanted);
    let others = others.map(|(id, amount)| node.free(*id) / amount);
    let most = match class.is_apart() {
        true => 1,
        false => u64::MAX,
    };
    let holds = others.fold(most.min(devices / asked), u64::min);
    let is_operated = label(labels, CONFIG_LABEL).is_some()
        || label(labels, "nvidia.com/gpu.deploy.mig-manager") == Some("true");
    (holds > 0).then_some(Recut {
        node,
        config: layout.config,
        holds,
        is_operated,
    })
}
