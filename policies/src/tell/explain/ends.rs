//! The occupants whose ends would let a gang start, found by trying.

use crate::facts::UnixMs;
use crate::gangs::demand;
use crate::ids::{ClassId, GangId, NodeId, PodId, ResourceId};
use crate::place::{Area, Request, all_nodes_of, places};
use crate::plan::bounds;
use crate::queues::QueueId;
use crate::state::ClusterState;
use crate::state::node::Lacking;
use crate::tell::explain;
use crate::tell::explain::{Ends, Occupancy};
use crate::txn::Txn;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// How many areas are tried. Most of them are soon seen to be too small even if they were empty.
pub(super) const AREAS_TRIED: usize = 64;

/// For how many occupants it is tried whether the end of this one alone is enough.
const TRIED_ALONE: usize = 6;

/// How many occupants whose end alone is enough are named.
const ALONE_NAMED: usize = 2;

/// Up to how many occupants whose ends are enough together it is tried which of them need not end.
const TRIED_TOGETHER: usize = 6;

/// A waiting gang, and the occupants of what it needs in an area.
struct Trial<'a> {
    state: &'a mut ClusterState,
    gang: (GangId, QueueId),
    tree: &'a Request,
    area: Area,
    found: Vec<Occupancy>,
}

/// The occupants whose ends would make room for the whole tree in one of these areas, the first
/// where that is possible. `None`: no such occupants were found.
pub(crate) fn ends(
    state: &mut ClusterState,
    gang: (GangId, QueueId),
    tree: &Request,
    areas: impl Iterator<Item = Area>,
    now_ms: UnixMs,
) -> Option<Ends> {
    let mut areas = areas.take(AREAS_TRIED);
    areas.find_map(|area| ends_in(state, gang, tree, area, now_ms))
}

fn ends_in(
    state: &mut ClusterState,
    gang: (GangId, QueueId),
    tree: &Request,
    area: Area,
    now_ms: UnixMs,
) -> Option<Ends> {
    let classes = tree.classes();
    tree.refresh(state);
    let mut nodes = all_nodes_of(state, area);
    nodes.retain(|node| {
        let holds = |id| state.nodes[*node].multiplicity_empty(&state.classes[id]);
        let mut classes = classes.iter();
        classes.any(|class| takes(state, *class, *node) && holds(*class) > 0)
    });
    let mut found: Vec<Occupancy> = Vec::new();
    for resource in scarce(state, tree, &nodes) {
        for more in explain::occupancies(state, gang.0, resource, &nodes, now_ms) {
            if found.iter().all(|known| known.gang != more.gang) {
                found.push(more);
            }
        }
    }
    let mut trial = Trial {
        state,
        gang,
        tree,
        area,
        found,
    };
    let all: Vec<usize> = (0..trial.found.len()).collect();
    if all.is_empty() || !trial.fits(&all) {
        return None;
    }
    let mut alone = trial.alone();
    let others_alike = alone.len() > ALONE_NAMED;
    alone.truncate(ALONE_NAMED);
    let (ends, together) = if alone.is_empty() {
        let ends = trial.together(&all);
        let together = ends.len() > 1;
        (ends, together)
    } else {
        (alone, false)
    };
    let told = ends
        .iter()
        .map(|end| trial.found[*end].told(trial.state, 0));
    Some(Ends {
        occupants: told.collect(),
        together,
        others_alike,
        domain: explain::area_name(trial.state, area),
    })
}

/// Whether the whole tree finds places in an area, with members for which the queue has room.
pub(crate) fn has_places(
    state: &mut ClusterState,
    gang: (GangId, QueueId),
    tree: &Request,
    area: Area,
) -> bool {
    places(state, tree, area).is_some_and(|placed| has_room_for(state, gang, &placed))
}

/// Whether the queue has room for members that would be placed.
pub(crate) fn has_room_for(
    state: &ClusterState,
    (gang, queue): (GangId, QueueId),
    placed: &[(PodId, NodeId)],
) -> bool {
    let demand = demand::demand_of_pods(state, placed.iter().map(|(pod, _)| pod));
    bounds::within_bounds(state, gang, queue, &demand).is_ok()
}

/// The resources that the gang asks for. The resources that nodes have too little of come first, in
/// the order of how many nodes lack them.
fn scarce(state: &ClusterState, tree: &Request, nodes: &[NodeId]) -> Vec<ResourceId> {
    let names = &state.resource_names;
    let classes = tree.classes();
    let mut lacking: BTreeMap<ResourceId, u32> = BTreeMap::new();
    for class in &classes {
        let full = nodes
            .iter()
            .filter(|node| takes(state, *class, **node) && state.fits_on(*class, **node) == 0);
        for node in full {
            let node = &state.nodes[*node];
            if let Lacking::Resource(id) = node.lacking(&state.classes[*class]) {
                *lacking.entry(id).or_insert(0) += 1;
            }
        }
    }
    let mut lacking: Vec<(ResourceId, u32)> = lacking.into_iter().collect();
    lacking.sort_by_key(|(id, nodes)| (Reverse(*nodes), names.place(*id)));
    let mut scarce: Vec<ResourceId> = lacking.into_iter().map(|(id, _)| id).collect();
    let classes = classes.iter().map(|class| &state.classes[*class]);
    scarce.extend(classes.clone().map(|class| class.primary));
    scarce.extend(classes.flat_map(|class| class.in_order.iter().map(|(id, _)| *id)));
    let mut known = Vec::new();
    for id in scarce {
        if !known.contains(&id) {
            known.push(id);
        }
    }
    known
}

/// Whether a node takes pods of a class, as far as the static filters say.
fn takes(state: &ClusterState, class: ClassId, node: NodeId) -> bool {
    let table = state.table_as_of(class);
    table.is_some_and(|table| table.is_eligible(node))
}

impl Trial<'_> {
    /// Whether the whole tree finds places once these occupants (positions in `found`) have ended.
    fn fits(&mut self, ends: &[usize]) -> bool {
        let state = &mut *self.state;
        let mut txn = Txn::default();
        let start = txn.checkpoint();
        for end in ends {
            let found = &self.found[*end];
            let pods: Vec<PodId> = match found.gang {
                Some(gang) => state.gangs[gang].members.iter().copied().collect(),
                None => found.pods.clone(),
            };
            for pod in pods {
                txn.end(state, pod);
            }
        }
        let fits = has_places(state, self.gang, self.tree, self.area);
        txn.rollback(state, start);
        fits
    }

    /// The occupants whose end alone is enough, by position: one more than are named, at most.
    fn alone(&mut self) -> Vec<usize> {
        let mut enough = Vec::new();
        for one in 0..self.found.len().min(TRIED_ALONE) {
            if enough.len() <= ALONE_NAMED && self.fits(&[one]) {
                enough.push(one);
            }
        }
        enough
    }

    /// The first occupants whose ends are enough together, without occupants that need not end.
    fn together(&mut self, all: &[usize]) -> Vec<usize> {
        let (mut few, mut enough) = (0, all.len());
        while enough - few > 1 {
            let half = few.midpoint(enough);
            if self.fits(&all[..half]) {
                enough = half;
            } else {
                few = half;
            }
        }
        let mut ends = all[..enough].to_vec();
        if ends.len() <= TRIED_TOGETHER {
            for one in (0..ends.len() - 1).rev() {
                let mut others = ends.clone();
                others.remove(one);
                if self.fits(&others) {
                    ends = others;
                }
            }
        }
        ends
    }
}
