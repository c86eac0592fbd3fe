//! Refusals in words: what is missing, which area comes nearest, why the nodes refuse.

mod asks;
mod bounds;
pub(super) mod labels;
mod more_nodes;
mod shapes;
#[cfg(test)]
mod tests;
mod times;

pub(super) use asks::{amount_in_words, asks};
pub(crate) use bounds::bound_in_words;
pub(super) use more_nodes::{may_be_on_new_nodes, more_nodes_would_help};
pub(super) use shapes::{selected, told_apart};
pub(super) use times::{date_and_time, span};

use crate::explain::nodes_that;
use crate::facts::PodShape;
use crate::filter::{CardShortage, Filter};
use crate::ids::{ClassId, NodeId, ResourceId};
use crate::names::{first_joined, joined};
use crate::place::Scope;
use crate::place::{Area, Group, Near, Refusal, Request, widest_scope};
use crate::queues::QueueId;
use crate::resources::ResourceNames;
use crate::state::ClusterState;
use crate::state::node::{Lacking, Node};
use alloc::{collections::BTreeMap, format, string::String, sync::Arc, vec::Vec};
use bounds::limit_in_words;
use core::cmp::Reverse;

/// How many shapes of members a message names; the others are counted.
const SHAPES_NAMED: usize = 4;
/// How many sub-groups a message names; the others are counted.
const SUB_GROUPS_NAMED: usize = 3;
/// How many limits a message names; the others are counted.
const LIMITS_NAMED: usize = 3;
/// How many filters a message names; the nodes that the others refuse are summed up.
const FILTERS_NAMED: usize = 4;

/// How much work a node is in a description, in units of about ten nanoseconds.
const NODE_WORK: u64 = 5;

/// What the nodes say to each class, in words, made once for all gangs of the class.
#[derive(Debug, Default)]
pub(super) struct Descriptions {
    by_class: BTreeMap<ClassId, Description>,
    /// How much work all descriptions were so far, in units of about ten nanoseconds.
    pub(super) work: u64,
}

#[derive(Debug)]
struct Description {
    /// The shape of the class: another class may have its number by now.
    shape: Arc<PodShape>,
    /// Where the log of changed nodes ended when the text was made.
    as_of: u64,
    /// `of 64 nodes, 60 had insufficient nvidia.com/gpu, 4 were unschedulable`.
    text: String,
    /// What most nodes have too little of.
    scarce: Option<ResourceId>,
}

impl Descriptions {
    /// What the nodes say to a class, and what most nodes have too little of.
    fn of(&mut self, state: &mut ClusterState, class: ClassId) -> (&str, Option<ResourceId>) {
        let now = state.changes.end();
        let is_true = |known: &Description| {
            known.as_of == now && Arc::ptr_eq(&known.shape, &state.classes[class].shape)
        };
        if !self.by_class.get(&class).is_some_and(is_true) {
            state.refresh(class);
            self.work += NODE_WORK * state.nodes.len() as u64;
            self.by_class.insert(class, describe_nodes(state, class));
        }
        let Description { text, scarce, .. } = &self.by_class[&class];
        (text, *scarce)
    }

    /// Forgets what was said to classes that have gone.
    pub(super) fn forget_gone(&mut self, state: &ClusterState) {
        self.by_class
            .retain(|class, _| state.classes.get(*class).is_some());
    }

    /// Why the members were not placed. `surplus`: the members are surplus.
    pub(super) fn refusal(
        &mut self,
        state: &mut ClusterState,
        request: &Request,
        refusal: &Refusal,
        surplus: bool,
    ) -> String {
        match refusal {
            Refusal::TooFew {
                class,
                scope,
                best,
                fits,
                need,
            } => {
                let best = best.and_then(|area| area_name(state, area));
                let (text, scarce) = self.of(state, *class);
                // The text counts all nodes that have room; the limits that leave too little of it
                // are told beside the text.
                let limits = request.model_limits.filter(|_| *fits > 0);
                let limits = limits.and_then(|queue| tight_limits(state, queue, *class, *need));
                too_few(
                    state,
                    (*class, *scope, scarce),
                    (*need, *fits),
                    best.as_deref(),
                    surplus,
                    [Some(text), limits.as_deref()],
                )
            }
            Refusal::SubGroupsNotTogether {
                paths,
                need,
                proved,
            } => sub_groups(paths, *need, *proved),
            Refusal::OfSubGroup {
                path,
                groups,
                need,
                place,
                refusal: inner,
            } => {
                let message = match &**inner {
                    Refusal::NotTogether { proved } => {
                        let (near, anchor) = *place;
                        let place = within(state, near, anchor);
                        not_together(state, groups, *need, &place, *proved)
                    }
                    inner => self.refusal(state, request, inner, surplus),
                };
                format!("sub-group {path}: {message}")
            }
            Refusal::NotTogether { proved } => {
                let root = request.root();
                let place = within(state, root.near, root.anchor);
                not_together(state, &root.pods, root.need, &place, *proved)
            }
        }
    }
}

/// Which limits on GPU models keep out members that would fit without these limits.
pub(super) fn model_limits(state: &ClusterState, request: &Request, refusal: &Refusal) -> String {
    let text = "limits on GPU models leave no room for the members, which would fit otherwise";
    let (Some(queue), Refusal::TooFew { class, need, .. }) =
        (request.model_limits, refusal.innermost())
    else {
        return text.into();
    };
    let limits = tight_limits(state, queue, *class, *need).unwrap_or_default();
    format!("{text}: {limits}")
}

/// The limits on GPU models that leave less than `need` members of a class ask for, in words;
/// `None`: there are none.
pub(super) fn tight_limits(
    state: &ClusterState,
    queue: QueueId,
    id: ClassId,
    need: u64,
) -> Option<String> {
    let class = &state.classes[id];
    let asked = state.counted(id, None).saturating_mul(need);
    let limits = state.queues.tight_model_limits(queue, asked, &class.models);
    let mut named: Vec<String> = limits
        .iter()
        .take(LIMITS_NAMED)
        .map(limit_in_words)
        .collect();
    match limits.len() - named.len() {
        0 => {}
        1 => named.push("1 more limit".into()),
        more => named.push(format!("{more} more limits")),
    }
    (!named.is_empty()).then(|| joined(&named))
}

fn sub_groups(paths: &[String], need: usize, proved: bool) -> String {
    let all = first_joined(paths, SUB_GROUPS_NAMED);
    match (need == paths.len(), proved) {
        (true, true) => format!("the sub-groups {all} do not fit together"),
        (true, false) => format!(
            "no place was found for the sub-groups {all} together within the bound of the search"
        ),
        (false, true) => format!("there is no place for {need} of the sub-groups {all}"),
        (false, false) => format!(
            "no place was found for {need} of the sub-groups {all} within the bound of the search"
        ),
    }
}

/// The sentence for members of several shapes: `need` of them were refused together.
fn not_together(
    state: &ClusterState,
    groups: &[Group],
    need: usize,
    place: &str,
    proved: bool,
) -> String {
    let named = groups.iter().take(SHAPES_NAMED);
    let classes: Vec<ClassId> = named.clone().map(|group| group.class).collect();
    let asks = told_apart(state, &classes);
    let named = named.zip(&asks);
    let mut sizes: Vec<String> = named
        .map(|(group, asks)| counted(group.pods.len() as u64, asks, false))
        .collect();
    match groups.len() - sizes.len() {
        0 => {}
        1 => sizes.push("members of 1 more shape".into()),
        more => sizes.push(format!("members of {more} more shapes")),
    }
    let members: usize = groups.iter().map(|group| group.pods.len()).sum();
    let all = joined(&sizes);
    match (need.min(members), members, proved) {
        (_, 1, true) => format!("{all} does not fit{place}"),
        (need, of, true) if need == of => format!("{all} do not fit together{place}"),
        (need, of, false) if need == of => {
            format!("no place was found for {all}{place} within the bound of the search")
        }
        (1, _, true) => format!("none of these fits{place}: {}", sizes.join(", ")),
        (need, _, true) => {
            let all = sizes.join(", ");
            format!("no {need} of these fit together{place}: {all}")
        }
        (need, _, false) => format!(
            "no place was found for {need} of these{place} within the bound of the search: {}",
            sizes.join(", ")
        ),
    }
}

/// ` in one rack`; empty where members may be anywhere.
fn within(state: &ClusterState, near: Option<Near>, anchor: Option<NodeId>) -> String {
    match widest_scope(state, near, anchor) {
        Scope::Cluster => String::new(),
        scope => format!(" {}", place_of(state, scope)),
    }
}

/// `4 members with 8 nvidia.com/gpu each do not fit in one rack: b comes nearest with room for 3`,
/// and more. `nearest`: the domain or node, if it is not the whole cluster. `scarce`: see
/// [`asks()`].
pub(super) fn too_few(
    state: &ClusterState,
    (class, scope, scarce): (ClassId, Scope, Option<ResourceId>),
    (need, fits): (u64, u64),
    nearest: Option<&str>,
    surplus: bool,
    more: [Option<&str>; 2],
) -> String {
    let wanted = counted(need, &asks(state, class, scarce), surplus);
    let do_not = if need == 1 { "does not" } else { "do not" };
    let headline = format!("{wanted} {do_not} fit {}", place_of(state, scope));
    let nearest = match (nearest, fits) {
        // No room for the only member: nothing is to be said but why.
        (_, 0) if need == 1 => None,
        (None, 0) => Some("there is no room for any".into()),
        (None, _) => Some(format!("there is room for {fits}")),
        (Some(area), _) => Some(format!("{area} comes nearest with room for {fits}")),
    };
    let more = more.into_iter().flatten().map(String::from);
    let all: Vec<String> = nearest.into_iter().chain(more).collect();
    match all.is_empty() {
        true => headline,
        false => format!("{headline}: {}", all.join("; ")),
    }
}

/// `4 members with ... each`, where `asks` are the words for what one member asks for.
fn counted(count: u64, asks: &str, surplus: bool) -> String {
    match (count, surplus) {
        (1, true) => format!("1 more member with {asks}"),
        (1, false) => format!("1 member with {asks}"),
        _ => format!("{count} members with {asks} each"),
    }
}

fn place_of(state: &ClusterState, scope: Scope) -> String {
    match scope {
        Scope::Cluster => "in the cluster".into(),
        Scope::Level(topology, level) => {
            let topology = &state.topologies[topology];
            format!("in one {}", topology.levels[level].name)
        }
        Scope::DomainOf(topology, level, _) => {
            let topology = &state.topologies[topology];
            format!(
                "in the {} of the members that run",
                topology.levels[level].name
            )
        }
        Scope::OneNode => "on one node".into(),
        Scope::Node(_) => "on the node of the members that run".into(),
    }
}

/// The name of a domain or node; `None`: the whole cluster.
pub(super) fn area_name(state: &ClusterState, area: Area) -> Option<String> {
    match area {
        Area::Cluster => None,
        Area::Domain(topology, domain) => Some(state.topologies[topology].display(domain)),
        Area::Node(node) => Some(state.nodes[node].name.as_ref().into()),
    }
}

/// The resource that most nodes have too little of; of equal ones the first in the order of
/// resources.
pub(super) fn scarcest(
    names: &ResourceNames,
    lacking: &BTreeMap<Lacking, u32>,
) -> Option<ResourceId> {
    let resources = lacking.iter().filter_map(|(missing, nodes)| match missing {
        Lacking::Resource(id) => Some((*nodes, *id)),
        Lacking::HostPort | Lacking::Disk | Lacking::Cards(_) | Lacking::Alignment => None,
    });
    let most = resources.max_by_key(|(nodes, id)| (*nodes, Reverse(names.place(*id))));
    most.map(|(_, id)| id)
}

/// A sentence for each resource that a member asks for and no node has.
pub(super) fn unknown_resources(state: &ClusterState, class: ClassId) -> Vec<String> {
    let class = &state.classes[class];
    match class.is_offered {
        true => Vec::new(),
        false => state.offered.unknown_resources(&class.shape.requests),
    }
}

/// The filter that is told of a node that has too little of something for one more pod of a class.
pub(super) fn filter_of(state: &ClusterState, class: ClassId, node: &Node) -> Filter {
    let class = &state.classes[class];
    let of_cells = || match &node.cells {
        Some(cells) => cells.lacking(&class.shape),
        None => Filter::Cards(CardShortage::Room),
    };
    filter_for(state, node.lacking(class)).unwrap_or_else(of_cells)
}

/// The filter that is told of all nodes that lack something; `None`: each node has its own.
fn filter_for(state: &ClusterState, missing: Lacking) -> Option<Filter> {
    match missing {
        Lacking::Resource(id) => Some(Filter::Resource(state.resource_names.name(id).into())),
        Lacking::HostPort => Some(Filter::HostPort),
        Lacking::Disk => Some(Filter::Disk),
        Lacking::Cards(shortage) => Some(Filter::Cards(shortage)),
        Lacking::Alignment => None,
    }
}

fn describe_nodes(state: &ClusterState, id: ClassId) -> Description {
    let class = &state.classes[id];
    let mut refused: BTreeMap<Filter, u32> = state.refusals(id).into_iter().collect();
    let mut refuses = |filter, nodes| *refused.entry(filter).or_insert(0) += nodes;
    let mut lacking: BTreeMap<Lacking, u32> = BTreeMap::new();
    let mut open = 0u32;
    let mut all = 0u32;
    let mut eligible = false;
    let (view, table) = (state.view(id), state.table_as_of(id));
    for (node_id, node) in state.nodes.iter() {
        if node.known.is_none() {
            continue;
        }
        all += 1;
        let Some(table) = table else {
            continue;
        };
        let view = view.as_ref().filter(|_| table.is_eligible(node_id));
        let kept_out = view.filter(|_| node.multiplicity(class) > 0);
        if table.count(node_id) > 0 {
            open += 1;
        } else if let Some(Err(filter)) = kept_out.map(|view| view.verdict(node_id)) {
            refuses(filter, 1);
            eligible = true;
        } else if table.is_eligible(node_id) {
            let missing = node.lacking(class);
            *lacking.entry(missing).or_insert(0) += 1;
            if missing == Lacking::Alignment {
                refuses(filter_of(state, id, node), 1);
            }
        }
    }
    eligible |= open > 0 || !lacking.is_empty();
    let scarce = scarcest(&state.resource_names, &lacking);
    // Names are looked up once for all nodes that lack one thing.
    for (missing, nodes) in lacking {
        if let Some(filter) = filter_for(state, missing) {
            refuses(filter, nodes);
        }
    }
    let text = counts_in_words(refused, open, all);
    // What no node has comes first: without it, nothing else helps.
    let mut sentences = unknown_resources(state, id);
    // If a node passes the static filters, it has all labels that are asked for.
    if !eligible {
        sentences.extend(labels::unknown(state, &class.shape));
    }
    sentences.push(text);
    Description {
        shape: Arc::clone(&class.shape),
        as_of: state.changes.end(),
        text: sentences.join("; "),
        scarce,
    }
}

/// `of 64 nodes, 60 had insufficient nvidia.com/gpu, 4 were unschedulable`: how many of all nodes
/// each filter refuses, and how many are open.
fn counts_in_words(refused: BTreeMap<Filter, u32>, open: u32, all: u32) -> String {
    let mut refused: Vec<(Filter, u32)> = refused.into_iter().collect();
    refused.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let named = refused.iter().take(FILTERS_NAMED);
    let mut parts: Vec<String> = named
        .map(|(filter, count)| nodes_that(*count, &format!("{filter}")))
        .collect();
    let rest: u32 = refused
        .iter()
        .skip(FILTERS_NAMED)
        .map(|(_, count)| count)
        .sum();
    if rest > 0 {
        parts.push(nodes_that(rest, "were refused for other reasons"));
    }
    if open > 0 {
        parts.push(format!("{open} had room"));
    }
    match all {
        0 => "there are no nodes".into(),
        1 => format!("of 1 node, {}", parts.join(", ")),
        _ => format!("of {all} nodes, {}", parts.join(", ")),
    }
}
