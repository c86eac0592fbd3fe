//! How many members a gang has, by what has become of them.
//!
//! A gang has no stored phase. Phase, counts and conditions are worked out from its pods each time,
//! so nothing can be stuck in a phase.

use crate::facts::UnixMs;
use crate::ids::GangId;
use crate::state::ClusterState;
use crate::state::gang::{Gang, GroupTree};
use crate::state::pod::{Pod, Stage};
use alloc::vec;
use alloc::vec::Vec;

/// The members of a gang, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The minimum; of a tree of sub-groups the fewest pods that meet it.
    pub(crate) expected: u32,
    /// Pods that exist.
    pub(crate) created: u32,
    /// Pods on nodes, alive and not leaving.
    pub(crate) bound: u32,
    /// Pods whose binding is on its way.
    pub(crate) assumed: u32,
    /// Pods that run, leaving or not.
    pub(crate) running: u32,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
    /// Pods without a node that are not leaving.
    pub(crate) waiting: u32,
    /// Waiting pods that nothing keeps from being placed.
    pub(crate) placeable: u32,
    /// How many more members the minimum wants: minimum - bound - assumed - succeeded. Failed and
    /// deleted members do not count. Of a tree: the fewest more that meet the minima of all levels.
    pub(crate) needed: u32,
    /// Whether the placeable pods are fewer than are needed.
    pub(crate) short: bool,
    /// Whether the bound and the succeeded pods meet the minimum.
    pub(crate) met: bool,
    /// Whether the pods that have ended meet the minimum.
    pub(crate) ended: bool,
}

/// Counts the members of a gang.
pub(crate) fn count(state: &ClusterState, id: GangId, now_ms: UnixMs) -> Counts {
    let gang = &state.gangs[id];
    let mut counts = Counts::default();
    for member in &gang.members {
        let pod = &state.pods[*member];
        counts.created += 1;
        counts.running += u32::from(pod.running && pod.stage.is_bound());
        match pod.stage {
            Stage::Ended { succeeded: true } => counts.succeeded += 1,
            Stage::Ended { succeeded: false } => counts.failed += 1,
            _ if pod.deleting => {}
            Stage::Waiting => {
                counts.waiting += 1;
                counts.placeable += u32::from(state.may_be_placed(gang, pod, now_ms));
            }
            Stage::Assumed(_) => counts.assumed += 1,
            Stage::Bound(_) => counts.bound += 1,
        }
    }
    match gang.tree() {
        None => counts.judge(gang.spec.minimum),
        Some(tree) => counts.judge_tree(state, gang, tree, now_ms),
    }
    counts
}

impl Counts {
    /// Whether nothing of the gang is left that could run: as many pods as the minimum wants have
    /// ended, and all other pods, too.
    pub(crate) fn have_ended(&self) -> bool {
        let ended = self.succeeded + self.failed;
        self.ended && self.created > 0 && ended == self.created
    }

    fn judge(&mut self, minimum: u32) {
        self.expected = minimum;
        let with_place = self.bound + self.assumed + self.succeeded;
        // tests plant bugs here: members-still-needed
        self.needed = minimum.saturating_sub(with_place);
        self.short = self.needed > self.placeable;
        self.met = self.bound + self.succeeded >= minimum;
        self.ended = self.succeeded + self.failed >= minimum;
    }

    fn judge_tree(&mut self, state: &ClusterState, gang: &Gang, tree: &GroupTree, now_ms: UnixMs) {
        let by_leaf = |counts: &dyn Fn(&Pod) -> bool| by_leaf(state, gang, counts);
        self.expected = tree.fewest();
        self.needed = tree.needs(&by_leaf(&has_place))[0];
        let placeable = |pod: &Pod| has_place(pod) || state.may_be_placed(gang, pod, now_ms);
        self.short = !tree.is_met(&by_leaf(&placeable));
        self.met = tree.is_met(&by_leaf(&has_started));
        self.ended = tree.is_met(&by_leaf(&|pod| matches!(pod.stage, Stage::Ended { .. })));
    }
}

/// Whether a pod is on a node, is on its way to one, or has succeeded.
pub(crate) fn has_place(pod: &Pod) -> bool {
    has_started(pod) || (matches!(pod.stage, Stage::Assumed(_)) && !pod.deleting)
}

/// Whether a pod is on a node and not leaving, or has succeeded.
pub(crate) fn has_started(pod: &Pod) -> bool {
    match pod.stage {
        Stage::Ended { succeeded } => succeeded,
        Stage::Bound(_) => !pod.deleting,
        Stage::Waiting | Stage::Assumed(_) => false,
    }
}

/// How many members `counts` picks, by leaf of the gang's tree; without a tree, one number.
pub(crate) fn by_leaf(
    state: &ClusterState,
    gang: &Gang,
    counts: &dyn Fn(&Pod) -> bool,
) -> Vec<u32> {
    let mut sums = vec![0; gang.tree().map_or(1, |tree| tree.len())];
    for member in &gang.members {
        let pod = &state.pods[*member];
        let leaf = if gang.tree().is_some() {
            gang.leaf_of(pod)
        } else {
            Some(0)
        };
        if let Some(leaf) = leaf.filter(|_| counts(pod)) {
            sums[leaf] += 1;
        }
    }
    sums
}

/// When the last member that the minimum needs got its place; a member that does not say it has
/// just got it.
pub(crate) fn began_ms(
    state: &ClusterState,
    id: GangId,
    counts: &Counts,
    now_ms: UnixMs,
) -> UnixMs {
    let members = state.gangs[id].members.iter().map(|pod| &state.pods[*pod]);
    let placed = members.filter(|pod| pod.stage.node().is_some());
    let mut times: Vec<UnixMs> = placed.map(|pod| pod.bound_ms(now_ms)).collect();
    times.sort_unstable();
    let last = (counts.expected as usize).clamp(1, times.len().max(1)) - 1;
    times.get(last).copied().unwrap_or(now_ms)
}
