//! Sub-groups that a gang could do without, and of which only a part is bound.
//!
//! Each begins as a whole or not at all, like the gang itself. One that was cut off, by a crash or
//! a binding that was refused, is completed before all other gangs; if that fails, its members are
//! evicted at once and the rest of the gang stays. One that was complete and lost members goes on
//! without them: the gang has its minimum. A gang below its minimum is a matter of
//! [`super::partial`].

use super::Engine;
use super::counts::{by_leaf, has_place, has_started};
use super::partial::UNWIND_AFTER_MS;
use super::timers::Timer;
use crate::command::EvictionCause;
use crate::facts::UnixMs;
use crate::ids::GangId;
use crate::state::gang::{GroupTree, Start, Wait};
use crate::state::pod::{Pod, Stage};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};

impl Engine {
    /// Follows how far each sub-group has come. Whether one of them has just become complete.
    pub(crate) fn follow_parts(&mut self, id: GangId, now_ms: UnixMs) -> bool {
        let gang = &self.state.gangs[id];
        let Some(tree) = gang.tree().map(Arc::clone) else {
            self.state.gangs[id].parts.clear();
            return false;
        };
        let needs = self.lacks(id, &has_started);
        let live = by_leaf(&self.state, gang, &is_alive);
        let assumed = by_leaf(&self.state, gang, &is_assumed);
        let mut completed = false;
        let mut parts: BTreeMap<Box<str>, Start> = BTreeMap::new();
        for (index, group) in tree.groups().skip(1) {
            if below(&tree, &live, index) == 0 {
                continue;
            }
            let known = gang.parts.get(&group.name).copied();
            let complete = Start::Complete { since_ms: now_ms };
            let start = match known.unwrap_or(Start::NotBegun) {
                Start::Complete { since_ms } => Start::Complete { since_ms },
                _ if needs[index] == 0 => {
                    completed = true;
                    complete
                }
                Start::Unfinished { stuck_ms } => Start::Unfinished { stuck_ms },
                Start::NotBegun
                    if below(&tree, &assumed, index) > 0
                        || self.has_never_been_complete(id, index) =>
                {
                    Start::Unfinished { stuck_ms: None }
                }
                // It is first seen with a part of its members, and the others came later: it ran.
                Start::NotBegun => complete,
            };
            parts.insert(group.name.clone(), start);
        }
        self.state.gangs[id].parts = parts;
        completed
    }

    /// The sub-groups of a gang that has its minimum which were cut off; of those inside each other
    /// the outermost.
    pub(crate) fn cut_off(&self, id: GangId) -> Vec<usize> {
        let gang = &self.state.gangs[id];
        let begun = |start: &Start| matches!(start, Start::Unfinished { .. });
        let Some(tree) = gang.tree().filter(|_| gang.parts.values().any(begun)) else {
            return Vec::new();
        };
        let needs = tree.needs(&by_leaf(&self.state, gang, &has_place));
        if needs[0] > 0 {
            return Vec::new();
        }
        let is_cut_off = |index: usize| {
            let start = gang.parts.get(&tree.group(index).name);
            needs[index] > 0 && start.is_some_and(begun)
        };
        let mut cut_off: Vec<usize> = Vec::new();
        for (index, _) in tree.groups().skip(1) {
            let inside = cut_off.iter().any(|above| tree.is_below(index, *above));
            if !inside && is_cut_off(index) {
                cut_off.push(index);
            }
        }
        cut_off
    }

    /// Unwinds the sub-groups that were cut off and cannot be completed.
    pub(crate) fn follow_cut_off(&mut self, id: GangId, now_ms: UnixMs) {
        let leading = self.leading;
        for index in self.cut_off(id) {
            let gang = &self.state.gangs[id];
            let Some(tree) = gang.tree().map(Arc::clone) else {
                return;
            };
            let assumed = by_leaf(&self.state, gang, &is_assumed);
            let waits = gang.wait == Wait::Turn || below(&tree, &assumed, index) > 0;
            let gang = &mut self.state.gangs[id];
            let start = gang.parts.get_mut(&tree.group(index).name);
            let Some(Start::Unfinished { stuck_ms }) = start else {
                continue;
            };
            if !leading {
                *stuck_ms = None;
                continue;
            }
            if waits {
                continue;
            }
            let since_ms = *stuck_ms.get_or_insert(now_ms);
            let due_ms = since_ms.saturating_add(UNWIND_AFTER_MS);
            if due_ms > now_ms {
                self.timers.set(due_ms, Timer::Gang(id));
            } else {
                self.evict_below(id, index, EvictionCause::Unwind);
            }
        }
    }
}

/// The sum over the leaves below a group, or of a leaf itself.
fn below(tree: &GroupTree, by_leaf: &[u32], index: usize) -> u32 {
    let leaves = by_leaf.iter().enumerate();
    let leaves = leaves.filter(|(leaf, _)| tree.is_below(*leaf, index));
    leaves.map(|(_, pods)| pods).sum()
}

/// It has a node, or is on its way to one.
fn is_alive(pod: &Pod) -> bool {
    matches!(pod.stage, Stage::Bound(_) | Stage::Assumed(_)) && !pod.deleting
}

fn is_assumed(pod: &Pod) -> bool {
    matches!(pod.stage, Stage::Assumed(_)) && !pod.deleting
}
