//! The core and the surplus of a gang, among its members that have a place.
//!
//! The core are the members of its minimum, which leave together or not at all. All other members
//! are surplus. A surplus member leaves alone, with one exception: of a sub-group that the gang can
//! go without, the minimum leaves as a whole, and takes the other members of that sub-group along.
//! A part of a sub-group would be of no use.

use crate::gangs::counts::by_leaf;
use crate::ids::{GangId, PodId};
use crate::state::ClusterState;
use crate::state::gang::{Gang, GroupTree};
use crate::state::minima::Surplus;
use crate::state::pod::{Pod, Stage};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use smallvec::SmallVec;

/// The members with a place that the gang cannot lose without going below its minimum. Of members
/// that could stand for each other the newest are surplus: they leave first.
///
/// `members`: all members with a place, the oldest first.
pub(crate) fn core(state: &ClusterState, id: GangId, members: &[PodId]) -> SmallVec<[PodId; 2]> {
    let gang = &state.gangs[id];
    let mut members: SmallVec<[PodId; 2]> = members.iter().copied().collect();
    if let ([_], None) = (&*gang.members, gang.tree())
        && gang.spec.minimum > 0
    {
        return members;
    }
    let counted = counted(state, gang);
    let Some(tree) = gang.tree() else {
        let surplus = counted[0].saturating_sub(gang.spec.minimum) as usize;
        members.truncate(members.len().saturating_sub(surplus));
        return members;
    };
    members.reverse();
    core_of(state, gang, tree, (0, counted), &members)
}

/// How many members of each leaf count towards the minimum: also a member that has succeeded, even
/// if it was asked to leave just before.
fn counted(state: &ClusterState, gang: &Gang) -> Vec<u32> {
    let counts = |pod: &Pod| pod.stays() || pod.stage == Stage::Ended { succeeded: true };
    by_leaf(state, gang, &counts)
}

/// The members that a group cannot lose, given how many members of each leaf count. `members`: all
/// below the group, the newest first.
fn core_of(
    state: &ClusterState,
    gang: &Gang,
    tree: &GroupTree,
    (group, mut counted): (usize, Vec<u32>),
    members: &[PodId],
) -> SmallVec<[PodId; 2]> {
    let mut core = SmallVec::new();
    for pod in members {
        let Some(leaf) = gang.leaf_of(&state.pods[*pod]) else {
            continue;
        };
        counted[leaf] = counted[leaf].saturating_sub(1);
        if tree.needs(&counted)[group] > 0 {
            counted[leaf] += 1;
            core.push(*pod);
        }
    }
    core
}

/// The surplus of a gang, divided into what leaves together, the newest first.
///
/// `members`: all members with a place, the oldest first. `core`: see [`core`].
pub(crate) fn surplus(
    state: &ClusterState,
    id: GangId,
    members: &[PodId],
    core: &[PodId],
) -> Vec<Surplus> {
    if core.len() == members.len() {
        return Vec::new();
    }
    let gang = &state.gangs[id];
    let pods = others_than(core, members.iter().rev());
    let Some(tree) = gang.tree() else {
        let pods = pods.into_iter();
        return pods.map(|pod| Surplus::one(pod, &[])).collect();
    };
    let mut division = Division {
        state,
        gang,
        tree,
        counted: counted(state, gang),
        needed: BTreeSet::new(),
        surplus: Vec::new(),
    };
    division.need(core);
    division.divide(0, pods, &[]);
    division.surplus
}

/// The pods that are not in a core.
fn others_than<'a>(core: &[PodId], pods: impl Iterator<Item = &'a PodId>) -> Vec<PodId> {
    let mut core = core.to_vec();
    core.sort_unstable();
    let others = pods.filter(|pod| core.binary_search(pod).is_err());
    others.copied().collect()
}

/// The surplus of a gang with sub-groups, while it is divided.
struct Division<'a> {
    state: &'a ClusterState,
    gang: &'a Gang,
    tree: &'a GroupTree,
    /// How many members of each leaf count towards the minimum.
    counted: Vec<u32>,
    /// The groups of which members are needed by the group above.
    needed: BTreeSet<usize>,
    surplus: Vec<Surplus>,
}

impl Division<'_> {
    /// Notes that these members are needed, and so all groups in which they are.
    fn need(&mut self, pods: &[PodId]) {
        for pod in pods {
            let leaf = self.gang.leaf_of(&self.state.pods[*pod]);
            let path = leaf.into_iter().flat_map(|leaf| self.tree.path(leaf));
            self.needed.extend(path);
        }
    }

    /// The widest group below the group `above` in which a member is and of which no member is
    /// needed.
    fn optional(&self, pod: PodId, above: usize) -> Option<usize> {
        let leaf = self.gang.leaf_of(&self.state.pods[pod])?;
        let path = self.tree.path(leaf).take_while(|group| *group != above);
        path.filter(|group| !self.needed.contains(group)).last()
    }

    /// Divides surplus of the group `above`, the newest first. `leaves_with`: the positions in
    /// `surplus` of the surplus whose leaving takes these pods along.
    fn divide(&mut self, above: usize, pods: Vec<PodId>, leaves_with: &[usize]) {
        let needs = self.tree.needs(&self.counted);
        let mut by_group: BTreeMap<usize, Vec<PodId>> = BTreeMap::new();
        for pod in pods {
            match self.optional(pod, above).filter(|group| needs[*group] == 0) {
                Some(group) => by_group.entry(group).or_default().push(pod),
                None => self.surplus.push(Surplus::one(pod, leaves_with)),
            }
        }
        for (group, pods) in by_group {
            let within = (group, self.counted.clone());
            let core = core_of(self.state, self.gang, self.tree, within, &pods);
            self.need(&core);
            let mut leaves_with = leaves_with.to_vec();
            if !core.is_empty() {
                self.surplus.push(Surplus {
                    pods: core.iter().copied().collect(),
                    leaves_with: leaves_with.clone(),
                });
                leaves_with.push(self.surplus.len() - 1);
            }
            self.divide(group, others_than(&core, pods.iter()), &leaves_with);
        }
    }
}
