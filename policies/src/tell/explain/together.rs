//! How near a gang comes to starting if its members, of several shapes or sub-groups, do not fit
//! together.

use super::ends;
use super::ends::AREAS_TRIED;
use crate::explain::{Explanation, LeftOut, Proof, Shortage, Together};
use crate::facts::{Amount, UnixMs};
use crate::gangs::progress::Progress;
use crate::gangs::{demand, wanted};
use crate::ids::{ById, ClassId, GangId, NodeId, PodId};
use crate::place::{
    Area, CHOICES_MAX, Choice, Memo, Request, SLICE_STEPS, Scope, Subset, largest_subset, place,
    pods_of, widest_areas, widest_scope,
};
use crate::plan::bounds;
use crate::queues::QueueId;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::ClusterState;
use crate::tell::explain;
use crate::tell::explain::Tried;
use crate::txn::Txn;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// How many choices of members are tried where the queue has room for some of them only.
const CHOICES_TRIED: usize = 8;

/// How many shapes of a gang are compared, to say what tells the shapes apart.
const SHAPES_TOLD_APART: usize = 32;

/// Adds how near a gang comes that lacks room on nodes, and returns what would let the gang start.
pub(crate) fn explain_together(
    state: &mut ClusterState,
    settings: &Settings,
    progress: &ById<GangId, Progress>,
    (id, queue): (GangId, QueueId),
    explanation: &mut Explanation,
    now_ms: UnixMs,
) -> Tried {
    let of_queue = explanation.reason.is_some_and(Reason::is_of_queue);
    let requests = wanted::requests(state, settings, progress, id, queue, now_ms);
    if explanation.excess.is_some() && explanation.shortages.is_empty() {
        let mut requests = requests.into_iter();
        return Tried {
            nodes_have_room: requests.any(|request| has_room_on_nodes(state, request)),
            ..Tried::default()
        };
    }
    let tree = requests.into_iter().next();
    let Some(tree) = tree.filter(|_| !explanation.shortages.is_empty() && !of_queue) else {
        return Tried::default();
    };
    if tree.is_related(state) {
        // Counting and subsets do not look at rules about other pods.
        return Tried {
            is_related: true,
            ..Tried::default()
        };
    }
    let refused = explanation.proof == Some(Proof::Proved);
    let Some((tree, subset)) = largest_allowed(state, (id, queue), tree, refused) else {
        return Tried::default();
    };
    if subset.left.is_empty() {
        return Tried {
            fits: ends::has_room_for(state, (id, queue), &subset.placed),
            ..Tried::default()
        };
    }
    let shapes = explanation.shortages.len().max(tree.classes().len());
    if tree.groups.len() > 1 || shapes > 1 {
        explanation.together = together(state, &tree, &subset);
    }
    let shortages = explanation.shortages.iter().enumerate();
    // A native group says of a label that it is required, and cannot prefer one.
    let can_prefer = state.gangs[id].spec.required_label.is_none();
    let wishes = shortages
        .filter(|(_, one)| can_prefer && may_be_a_wish(state, (id, queue), &tree, one))
        .map(|(position, _)| position)
        .collect();
    // Ends can help only if empty nodes would do.
    let possible = |one: &Shortage| one.fits_empty >= one.need;
    let ends = explanation.shortages.iter().all(possible).then(|| {
        let nearest = told_area(state, &tree, explanation).unwrap_or(subset.area);
        let root = &tree.groups[0];
        let others = widest_areas(state, root.near, root.anchor).into_iter();
        let others = others.filter(|area| *area != nearest);
        let areas = [nearest].into_iter().chain(others);
        ends::ends(state, (id, queue), &tree, areas, now_ms)
    });
    Tried {
        fits: false,
        ends: ends.flatten(),
        wishes,
        ..Tried::default()
    }
}

/// Whether what a gang asks for has places on nodes if no limit of a queue is in the way.
fn has_room_on_nodes(state: &mut ClusterState, mut request: Request) -> bool {
    let mut txn = Txn::default();
    let start = txn.checkpoint();
    let mut memo = Memo::default();
    memo.begin_slice(SLICE_STEPS);
    request.model_limits = None;
    let placed = place(state, &mut txn, &mut request, &mut memo, &mut 0);
    txn.rollback(state, start);
    placed.is_ok()
}

/// The largest subset that can be placed of members that the queue has room for, and its tree. If
/// the queue has room for some choices only, this is the best of these choices, as a tree of its
/// own. `refused`: it is proved that the gang does not fit.
fn largest_allowed(
    state: &mut ClusterState,
    (id, queue): (GangId, QueueId),
    tree: Request,
    refused: bool,
) -> Option<(Request, Subset)> {
    let (choices, _) = tree.choices(state);
    let allowed = |choice: &&Choice| {
        let pods: Vec<PodId> = pods_of(choice).collect();
        let demand = demand::demand_of_pods(state, pods.iter());
        bounds::within_bounds(state, id, queue, &demand).is_ok()
    };
    let open: Vec<&Choice> = choices.iter().filter(allowed).collect();
    if open.len() == choices.len() {
        let subset = largest_subset(state, &tree, refused)?;
        return Some((tree, subset));
    }
    let all = open.len() <= CHOICES_TRIED && choices.len() < CHOICES_MAX;
    let tried = open.iter().take(CHOICES_TRIED).filter_map(|choice| {
        let tree = tree.chosen(choice);
        let subset = largest_subset(state, &tree, refused)?;
        Some((tree, subset))
    });
    let tried: Vec<(Request, Subset)> = tried.collect();
    let proved = all && tried.iter().all(|(_, subset)| subset.proved);
    let mut best = tried
        .into_iter()
        .min_by_key(|(_, subset)| subset.left.len())?;
    best.1.proved = proved;
    Some(best)
}

/// Whether the whole tree finds places if the level of a shortage is preferred and not required.
fn may_be_a_wish(
    state: &mut ClusterState,
    gang: (GangId, QueueId),
    tree: &Request,
    shortage: &Shortage,
) -> bool {
    if &*shortage.level == "cluster" || shortage.members_short() == 0 {
        return false;
    }
    let mut tree = tree.clone();
    for index in 0..tree.groups.len() {
        let required = match shortage.required_by.as_slice() {
            [] => index == 0,
            paths => paths.contains(&tree.path(index)),
        };
        if required {
            tree.groups[index].near = None;
        }
    }
    let root = &tree.groups[0];
    let areas = widest_areas(state, root.near, root.anchor).into_iter();
    areas
        .take(AREAS_TRIED)
        .any(|area| ends::has_places(state, gang, &tree, area))
}

/// The area that the one shortage names as the nearest, so that the ends are told of that area,
/// too; `None`: no one area was named.
fn told_area(state: &ClusterState, tree: &Request, explanation: &Explanation) -> Option<Area> {
    let [shortage] = explanation.shortages.as_slice() else {
        return None;
    };
    if explanation.together.is_some() || !shortage.required_by.is_empty() {
        return None;
    }
    let root = &tree.groups[0];
    let mut areas = widest_areas(state, root.near, root.anchor).into_iter();
    areas.find(|area| explain::area_name(state, *area) == shortage.domain)
}

/// How many members find a place together, and which do not; `None`: no member does.
fn together(state: &ClusterState, tree: &Request, subset: &Subset) -> Option<Together> {
    if subset.placed.is_empty() {
        return None;
    }
    let root = &tree.groups[0];
    let scope = widest_scope(state, root.near, root.anchor);
    let left = left_out(state, tree, subset);
    let gpus = left.iter().map(|left| left.gpus);
    Some(Together {
        level: explain::level(state, scope),
        domain: explain::area_name(state, subset.area),
        need: (subset.placed.len() + subset.left.len()) as u64,
        placed: subset.placed.len() as u64,
        proved: subset.proved,
        gpus_short: gpus.fold(0, Amount::saturating_add),
        left,
    })
}

/// The members that have no place, by sub-group and shape.
fn left_out(state: &ClusterState, tree: &Request, subset: &Subset) -> Vec<LeftOut> {
    let mut found: Vec<(usize, ClassId, u64)> = Vec::new();
    for pod in &subset.left {
        let class = state.pods[*pod].class;
        let leaf = leaf_of(tree, class, *pod);
        match found.iter_mut().find(|one| (one.0, one.1) == (leaf, class)) {
            Some((.., members)) => *members += 1,
            None => found.push((leaf, class, 1)),
        }
    }
    let mut classes = tree.classes();
    classes.truncate(SHAPES_TOLD_APART);
    let asks = explain::told_apart(state, &classes);
    let left = found.into_iter().map(|(leaf, class, members)| {
        let in_leaf = |pod: &PodId| leaf_of(tree, state.pods[*pod].class, *pod) == leaf;
        let placed = subset.placed.iter().filter(|(pod, _)| in_leaf(pod)).count();
        let left = subset.left.iter().filter(|pod| in_leaf(pod)).count();
        let (level, domain) = kept_in(state, tree, subset, leaf).unzip();
        let mut known = classes.iter().zip(&asks);
        let asks = known.find(|(other, _)| **other == class);
        LeftOut {
            sub_group: (leaf != 0).then(|| tree.path(leaf)),
            need: (placed + left) as u64,
            members,
            asks: asks.map_or_else(
                || explain::asks(state, class, None),
                |(_, asks)| asks.clone(),
            ),
            gpus: state.classes[class].gpus.saturating_mul(members),
            level,
            domain: domain.flatten(),
        }
    });
    left.collect()
}

/// The level of which a leaf, or a sub-group above it, requires one domain, and the domain in which
/// members of it have places. `None`: no sub-group requires one.
fn kept_in(
    state: &ClusterState,
    tree: &Request,
    subset: &Subset,
    leaf: usize,
) -> Option<(Box<str>, Option<String>)> {
    let requires = |group: &usize| {
        let near = tree.groups[*group].near;
        *group != 0 && near.is_some_and(|near| near.required.is_some())
    };
    let group = tree.above(leaf).find(requires)?;
    let below = |pod: PodId| {
        let leaf = leaf_of(tree, state.pods[pod].class, pod);
        tree.above(leaf).any(|above| above == group)
    };
    let mut placed = subset.placed.iter();
    let node: Option<NodeId> = placed.find(|(pod, _)| below(*pod)).map(|(_, node)| *node);
    let near = tree.groups[group].near;
    let anchor = tree.groups[group].anchor.or(node);
    let scope = widest_scope(state, near, anchor);
    let domain = match (scope, anchor) {
        (Scope::Node(node), _) => Some(String::from(&*state.nodes[node].name)),
        (Scope::DomainOf(topology, level, _), Some(node)) => {
            let topology = &state.topologies[topology];
            let domain = topology.path(node).get(level);
            domain.map(|domain| topology.display(*domain))
        }
        _ => None,
    };
    Some((explain::level(state, scope), domain))
}

/// The leaf that a pod is requested for.
fn leaf_of(tree: &Request, class: ClassId, pod: PodId) -> usize {
    let offers = |leaf: &usize| {
        let mut pods = tree.groups[*leaf].pods.iter();
        pods.any(|group| group.class == class && group.pods.contains(&pod))
    };
    (0..tree.groups.len()).find(offers).unwrap_or(0)
}
