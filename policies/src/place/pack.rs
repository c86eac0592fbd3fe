//! Members of several shapes: the largest first, then a bounded exact search.

use super::domains::{areas, nodes_of, room, scopes};
use super::fill::fill;
use super::{Area, Group, Refusal, Request};
use crate::facts::{Amount, Placement};
use crate::ids::{ClassId, Id, NodeId, PodId, ResourceId};
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::{collections::BTreeSet, vec::Vec};
use core::cmp::Reverse;
use smallvec::SmallVec;

/// How many placements one exact search may try.
const SEARCH_BOUND: u32 = 2_000;
/// The largest gang that is searched exactly; the search is as deep as the gang is large.
const SEARCH_MEMBERS: usize = 64;
/// How many areas of one scope are searched.
const SEARCH_AREAS: usize = 8;

/// Places the gang's needed members, of several classes.
pub(super) fn several_classes(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    work: &mut u64,
) -> Result<(), Refusal> {
    let mut refusal = Refusal::NotTogether { proved: false };
    for scope in scopes(state, request) {
        // What was tried and taken back has left tables behind that are not current.
        for group in &request.groups {
            state.refresh(group.class);
        }
        let mut candidates: Vec<(u64, Area)> = Vec::new();
        let mut best: Option<(u64, Area)> = None;
        for area in areas(state, scope) {
            let fits = bound_of(state, request, area);
            *work += request.groups.len() as u64;
            if fits >= request.need as u64 {
                candidates.push((area_size(state, request, area), area));
            }
            if best.is_none_or(|(most, _)| fits > most) {
                best = Some((fits, area));
            }
        }
        if candidates.is_empty() {
            refusal = counted(state, request, scope, best);
            continue;
        }
        candidates.sort_by_key(|(size, _)| *size);
        let mut proved = candidates.len() <= SEARCH_AREAS;
        for (_, area) in candidates.into_iter().take(SEARCH_AREAS) {
            match in_area(state, txn, request, area, work) {
                Ok(()) => return Ok(()),
                Err(exhausted) => proved &= exhausted,
            }
        }
        refusal = Refusal::NotTogether { proved };
    }
    Err(refusal)
}

/// An upper bound of how many members fit in an area: each class counted alone.
fn bound_of(state: &mut ClusterState, request: &Request, area: Area) -> u64 {
    let groups = request.groups.iter();
    groups
        .map(|g| room(state, request, g.class, area).min(g.pods.len() as u64))
        .sum()
}

fn area_size(state: &mut ClusterState, request: &Request, area: Area) -> u64 {
    request
        .groups
        .iter()
        .map(|g| room(state, request, g.class, area))
        .sum()
}

/// The refusal where counting alone proves it: named after the class that is shortest of room.
fn counted(
    state: &mut ClusterState,
    request: &Request,
    scope: crate::state::gang::Scope,
    best: Option<(u64, Area)>,
) -> Refusal {
    let area = best.map(|(_, area)| area);
    let mut shortest: Option<(u64, ClassId, u64, u64)> = None;
    for group in &request.groups {
        let fits = area.map_or(0, |area| room(state, request, group.class, area));
        let wanted = group.pods.len() as u64;
        let short = wanted.saturating_sub(fits);
        if short > 0 && shortest.is_none_or(|(most, ..)| short > most) {
            shortest = Some((short, group.class, fits, wanted));
        }
    }
    match shortest {
        // Only where every member is needed does one class alone decide when to look again.
        Some((_, class, fits, need)) if request.need == request.members() => Refusal::TooFew {
            class,
            scope,
            best: area,
            fits,
            need,
        },
        _ => Refusal::NotTogether { proved: true },
    }
}

/// Tries one area. `Err(true)`: it is proved that the members do not fit there.
fn in_area(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    area: Area,
    work: &mut u64,
) -> Result<(), bool> {
    for groups in choices(request) {
        let start = txn.checkpoint();
        let before = txn.placed().len();
        for group in &groups {
            state.refresh(group.class);
            fill(state, txn, request, group.class, &group.pods, area, work);
        }
        if txn.placed().len() - before == request.need {
            return Ok(());
        }
        txn.rollback(state, start);
    }
    if request.model_limits.is_some() || request.members() > SEARCH_MEMBERS {
        return Err(false);
    }
    let mut search = Search::new(state, request, area);
    let found = search.descend(state, txn, 0, 0, request.members() - request.need);
    *work += 100 * u64::from(SEARCH_BOUND - search.left);
    // A part of a card goes to one card; the search does not try the others.
    let parts = |group: &Group| {
        state.classes[group.class]
            .cards
            .is_some_and(|c| c.is_fraction())
    };
    let exhausted = search.left > 0 && !request.groups.iter().any(parts);
    if found { Ok(()) } else { Err(exhausted) }
}

/// Which members to take where not all are needed: first those of the largest classes, then those
/// of the smallest.
fn choices(request: &Request) -> SmallVec<[Vec<Group>; 2]> {
    let take = |groups: &mut dyn Iterator<Item = &Group>| -> Vec<Group> {
        let mut left = request.need;
        let mut taken: Vec<Group> = Vec::new();
        for group in groups {
            let share = left.min(group.pods.len());
            left -= share;
            let pods = group.pods[..share].to_vec();
            taken.push(Group {
                class: group.class,
                pods,
            });
        }
        taken
    };
    let largest = take(&mut request.groups.iter());
    if request.need == request.members() {
        return SmallVec::from_iter([largest]);
    }
    let mut smallest = take(&mut request.groups.iter().rev());
    smallest.reverse();
    SmallVec::from_iter([largest, smallest])
}

/// A depth-first search over all ways to place the members, the largest first. Nodes that are the
/// same to every class are tried once; members of one class go to nodes in rising order.
struct Search {
    /// Each member with its class; members of a class stand together.
    members: Vec<(ClassId, PodId)>,
    nodes: Vec<NodeId>,
    resources: Vec<ResourceId>,
    left: u32,
}

/// What makes two nodes the same to a search.
type Signature = SmallVec<[Amount; 8]>;

impl Search {
    fn new(state: &mut ClusterState, request: &Request, area: Area) -> Self {
        let mut members = Vec::new();
        let mut resources = BTreeSet::new();
        for group in &request.groups {
            state.refresh(group.class);
            members.extend(group.pods.iter().map(|pod| (group.class, *pod)));
            resources.extend(
                state.classes[group.class]
                    .requests
                    .iter()
                    .map(|(id, _)| *id),
            );
        }
        let mut nodes = nodes_of(state, area);
        nodes.retain(|node| {
            let spared = request.spares(state, *node);
            !spared
                && request.groups.iter().any(|group| {
                    state
                        .table_as_of(group.class)
                        .is_some_and(|table| table.count(*node) > 0)
                })
        });
        // The tightest first: what a greedy packer would choose is tried first.
        if let Some(first) = request.groups.first() {
            let class = &state.classes[first.class];
            let free = |node: &NodeId| state.nodes[*node].free_scarcest(class);
            nodes.sort_by_key(|node| (free(node), Reverse(*node)));
        }
        Self {
            members,
            nodes,
            resources: resources.into_iter().collect(),
            left: SEARCH_BOUND,
        }
    }

    /// Places the members from `depth` on, all but `spare` of them; `from`: where members of this
    /// class may begin. Who leaves a member of a class out leaves out all that follow of it: they
    /// are alike.
    fn descend(
        &mut self,
        state: &mut ClusterState,
        txn: &mut Txn,
        depth: usize,
        from: usize,
        spare: usize,
    ) -> bool {
        let Some(&(class, pod)) = self.members.get(depth) else {
            return true;
        };
        let mut tried: BTreeSet<Signature> = BTreeSet::new();
        for position in from..self.nodes.len() {
            let node = self.nodes[position];
            let eligible = state
                .table_as_of(class)
                .is_some_and(|table| table.is_eligible(node));
            if !eligible || state.nodes[node].multiplicity(&state.classes[class]) == 0 {
                continue;
            }
            if !tried.insert(self.signature(state, node)) {
                continue;
            }
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            let checkpoint = txn.checkpoint();
            txn.place(state, pod, node, Placement::Binpack);
            let same = self
                .members
                .get(depth + 1)
                .is_some_and(|(next, _)| *next == class);
            if self.descend(
                state,
                txn,
                depth + 1,
                if same { position } else { 0 },
                spare,
            ) {
                return true;
            }
            txn.rollback(state, checkpoint);
        }
        let alike = self.members[depth..]
            .iter()
            .take_while(|(other, _)| *other == class)
            .count();
        alike <= spare && self.descend(state, txn, depth + alike, 0, spare - alike)
    }

    fn signature(&self, state: &ClusterState, node: NodeId) -> Signature {
        let mut signature: Signature = self
            .resources
            .iter()
            .map(|resource| state.nodes[node].free(*resource))
            .collect();
        let mut last = None;
        for (class, _) in &self.members {
            if last == Some(*class) {
                continue;
            }
            last = Some(*class);
            let table = state.table_as_of(*class);
            signature.push(Amount::from(
                table.is_some_and(|table| table.is_eligible(node)),
            ));
            if state.classes[*class].cards.is_some() {
                signature.extend(state.nodes[node].cards.rooms());
            }
            if !state.classes[*class].shape.host_ports.is_empty() {
                // Ports make every node a case of its own.
                signature.push(node.index() as Amount);
            }
        }
        signature
    }
}
