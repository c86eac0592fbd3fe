//! Members whose places depend on each other: affinity, anti-affinity and spread between pods.
//!
//! Where only pods of other gangs decide, the tables of the classes say all, and members are placed
//! as any others are. Here are those that decide for each other.
//!
//! Each member that gets a place may open or close nodes for those that follow, so they are placed
//! one after the other, and what fits is looked at anew before each. Members that no node takes yet
//! are tried again after others: a worker may have to wait for its leader. The first members of a
//! gang that must share a domain may take any domain, so each is tried.
//!
//! A refusal is proved where counting says it: of a single pod, of members that keep each other
//! apart, and where amounts alone do not fit. Else it is bounded, and also where a gang has used up
//! its looks at nodes.

use super::domains::{areas, nodes_of, scopes_under};
use super::fill::best_of;
use super::region::Region;
use super::request::{Request, RequestGroup};
use super::{Area, Group, Refusal, widest_scope};
use crate::facts::Placement;
use crate::ids::{ClassId, NodeId, PodId};
use crate::state::ClusterState;
use crate::state::relations::View;
use crate::txn::Txn;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How many nodes are looked at for one gang, at most: some milliseconds.
const LOOKS: u64 = 1_000_000;

/// Of how many classes the members are tried first, at most.
const FIRST_CLASSES: usize = 8;

impl Request {
    /// Whether where any of the members may go depends on other pods.
    pub(crate) fn is_related(&self, state: &ClusterState) -> bool {
        let mut groups = self.groups.iter().flat_map(|group| &group.pods);
        groups.any(|group| state.is_related(group.class))
    }

    /// Whether a place of one of the members may change where others of them may go.
    pub(super) fn is_entangled(&self, state: &ClusterState) -> bool {
        let groups = || self.groups.iter().flat_map(|group| &group.pods);
        groups().any(|decided| {
            state.is_related(decided.class)
                && groups()
                    .flat_map(|group| &group.pods)
                    .any(|pod| state.decides_for(*pod, decided.class))
        })
    }
}

/// Places what the request needs, or nothing.
///
/// # Errors
/// Why nothing was placed.
pub(super) fn place(
    state: &mut ClusterState,
    txn: &mut Txn,
    request: &Request,
    work: &mut u64,
) -> Result<(), Refusal> {
    let mut placing = Placing {
        state,
        txn,
        request,
        looks: 0,
    };
    let found = placing.group(0, &Region::default());
    *work += placing.looks;
    match found {
        true => Ok(()),
        false => Err(refusal(state, request)),
    }
}

/// Members that are being placed one after the other.
struct Placing<'a> {
    state: &'a mut ClusterState,
    txn: &'a mut Txn,
    request: &'a Request,
    /// How many nodes were looked at.
    looks: u64,
}

impl Placing<'_> {
    /// Places a group in one of the domains in which it may be, nearest first, or nothing of it.
    fn group(&mut self, index: usize, region: &Region) -> bool {
        let group = &self.request.groups[index];
        let spreads = self.request.placement.0 == Placement::Spread;
        for scope in scopes_under(self.state, group.near, group.anchor, spreads) {
            let mut parts: Vec<(u64, Region)> = Vec::new();
            for part in region.parts(self.state, scope) {
                let room = self.room(index, &part);
                if room >= self.request.fewest(index) as u64 {
                    parts.push((room, part));
                }
            }
            parts.sort_by_key(|(room, _)| *room);
            for (_, part) in parts {
                let start = self.txn.checkpoint();
                if self.inside(index, &part) {
                    return true;
                }
                self.txn.rollback(self.state, start);
                if self.looks > LOOKS {
                    return false;
                }
            }
        }
        false
    }

    /// How many pods of a group have room by their amounts, each class counted alone.
    fn room(&mut self, index: usize, part: &Region) -> u64 {
        let nodes = self.nodes(part);
        self.looks += nodes.len() as u64;
        let groups = self.request.pods_below(index);
        let room = groups
            .iter()
            .map(|group| by_amounts(self.state, group.class, &nodes));
        room.sum()
    }

    fn nodes(&self, part: &Region) -> Vec<NodeId> {
        let (area, inside) = part.seen_from(None);
        let mut nodes = nodes_of(self.state, self.request, area);
        nodes.retain(|node| {
            let mut areas = inside.iter();
            areas.all(|area| super::domains::is_inside(self.state, *area, *node))
        });
        nodes
    }

    /// Places a group in a part of the cluster; where that fails, something of it may be placed.
    fn inside(&mut self, index: usize, part: &Region) -> bool {
        let group = &self.request.groups[index];
        if group.children.is_empty() {
            return self.leaf(index, part);
        }
        let mut need = group.need;
        let mut open = group.children.clone();
        while need > 0 {
            let before = need;
            open.retain(|child| {
                let is_placed = need > 0 && self.group(*child, part);
                need -= usize::from(is_placed);
                !is_placed
            });
            if need == before {
                return false;
            }
        }
        true
    }

    fn leaf(&mut self, index: usize, part: &Region) -> bool {
        let group = &self.request.groups[index];
        let nodes = self.nodes(part);
        for nodes in self.shared_domains(&group.pods, &nodes) {
            let rooms = group.pods.iter().map(|group| {
                by_amounts(self.state, group.class, &nodes).min(group.pods.len() as u64)
            });
            if rooms.sum::<u64>() < group.need as u64 {
                continue;
            }
            if self.each_first(group, &nodes) {
                return true;
            }
        }
        self.each_first(group, &nodes)
    }

    /// Places what a leaf needs on these nodes, or nothing: members of one class first, and if that
    /// fails members of another. One large member may take the room of all the others.
    fn each_first(&mut self, group: &RequestGroup, nodes: &[NodeId]) -> bool {
        for first in 0..group.pods.len().min(FIRST_CLASSES) {
            let start = self.txn.checkpoint();
            if self.one_by_one(&group.pods, first, group.need, nodes) {
                return true;
            }
            self.txn.rollback(self.state, start);
            if self.looks > LOOKS {
                break;
            }
        }
        false
    }

    /// The nodes of each domain that members with affinity may have to share with those that they
    /// select, the domain with the fewest nodes first. Empty: there are no such members.
    fn shared_domains(&mut self, groups: &[Group], nodes: &[NodeId]) -> Vec<Vec<NodeId>> {
        for group in groups {
            self.state.refresh(group.class);
            let Some(view) = self.state.view(group.class) else {
                continue;
            };
            let mut domains: BTreeMap<u32, Vec<NodeId>> = BTreeMap::new();
            for node in nodes {
                let domain = view.shared_domain(*node);
                domains.entry(domain).or_default().push(*node);
            }
            domains.remove(&0);
            if !domains.is_empty() {
                let mut domains: Vec<Vec<NodeId>> = domains.into_values().collect();
                domains.sort_by_key(Vec::len);
                return domains;
            }
        }
        Vec::new()
    }

    /// Places `need` of the pods on these nodes, those of the group `first` before the others, each
    /// where it may go by then.
    fn one_by_one(
        &mut self,
        groups: &[Group],
        first: usize,
        mut need: usize,
        nodes: &[NodeId],
    ) -> bool {
        let classes = groups.iter().map(|group| group.class);
        let pods = groups.iter().map(|group| group.pods.as_slice());
        let mut open: Vec<(ClassId, &[PodId])> = classes.zip(pods).collect();
        open[..=first].rotate_right(1);
        while need > 0 {
            let before = need;
            for (class, pods) in &mut open {
                while let Some((pod, rest)) = pods.split_first().filter(|_| need > 0)
                    && let Some(node) = self.best(*class, *pod, nodes)
                {
                    let placement = self.request.placement_of(self.state, *class);
                    self.txn.place(self.state, *pod, node, placement);
                    *pods = rest;
                    need -= 1;
                }
            }
            if need == before || self.looks > LOOKS {
                return need == 0;
            }
        }
        true
    }

    /// The node that a pod prefers, and among equals takes by its placement; `None`: no node takes
    /// it now.
    fn best(&mut self, class: ClassId, pod: PodId, nodes: &[NodeId]) -> Option<NodeId> {
        self.looks += nodes.len() as u64;
        self.state.refresh(class);
        let request = self.request;
        let placement = request.placement_of(self.state, class);
        let mut open = nodes.to_vec();
        open.retain(|node| {
            self.state.fits_on(class, *node) > 0
                && request.model_allows(self.state, class, *node) > 0
        });
        let members = match placement {
            Placement::Spread => self.members(),
            _ => BTreeMap::new(),
        };
        let open = self.state.preferred(pod, open);
        best_of(self.state, pod, placement, &members, open)
    }

    /// How many members of the gang are on each node.
    fn members(&self) -> BTreeMap<NodeId, u32> {
        let mut members = BTreeMap::new();
        let placed = self.txn.placed().iter().map(|(_, node)| node);
        for node in self.request.root().occupied.iter().chain(placed) {
            *members.entry(*node).or_insert(0) += 1;
        }
        members
    }
}

/// How many pods of a class have room on nodes by their amounts, as far as the static filters let
/// the class use them.
fn by_amounts(state: &mut ClusterState, id: ClassId, nodes: &[NodeId]) -> u64 {
    state.refresh(id);
    let (class, table) = (&state.classes[id], state.table_as_of(id));
    let fits = |node: &NodeId| match table.is_some_and(|table| table.is_eligible(*node)) {
        true => u64::from(state.nodes[*node].multiplicity(class)),
        false => 0,
    };
    nodes.iter().map(fits).sum()
}

/// How many pods of a class fit on nodes at most, if their rules keep them apart.
fn apart(state: &mut ClusterState, id: ClassId, nodes: &[NodeId]) -> u64 {
    let by_amounts = by_amounts(state, id, nodes);
    let Some(view) = state.view(id).filter(View::only_closes) else {
        return by_amounts;
    };
    let open = |node: &&NodeId| state.fits_on(id, **node) > 0;
    let (mut domains, mut beside) = (BTreeSet::new(), 0);
    for node in nodes.iter().filter(open) {
        match view.apart(*node) {
            Some(domain) => drop(domains.insert(domain)),
            None => beside += u64::from(state.fits_on(id, *node)),
        }
    }
    by_amounts.min(domains.len() as u64 + beside)
}

/// Why there is no place for a request whose members decide for each other.
pub(super) fn refusal(state: &mut ClusterState, request: &Request) -> Refusal {
    let root = request.root();
    let ([only], true) = (root.pods.as_slice(), request.is_plain()) else {
        return Refusal::NotTogether { proved: false };
    };
    let (class, need) = (only.class, root.need as u64);
    state.refresh(class);
    let scope = widest_scope(state, root.near, root.anchor);
    let mut most: Option<(u64, Area)> = None;
    for area in areas(state, scope) {
        let nodes = nodes_of(state, request, area);
        let fits = match need {
            // For one pod the table says how it is.
            1 => nodes
                .iter()
                .map(|node| u64::from(state.fits_on(class, *node)))
                .sum(),
            _ => apart(state, class, &nodes),
        };
        if most.is_none_or(|(before, _)| fits > before) {
            most = Some((fits, area));
        }
    }
    let fits = most.map_or(0, |(fits, _)| fits);
    if fits >= need {
        return Refusal::NotTogether { proved: false };
    }
    Refusal::TooFew {
        class,
        scope,
        best: most.map(|(_, area)| area),
        fits,
        need,
    }
}
