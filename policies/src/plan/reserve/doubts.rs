//! Whether changes of nodes may keep promises from being kept.
//!
//! Most changes are of nodes that no promise is for. On a node with promises these are kept if its
//! room suffices at each time at which one of them begins. Where that is not certain, all promises
//! are laid out anew.

use super::ends::Ends;
use super::{Reservation, Reservations};
use crate::facts::{Amount, UnixMs};
use crate::ids::{ClassId, NodeId, ResourceId};
use crate::resources::Resources;
use crate::state::ClusterState;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// One promise on a node: from when, until when, and room for a pod of which class.
pub(super) type Promised = (UnixMs, UnixMs, ClassId);

/// What of the state promises were last held against.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How far the log of changed nodes has been read.
    cursor: u64,
    /// The sum of the versions of all topologies.
    topologies: u64,
    /// The nodes that have changed since planning last ended; `None`: it may be any.
    pub(super) changed: Option<BTreeSet<NodeId>>,
}

impl Seen {
    /// Whether nodes have changed since planning last ended.
    pub(super) fn has_news(&self) -> bool {
        self.changed
            .as_ref()
            .is_none_or(|changed| !changed.is_empty())
    }
}

impl Reservations {
    /// Takes in that all changes in the log of changed nodes between two positions were undone.
    pub(crate) fn note_undone(&mut self, from: u64, to: u64) {
        if self.seen.cursor == from {
            self.seen.cursor = to;
        }
    }

    /// Takes in that planning has ended: what it has changed was held against promises.
    pub(super) fn note_planned(&mut self, state: &ClusterState) {
        self.seen.cursor = state.changes.end();
    }

    /// Whether something has happened since planning last ended that may keep promises from being
    /// kept. Notes whether there may be more room for them, too.
    pub(super) fn are_doubtful(&mut self, state: &mut ClusterState) -> bool {
        let topologies = state.topologies.iter();
        let topologies = topologies.fold(0_u64, |sum, (_, it)| sum.wrapping_add(it.version));
        let before = core::mem::replace(&mut self.seen.topologies, topologies);
        let is_doubtful = core::mem::take(&mut self.is_doubtful) || before != topologies;
        let changed = state.changes.since(self.seen.cursor);
        self.seen.changed = changed.map(Iterator::collect);
        if core::mem::take(&mut self.may_have_room) && self.seen.has_news() {
            self.ask_again();
            self.room_news.note();
        }
        let Some(changed) = self.seen.changed.as_ref().filter(|_| !is_doubtful) else {
            return true;
        };
        let promised = self.promised.iter();
        let by_node = by_node(state, (promised, &self.ends), |node| {
            changed.contains(&node)
        });
        let mut by_node = by_node.iter();
        !by_node.all(|(node, promised)| self.keeps(state, *node, promised))
    }

    /// What promises need beyond what pods leave until then, at the time at which that is most.
    pub(super) fn needed_on(
        &self,
        state: &ClusterState,
        node: NodeId,
        promised: &[Promised],
    ) -> Resources {
        let ends = state.nodes[node].pods.iter().filter_map(|pod| {
            let end_ms = self.ends.of(state.pods[*pod].gang()?)?;
            Some((end_ms, state.pods[*pod].class))
        });
        let ends: Vec<(UnixMs, ClassId)> = ends.collect();
        let mut most: BTreeMap<ResourceId, Amount> = BTreeMap::new();
        for (at_ms, ..) in promised {
            let active = promised
                .iter()
                .filter(|(from, to, _)| from <= at_ms && at_ms < to);
            let mut balance: BTreeMap<ResourceId, i128> = BTreeMap::new();
            for (.., class) in active {
                for (resource, amount) in &state.classes[*class].requests {
                    *balance.entry(*resource).or_default() += i128::from(*amount);
                }
            }
            for (_, class) in ends.iter().filter(|(end_ms, _)| end_ms <= at_ms) {
                for (resource, amount) in &state.classes[*class].requests {
                    *balance.entry(*resource).or_default() -= i128::from(*amount);
                }
            }
            for (resource, needed) in balance {
                let needed = Amount::try_from(needed).unwrap_or(0);
                let known = most.entry(resource).or_default();
                *known = needed.max(*known);
            }
        }
        most.into_iter().filter(|(_, amount)| *amount > 0).collect()
    }

    /// Whether it is certain that a node has room for promises.
    fn keeps(&self, state: &mut ClusterState, node: NodeId, promised: &[Promised]) -> bool {
        if state.nodes.get(node).is_none() {
            return false;
        }
        let mut classes = promised.iter().map(|(.., class)| *class);
        let may_run = classes.all(|class| {
            state.refresh(class);
            let is_counted = state.counts_by_amounts(class);
            let table = state.table_as_of(class);
            is_counted && table.is_some_and(|table| table.is_eligible(node))
        });
        may_run && {
            let needed = self.needed_on(state, node, promised);
            let mut needed = needed.iter();
            needed.all(|(resource, amount)| state.nodes[node].free(*resource) >= *amount)
        }
    }
}

/// Which of these promises there are on each node of which `is_meant` is true.
pub(super) fn by_node<'a>(
    state: &ClusterState,
    (promised, ends): (impl Iterator<Item = &'a Reservation>, &Ends),
    is_meant: impl Fn(NodeId) -> bool,
) -> BTreeMap<NodeId, Vec<Promised>> {
    let mut by_node: BTreeMap<NodeId, Vec<Promised>> = BTreeMap::new();
    for known in promised {
        let start = known.start;
        for (pod, node) in known.places.iter().filter(|(_, node)| is_meant(*node)) {
            if let Some(pod) = state.pods.get(*pod) {
                let promised = by_node.entry(*node).or_default();
                // A gang that takes no time needs room all the same.
                let end_ms = start.end_ms(ends).max(start.at_ms.saturating_add(1));
                promised.push((start.at_ms, end_ms, pod.class));
            }
        }
    }
    by_node
}
