//! Counts of pods by domain, for rules of pods about other pods.
//!
//! A *tally* counts the pods on nodes that a term selects, or that have a term of their own. There
//! is one for each different term and node label that any class has, so a pod that comes to a node
//! or leaves it costs as many steps as tallies count it, and none where no pod has such rules.
//! [`ClusterState::occupy`] and [`ClusterState::vacate`] keep the tallies, so a Txn undoes what it
//! has changed in them.
//!
//! | tally | counts | by |
//! |---|---|---|
//! | selected | pods that all terms of an affinity select, or a term of anti-affinity | domain |
//! | carrying | pods that have a term of anti-affinity | domain |
//! | spread | pods that a spread constraint selects and that are not being deleted | node |
//! | drawing | pods that have a preferred term, or one of required affinity | domain |
//!
//! Tallies of preferences are the selected, the spread and the drawing ones: they order nodes
//! (`preference`), and no class and no table depends on them.
//!
//! Each tally has a log of the domains whose counts have changed in a way that decides, so the
//! table of a class judges only the nodes of these domains anew (`follow`).
//!
//! Which tallies count a pod is decided once for each label set, unless a term names a label in
//! which pods of one set may differ.
//!
//! Sources: `getIncomingAffinityAntiAffinityCounts` and `getExistingAntiAffinityCounts` of the
//! plugin InterPodAffinity, `calPreFilterState` of PodTopologySpread; the scoring of both.

mod follow;
mod keep;
mod preference;
#[cfg(test)]
mod tests;
mod verdict;

pub(crate) use follow::Stirred;
pub(crate) use verdict::View;

use super::Lookup;
use crate::facts::{LabelSelector, Labels, PodLabels, PodSelection, SpreadRule, label};
use crate::ids::{ById, DomainKeyId, Id, LabelSetId, NodeId, Slab, TallyId};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};
use smallvec::SmallVec;

/// All tallies.
#[derive(Debug)]
pub(crate) struct Relations {
    keys: Slab<DomainKeyId, DomainKey>,
    key_ids: BTreeMap<Box<str>, DomainKeyId>,
    tallies: Slab<TallyId, Tally>,
    tally_ids: Lookup<Arc<Counted>, TallyId>,
    of_set: ById<LabelSetId, OfSet>,
    /// Terms of anti-affinity that are new: pods that they select belong to other classes now.
    new_terms: Vec<TallyId>,
    /// Namespaces have come, gone or changed since their labels were last looked at.
    namespaces_changed: bool,
    /// Rises when labels or taints of any node change, and when nodes come or go.
    version: u64,
}

/// A node label, and its values.
#[derive(Debug)]
struct DomainKey {
    name: Box<str>,
    tallies: u32,
    /// The numbers of all values that were seen, from 1.
    values: BTreeMap<Box<str>, u32>,
    /// The number of each node's value; 0: the node has no such label.
    of_node: ById<NodeId, u32>,
    /// The nodes of each value, by its number.
    nodes: Vec<SmallVec<[NodeId; 2]>>,
}

/// What a tally counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Counted {
    Selected(Vec<PodSelection>, DomainKeyId),
    Carrying(PodSelection, DomainKeyId),
    Spread(PodSelection, DomainKeyId),
    /// With what a node gets for each of the pods.
    Drawing(PodSelection, DomainKeyId, i32),
}

#[derive(Debug)]
struct Tally {
    of: Arc<Counted>,
    /// How many classes read it or are counted in it.
    classes: u32,
    /// By the number of the domain, or by node.
    counts: Vec<u32>,
    total: u64,
    /// A hash of what decides in `counts`: equal again after a change was undone.
    digest: u64,
    /// The changes that decide.
    log: follow::SlotLog,
    /// Pods with one label set may differ in a label that is asked for.
    differs_in_set: bool,
}

/// The tallies that concern pods of a label set.
#[derive(Debug, Default)]
struct OfSet {
    /// The tallies in which they are, or may be, counted.
    counted: SmallVec<[TallyId; 2]>,
    /// The terms of others' anti-affinity that select them, or may do so.
    kept_out: SmallVec<[TallyId; 2]>,
    /// The terms of others that draw them or send them away, or may do so.
    drawn: SmallVec<[TallyId; 2]>,
}

/// The rules that pods of a class have, and those of others that concern them.
#[derive(Debug, Default)]
pub(crate) struct ClassRelations {
    /// One tally for each term of the affinity: all count pods that all terms select.
    affinity: Vec<TallyId>,
    /// The class itself is selected by all terms of its affinity.
    likes_itself: bool,
    /// A tally for each term of the anti-affinity, and whether the term selects the class itself.
    anti_affinity: Vec<(TallyId, bool)>,
    /// The tallies of terms that pods of the class have, each once.
    carries: Vec<TallyId>,
    /// The terms of others' anti-affinity that select pods of the class; sorted.
    kept_out: Vec<TallyId>,
    /// The spread that is required.
    spread: SpreadTallies,
    /// A tally for each preferred term, and what a node gets for each pod in its domain.
    preferred: Vec<(TallyId, i32)>,
    /// The spread that is preferred.
    preferred_spread: SpreadTallies,
    /// How far the table of the class has followed other pods.
    followed: follow::Followed,
}

/// The tallies of topology spread constraints.
#[derive(Debug, Default)]
struct SpreadTallies {
    /// A tally for each constraint.
    tallies: Vec<TallyId>,
    /// By node, a bit for each constraint for which the node counts.
    included: ById<NodeId, u32>,
    /// The version of the nodes for which `included` was worked out; `None`: it was not yet.
    included_as_of: Option<u64>,
    /// The pods in each domain, for each constraint.
    domains: Vec<follow::DomainCounts>,
}

impl OfSet {
    /// Notes that a tally may select pods of the set.
    fn add(&mut self, of: &Counted, id: TallyId) {
        match of {
            Counted::Selected(..) | Counted::Spread(..) => self.counted.push(id),
            Counted::Carrying(..) => self.kept_out.push(id),
            Counted::Drawing(..) => self.drawn.push(id),
        }
    }
}

impl Counted {
    fn key(&self) -> DomainKeyId {
        match self {
            Self::Selected(_, key)
            | Self::Carrying(_, key)
            | Self::Spread(_, key)
            | Self::Drawing(_, key, _) => *key,
        }
    }

    fn selections(&self) -> &[PodSelection] {
        match self {
            Self::Selected(selections, _) => selections,
            Self::Carrying(selection, _)
            | Self::Spread(selection, _)
            | Self::Drawing(selection, ..) => core::slice::from_ref(selection),
        }
    }

    /// Whether it counts the pods that have the term, and not those that the term selects.
    fn is_carried(&self) -> bool {
        matches!(self, Self::Carrying(..) | Self::Drawing(..))
    }
}

impl Tally {
    /// Whether a pod of a namespace is selected. `stated`: the stated labels of its label set;
    /// requirements on labels in which pods of one set may differ are passed over.
    fn may_select(
        &self,
        namespace: &str,
        spans: impl Fn(&PodSelection) -> bool,
        stated: Option<&Arc<Labels>>,
    ) -> bool {
        self.of.selections().iter().all(|selection| {
            let by_labels = selection.labels.as_ref();
            let named = selection.namespaces.iter().any(|name| &**name == namespace);
            (named || spans(selection))
                && by_labels.is_some_and(|labels| {
                    self.differs_in_set || labels.selects(|key| label(stated?, key))
                })
        })
    }

    /// Counts one pod more or less in a slot.
    fn change(&mut self, slot: usize, takes: bool) {
        if self.counts.len() <= slot {
            self.counts.resize(slot + 1, 0);
        }
        let before = self.counts[slot];
        let after = match takes {
            true => before.saturating_add(1),
            false => before.saturating_sub(1),
        };
        self.counts[slot] = after;
        self.total = self.total + u64::from(after) - u64::from(before);
        let (was, is) = (self.decisive(slot, before), self.decisive(slot, after));
        if was != is {
            self.digest ^= was ^ is;
            self.log.push(slot, takes);
        }
    }

    /// A hash of a count, as far as it decides: of pods that keep others near or away only whether
    /// there is any.
    fn decisive(&self, slot: usize, count: u32) -> u64 {
        let count = match *self.of {
            Counted::Spread(..) | Counted::Drawing(..) => count,
            Counted::Selected(..) | Counted::Carrying(..) => count.min(1),
        };
        if count == 0 {
            return 0;
        }
        let mixed = (slot as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(count);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn count(&self, slot: u32) -> u32 {
        self.counts.get(slot as usize).copied().unwrap_or(0)
    }

    /// How many pods a tally that counts by node has on a node.
    fn at(&self, node: NodeId) -> u32 {
        self.counts.get(node.index()).copied().unwrap_or(0)
    }
}

impl DomainKey {
    /// Notes the value that the labels of a node have.
    fn set(&mut self, node: NodeId, labels: Option<&Labels>) {
        let value = labels.and_then(|labels| label(labels, &self.name));
        let number = value.map_or(0, |value| match self.values.get(value) {
            Some(number) => *number,
            None => {
                let next = u32::try_from(self.values.len() + 1).unwrap_or(u32::MAX);
                self.values.insert(value.into(), next);
                next
            }
        });
        let before = core::mem::replace(&mut self.of_node[node], number);
        if before == number {
            return;
        }
        if let Some(nodes) = self.nodes.get_mut(before as usize) {
            nodes.retain(|known| *known != node);
        }
        if number > 0 {
            let number = number as usize;
            if self.nodes.len() <= number {
                self.nodes.resize_with(number + 1, SmallVec::new);
            }
            self.nodes[number].push(node);
        }
    }

    /// The nodes of a domain.
    fn nodes_of(&self, value: usize) -> &[NodeId] {
        self.nodes.get(value).map_or(&[], SmallVec::as_slice)
    }
}

impl ClassRelations {
    /// The tallies that decide where pods of the class may go.
    fn deciding(&self) -> impl Iterator<Item = TallyId> {
        let anti_affinity = self.anti_affinity.iter().map(|(tally, _)| tally);
        let own = self.affinity.iter().chain(anti_affinity);
        own.chain(&self.spread.tallies)
            .chain(&self.kept_out)
            .copied()
    }

    /// All tallies that the class needs.
    fn tallies(&self) -> impl Iterator<Item = TallyId> {
        let preferred = self.preferred.iter().map(|(tally, _)| tally);
        let others = preferred.chain(&self.preferred_spread.tallies);
        let others = others.chain(&self.carries).copied();
        self.deciding().chain(others)
    }

    /// The terms of others' anti-affinity that select pods of the class; sorted.
    pub(super) fn terms_of_others(&self) -> &[TallyId] {
        &self.kept_out
    }

    /// Whether where a pod of the class may go depends on other pods.
    fn decides(&self) -> bool {
        self.deciding().next().is_some()
    }
}

impl Relations {
    pub(super) fn new() -> Self {
        Self {
            keys: Slab::new(),
            key_ids: BTreeMap::new(),
            tallies: Slab::new(),
            tally_ids: Lookup::default(),
            of_set: ById::default(),
            new_terms: Vec::new(),
            namespaces_changed: false,
            version: 0,
        }
    }

    /// Whether no pod has rules about other pods.
    pub(super) fn is_empty(&self) -> bool {
        self.tallies.len() == 0
    }

    /// A number that changes with everything that decides where pods of a class may go, and is as
    /// before once a change was undone.
    pub(super) fn stamp(&self, class: &ClassRelations) -> u64 {
        let digests = class.deciding().map(|tally| self.tallies[tally].digest);
        let fold = |sum: u64, digest: u64| sum.rotate_left(7) ^ digest;
        digests.fold(self.version.wrapping_mul(0x9e37_79b9_7f4a_7c15), fold)
    }

    /// The slot of a tally in which pods on a node count; `None`: they do not count there.
    fn slot(&self, tally: TallyId, node: NodeId) -> Option<usize> {
        match &*self.tallies[tally].of {
            Counted::Spread(..) => Some(node.index()),
            Counted::Selected(_, key) | Counted::Carrying(_, key) | Counted::Drawing(_, key, _) => {
                let value = self.keys[*key].of_node[node];
                (value > 0).then_some(value as usize)
            }
        }
    }

    /// Counts a pod on a node in a tally, or counts it no more.
    fn change(&mut self, tally: TallyId, node: NodeId, takes: bool) {
        if let Some(slot) = self.slot(tally, node) {
            self.tallies[tally].change(slot, takes);
        }
    }
}

/// Whether a selection names a label in which pods of one label set may differ.
fn differs_in_set(selection: &PodSelection) -> bool {
    let labels = selection.labels.as_ref();
    labels.is_some_and(|labels| {
        let equal = labels.match_labels.iter().map(|(key, _)| key);
        let expressions = labels.match_expressions.iter().map(|one| &one.key);
        equal
            .chain(expressions)
            .any(|key| PodLabels::may_be_implied(key))
    })
}

/// The pods of a namespace that a topology spread constraint counts.
fn spread_selection(namespace: &str, rule: &SpreadRule) -> PodSelection {
    let labels = rule.labels.as_ref();
    PodSelection {
        namespaces: Vec::from([namespace.into()]),
        namespace_selector: None,
        // An empty selector selects no pod here, other than anywhere else.
        labels: labels
            .filter(|labels| **labels != LabelSelector::default())
            .cloned(),
    }
}
