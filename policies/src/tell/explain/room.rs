//! Shortages of room on nodes, and where they are smallest: counted anew over all nodes.

use super::layouts::other_layouts;
use super::occupants::{kept, occupancies};
use super::{KeptRoom, NodeCounts, Occupant, Refused, Shortage};
use crate::facts::{Amount, UnixMs};
use crate::filter::{self, Filter};
use crate::ids::{ClassId, GangId, NodeId, ResourceId};
use crate::place::Scope;
use crate::queues::{GovernedId, QueueId};
use crate::resources::{ResourceNames, amount_of};
use crate::state::ClusterState;
use crate::state::class::Class;
use crate::state::node::{KnownNode, Lacking};
use crate::state::relations::View;
use crate::tell::words::{
    asks, filter_of, labels, may_be_on_new_nodes, scarcest, selected, tight_limits, too_few,
    unknown_resources,
};
use crate::topology::Topology;
use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};
use core::cmp::Reverse;
use core::iter;

/// How many occupants of what is missing are named.
const OCCUPANTS_NAMED: usize = 5;

/// Members of one shape that find no room together.
pub(crate) struct Missing {
    pub(crate) class: ClassId,
    pub(crate) scope: Scope,
    pub(crate) need: u64,
    /// The sub-groups of the members, as in [`Shortage`].
    pub(crate) sub_groups: Vec<String>,
    /// The sub-groups that require the scope, as in [`Shortage`].
    pub(crate) required_by: Vec<String>,
    /// The scopes of the groups above, the innermost first: the members must be in one domain of
    /// each of these, too.
    pub(crate) inside: Vec<Scope>,
    /// The members are surplus.
    pub(crate) surplus: bool,
    /// The gang of the members.
    pub(crate) gang: GangId,
    /// The queue whose limits on GPU models hold, if it has any.
    pub(crate) limits: Option<QueueId>,
}

impl Missing {
    /// Whether two entries differ in nothing but their sub-groups.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let key = |missing: &Self| (missing.class, missing.scope, missing.need);
        let of_some = |missing: &Self| !missing.sub_groups.is_empty();
        let alone = |missing: &Self| missing.required_by.is_empty();
        key(self) == key(other)
            && self.inside == other.inside
            && alone(self) == alone(other)
            && of_some(self)
            && of_some(other)
    }

    /// Whether new nodes might take the members. `limits`: the queue whose limits on GPU models
    /// must leave them a model; `None`: limits do not count.
    fn more_nodes_help(&self, state: &ClusterState, limits: Option<QueueId>) -> bool {
        let mut scopes = iter::once(&self.scope).chain(&self.inside);
        scopes.all(|scope| may_be_on_new_nodes(state, self.class, *scope, limits))
    }
}

/// What one node says to a member.
struct Judged {
    node: NodeId,
    fits: u64,
    fits_empty: u64,
    refused: Option<Filter>,
    /// What the node has too little of.
    lacking: Option<Lacking>,
    /// How many members the free amounts of the node would hold, if it refuses for one other thing
    /// alone.
    would_hold: u64,
    model: Option<GovernedId>,
}

/// The shortage of the missing members, and a sentence for it. Looks at every node once, and at the
/// pods of the domain that comes nearest.
pub(crate) fn shortage(
    state: &ClusterState,
    missing: &Missing,
    now_ms: UnixMs,
) -> (Shortage, String) {
    let class = &state.classes[missing.class];
    let view = state.view(missing.class);
    let mut judged: Vec<Judged> = state
        .nodes
        .iter()
        .filter_map(|(id, node)| {
            let known = node.known.as_ref()?;
            Some(judge(state, missing, view.as_ref(), (id, known)))
        })
        .collect();
    if let Some(view) = view.as_ref().filter(|view| view.only_closes()) {
        keep_apart(view, &mut judged);
    }
    let inside = |judged: &&Judged| {
        let mut inside = missing.inside.iter();
        inside.all(|scope| scope.holds(state, judged.node))
    };
    let possible: Vec<&Judged> = judged.iter().filter(inside).collect();
    let areas = areas(state, missing, &possible);
    let sum_empty = |area: &&Area<'_>| area.judged.iter().map(|j| j.fits_empty).fold(0, sum);
    let fits_empty = areas.iter().map(|area| sum_empty(&area)).max().unwrap_or(0);
    let (best, domains_with_room) = roomiest(state, missing, &areas);
    let all: Vec<&Judged> = judged.iter().collect();
    let (fits_here, here): (u64, &[&Judged]) = best.map_or((0, &[]), |(n, area)| (n, &area.judged));
    let domain = best.and_then(|(_, area)| area.name.clone());
    let fit = (missing.need, fits_here);
    let scarce = scarce(&state.resource_names, &all);
    let place = (missing.class, missing.scope, scarce);
    // Where no member fits, limits do not count unless they keep the members from new nodes, too.
    let count = fits_here > 0 || !missing.more_nodes_help(state, missing.limits);
    let limits = missing.limits.filter(|_| count);
    let limits = limits.and_then(|queue| tight_limits(state, queue, missing.class, missing.need));
    let told = limits.as_deref();
    let told = told.filter(|_| (1..missing.need).contains(&fits_here));
    let area = domain.as_deref();
    let message = too_few(state, place, fit, area, missing.surplus, [None, told]);
    let short = missing.need.saturating_sub(fits_here);
    let (occupants, kept) = occupants(state, missing, here, now_ms);
    let shortage = Shortage {
        sub_groups: missing.sub_groups.clone(),
        required_by: missing.required_by.clone(),
        requests: requests(state, class),
        selects: selected(&class.shape),
        unknown_resources: unknown_resources(state, missing.class),
        unknown_labels: labels::unknown(state, &class.shape),
        asks: asks(state, missing.class, scarce),
        unlabelled_level: unlabelled_level(state, missing.scope),
        other_layouts: other_layouts(state, missing.class, lacking_amounts(here), short),
        model_limits: limits,
        level: level(state, missing.scope),
        domain,
        domains: u32::try_from(areas.len()).unwrap_or(u32::MAX),
        domains_with_room,
        need: missing.need,
        fits: fits_here,
        fits_empty,
        fits_anywhere: fits(state, missing, &all),
        gpus_short: class.gpus.saturating_mul(short),
        more_nodes_help: missing.more_nodes_help(state, None),
        nearest: counts(here),
        all: counts(&all),
        occupants,
        kept,
    };
    (shortage, message)
}

/// What one pod of a class asks for, by resource.
fn requests(state: &ClusterState, class: &Class) -> Vec<(Box<str>, Amount)> {
    let named = class.in_order.iter();
    let named = named.map(|(id, amount)| (state.resource_names.name(*id).into(), *amount));
    named.collect()
}

/// The nodes that refuse a member for nothing but too little of a resource.
fn lacking_amounts(nodes: &[&Judged]) -> impl Iterator<Item = NodeId> {
    let lacks = |one: &&&Judged| matches!(one.lacking, Some(Lacking::Resource(_)));
    nodes.iter().filter(lacks).map(|one| one.node)
}

/// The first of the areas in which most missing members fit, with their number; and in how many
/// areas all fit.
fn roomiest<'a, 'b>(
    state: &ClusterState,
    missing: &Missing,
    areas: &'a [Area<'b>],
) -> (Option<(u64, &'a Area<'b>)>, u32) {
    let mut best: Option<(u64, &Area<'_>)> = None;
    let mut with_room = 0;
    for area in areas {
        let fits = fits(state, missing, &area.judged);
        with_room += u32::from(fits >= missing.need);
        if best.is_none_or(|(fits_best, _)| fits > fits_best) {
            best = Some((fits, area));
        }
    }
    (best, with_room)
}

/// Adds numbers of members, which need not be numbers of pods that exist: a sum stops at the
/// largest number.
fn sum(one: u64, other: u64) -> u64 {
    one.saturating_add(other)
}

fn judge(
    state: &ClusterState,
    missing: &Missing,
    view: Option<&View<'_>>,
    (id, known): (NodeId, &KnownNode),
) -> Judged {
    let (node, class) = (&state.nodes[id], &state.classes[missing.class]);
    let free = u64::from(node.multiplicity(class));
    let mut judged = Judged {
        node: id,
        fits: 0,
        fits_empty: 0,
        refused: None,
        lacking: None,
        would_hold: 0,
        model: known.model,
    };
    match state.static_verdict(missing.class, id) {
        None => {}
        Some(Err(filter)) => {
            judged.refused = Some(filter);
            let shape = &class.shape;
            if filter::is_refused_for_one_thing(shape, &known.facts, &known.gpu) {
                judged.would_hold = free;
            }
        }
        Some(Ok(())) => {
            judged.fits_empty = node.multiplicity_empty(class);
            let most = view.map_or(u64::MAX, |view| u64::from(view.most(id)));
            if let Some(Err(filter)) = view.filter(|_| free > 0).map(|view| view.verdict(id)) {
                judged.refused = Some(filter);
                judged.would_hold = free;
            } else if free == 0 {
                judged.lacking = Some(node.lacking(class));
                judged.refused = Some(filter_of(state, missing.class, node));
            } else if allowed(state, missing, judged.model) == 0 {
                let product = known.gpu.product.clone().unwrap_or_default();
                judged.refused = Some(Filter::ModelLimit(product));
                judged.would_hold = free;
            } else {
                judged.fits = free.min(most);
            }
        }
    }
    judged
}

/// Lets one node of each domain in which members keep each other apart hold one member.
fn keep_apart(view: &View<'_>, judged: &mut [Judged]) {
    let mut taken = BTreeSet::new();
    for one in judged.iter_mut().filter(|one| one.fits > 0) {
        if let Some(domain) = view.apart(one.node)
            && !taken.insert(domain)
        {
            one.fits = 0;
            one.refused = Some(Filter::PodAntiAffinity);
        }
    }
}

/// How many more members the limits on a GPU model allow.
fn allowed(state: &ClusterState, missing: &Missing, model: Option<GovernedId>) -> u64 {
    let counted = state.counted(missing.class, None);
    let budget = || state.queues.budget(missing.limits?, model?);
    match budget() {
        Some(budget) if counted > 0 => budget / counted,
        _ => u64::MAX,
    }
}

/// How many members these nodes hold together.
fn fits(state: &ClusterState, missing: &Missing, nodes: &[&Judged]) -> u64 {
    let mut by_model: BTreeMap<Option<GovernedId>, u64> = BTreeMap::new();
    for judged in nodes {
        let fits = by_model.entry(judged.model).or_insert(0);
        *fits = sum(*fits, judged.fits);
    }
    by_model
        .into_iter()
        .map(|(model, fits)| fits.min(allowed(state, missing, model)))
        .fold(0, sum)
}

/// A domain, a node or the cluster, which has no name, and its nodes.
struct Area<'a> {
    name: Option<String>,
    judged: Vec<&'a Judged>,
}

/// The areas in which members may be together: domains by path, nodes by name. Where a group above
/// must be in one domain of another topology, an area is what two domains have in common: `r1
/// within power/a`.
fn areas<'a>(state: &ClusterState, missing: &Missing, judged: &[&'a Judged]) -> Vec<Area<'a>> {
    let mut scopes = Vec::from([missing.scope]);
    for scope in &missing.inside {
        if !scopes.iter().any(|known| of_one_topology(*known, *scope)) {
            scopes.push(*scope);
        }
    }
    if scopes == [Scope::Cluster] {
        return Vec::from([Area {
            name: None,
            judged: judged.to_vec(),
        }]);
    }
    let mut areas: BTreeMap<Vec<String>, Vec<&'a Judged>> = BTreeMap::new();
    for judged in judged {
        let names = scopes
            .iter()
            .map(|scope| name_in(state, *scope, judged.node));
        if let Some(names) = names.collect::<Option<Vec<String>>>() {
            areas.entry(names).or_default().push(*judged);
        }
    }
    let named = areas.into_iter().map(|(names, judged)| Area {
        name: Some(names.join(" within ")),
        judged,
    });
    named.collect()
}

/// Whether each domain of the inner scope lies in one domain of the outer scope.
fn of_one_topology(inner: Scope, outer: Scope) -> bool {
    match (inner, outer) {
        (Scope::OneNode | Scope::Node(_), _) => true,
        (
            Scope::Level(inner, _) | Scope::DomainOf(inner, ..),
            Scope::Level(outer, _) | Scope::DomainOf(outer, ..),
        ) => inner == outer,
        _ => false,
    }
}

/// The name of the domain or node of a scope that a node belongs to; `None`: it belongs to none.
fn name_in(state: &ClusterState, scope: Scope, node: NodeId) -> Option<String> {
    let node_name = || Some(String::from(&*state.nodes[node].name));
    let domain = |id, level: usize| {
        let topology: &Topology = &state.topologies[id];
        let domain = topology.path(node).get(level)?;
        Some(topology.display(*domain))
    };
    match scope {
        Scope::Cluster => Some(String::new()),
        Scope::Level(id, level) => domain(id, level),
        Scope::DomainOf(id, level, _) => scope.holds(state, node).then(|| domain(id, level))?,
        Scope::OneNode => node_name(),
        Scope::Node(only) => (node == only).then(node_name)?,
    }
}

/// The name of the level of which a scope is one domain, `node`, or `cluster`.
pub(crate) fn level(state: &ClusterState, scope: Scope) -> Box<str> {
    match scope {
        Scope::Cluster => "cluster".into(),
        Scope::Level(topology, level) | Scope::DomainOf(topology, level, _) => {
            state.topologies[topology].levels[level].name.clone()
        }
        Scope::OneNode | Scope::Node(_) => "node".into(),
    }
}

fn unlabelled_level(state: &ClusterState, scope: Scope) -> Option<String> {
    let (Scope::Level(topology, level) | Scope::DomainOf(topology, level, _)) = scope else {
        return None;
    };
    let topology = &state.topologies[topology];
    let at = topology.unlabelled_level()?;
    (at <= level).then(|| topology.unlabelled().map(|unlabelled| unlabelled.sentence))?
}

fn counts(nodes: &[&Judged]) -> NodeCounts {
    let mut refused: BTreeMap<&Filter, (u32, u64)> = BTreeMap::new();
    let mut counts = NodeCounts::default();
    for judged in nodes {
        counts.nodes += 1;
        counts.with_room += u32::from(judged.fits > 0);
        if let Some(filter) = &judged.refused {
            let (nodes, would_hold) = refused.entry(filter).or_default();
            *nodes += 1;
            *would_hold = sum(*would_hold, judged.would_hold);
        }
    }
    let mut refused: Vec<_> = refused.into_iter().collect();
    refused.sort_by_key(|(filter, (nodes, _))| (Reverse(*nodes), *filter));
    let refused = refused.into_iter();
    counts.refused = refused
        .map(|(filter, (nodes, would_hold))| Refused {
            because: alloc::format!("{filter}"),
            nodes,
            would_hold,
            closed: filter.closes_node(),
            for_volumes: filter.is_about_volumes(),
        })
        .collect();
    counts
}

/// The occupants of what is missing, on nodes that would take a member if they were empty, and room
/// that is kept there for others. A node of a GPU model whose limit is reached takes no member,
/// whatever ends there.
fn occupants(
    state: &ClusterState,
    missing: &Missing,
    nodes: &[&Judged],
    now_ms: UnixMs,
) -> (Vec<Occupant>, Vec<KeptRoom>) {
    let takes = |j: &&&Judged| j.fits_empty > 0 && allowed(state, missing, j.model) > 0;
    let would: Vec<&Judged> = nodes.iter().filter(takes).copied().collect();
    let class = &state.classes[missing.class];
    let scarce = scarce(&state.resource_names, &would).unwrap_or(class.primary);
    let nodes: Vec<NodeId> = would.iter().map(|judged| judged.node).collect();
    let found = occupancies(state, missing.gang, scarce, &nodes, now_ms).into_iter();
    let asked = amount_of(&class.requests, scarce);
    let told = found.take(OCCUPANTS_NAMED);
    let told = told.map(|one| one.told(state, asked));
    (told.collect(), kept(state, missing.gang, scarce, &nodes))
}

/// The resource that most of these nodes have too little of.
fn scarce(names: &ResourceNames, nodes: &[&Judged]) -> Option<ResourceId> {
    let mut lacking: BTreeMap<Lacking, u32> = BTreeMap::new();
    for missing in nodes.iter().filter_map(|judged| judged.lacking) {
        *lacking.entry(missing).or_insert(0) += 1;
    }
    scarcest(names, &lacking)
}
