//! Disruption budgets, and which of them select a pod.
//!
//! Pods in one namespace with the same stated labels share a label set, and a selector is
//! held against each set once. A selector that also asks for a label that pods of one set may
//! differ in (see [`PodLabels`]) is held against the pod when the pod is asked about.
//!
//! | what changes | what is looked at |
//! |---|---|
//! | the labels of a pod, or a pod comes with new ones | the budgets of its namespace |
//! | the selector of a budget | the label sets of its namespace |
//! | what a budget allows | nothing |

use super::ClusterState;
use super::pod::Pod;
use crate::facts::{DisruptionBudgetFacts, LabelSelector, Labels, PodLabels, Uid, label};
use crate::ids::{BudgetId, LabelSetId, PodId, Slab};
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec::Vec};
use smallvec::SmallVec;

/// All budgets, and the label sets of all pods.
#[derive(Debug)]
pub(crate) struct Budgets {
    budgets: Slab<BudgetId, Budget>,
    sets: Slab<LabelSetId, LabelSet>,
    /// Namespaces that have a budget or a pod.
    namespaces: BTreeMap<Box<str>, Namespace>,
}

#[derive(Debug)]
struct Budget {
    facts: DisruptionBudgetFacts,
    /// The requirements that all pods of a label set meet alike; `None`: no pod is selected.
    of_set: Option<LabelSelector>,
    /// The requirements that the pods of a label set may meet or not.
    of_pod: LabelSelector,
}

/// The stated labels that some pods in one namespace have in common.
#[derive(Debug)]
struct LabelSet {
    stated: Option<Arc<Labels>>,
    pods: u32,
    /// The budgets that select the pods of this set, as far as the set decides it; by name.
    selected_by: SmallVec<[BudgetId; 2]>,
}

#[derive(Debug, Default)]
struct Namespace {
    budgets: BTreeMap<Box<str>, BudgetId>,
    sets: BTreeMap<Option<Arc<Labels>>, LabelSetId>,
}

impl Budget {
    fn new(facts: DisruptionBudgetFacts) -> Self {
        let selector = facts.selector.clone();
        let is_of_pod = |key: &str| PodLabels::may_be_implied(key);
        let (mut of_set, mut of_pod) = (LabelSelector::default(), LabelSelector::default());
        let selects_any = selector.is_some();
        let selector = selector.unwrap_or_default();
        (of_pod.match_labels, of_set.match_labels) = selector
            .match_labels
            .into_iter()
            .partition(|(key, _)| is_of_pod(key));
        (of_pod.match_expressions, of_set.match_expressions) = selector
            .match_expressions
            .into_iter()
            .partition(|requirement| is_of_pod(&requirement.key));
        Self {
            facts,
            of_set: selects_any.then_some(of_set),
            of_pod,
        }
    }

    fn may_select(&self, stated: Option<&Arc<Labels>>) -> bool {
        let value_of = |key: &str| label(stated?, key);
        let selector = self.of_set.as_ref();
        selector.is_some_and(|selector| selector.selects(value_of))
    }
}

impl Budgets {
    pub(super) fn new() -> Self {
        Self {
            budgets: Slab::new(),
            sets: Slab::new(),
            namespaces: BTreeMap::new(),
        }
    }

    /// The label set of a new pod, and whether no other pod has it; counts the pod.
    pub(super) fn enter(&mut self, namespace: &str, labels: &PodLabels) -> (LabelSetId, bool) {
        let stated = &labels.stated;
        let namespace = self.namespaces.entry(namespace.into()).or_default();
        let id = namespace.sets.get(stated).copied().unwrap_or_else(|| {
            let budgets = namespace.budgets.values().copied();
            let selecting = budgets.filter(|id| self.budgets[*id].may_select(stated.as_ref()));
            let id = self.sets.insert(LabelSet {
                stated: stated.clone(),
                pods: 0,
                selected_by: selecting.collect(),
            });
            namespace.sets.insert(stated.clone(), id);
            id
        });
        self.sets[id].pods += 1;
        (id, self.sets[id].pods == 1)
    }

    /// The stated labels of a label set.
    pub(super) fn stated(&self, set: LabelSetId) -> Option<&Arc<Labels>> {
        self.sets[set].stated.as_ref()
    }

    /// All label sets, each with its namespace.
    pub(super) fn label_sets(&self) -> impl Iterator<Item = (&str, LabelSetId)> {
        let namespaces = self.namespaces.iter();
        namespaces.flat_map(|(name, namespace)| {
            let sets = namespace.sets.values();
            sets.map(move |set| (&**name, *set))
        })
    }

    /// Counts one pod less of a label set of a namespace.
    pub(super) fn leave(&mut self, id: LabelSetId, namespace: &str) {
        let set = &mut self.sets[id];
        set.pods = set.pods.saturating_sub(1);
        if set.pods > 0 {
            return;
        }
        if let Some(set) = self.sets.remove(id)
            && let Some(known) = self.namespaces.get_mut(namespace)
        {
            known.sets.remove(&set.stated);
            self.drop_if_empty(namespace);
        }
    }

    pub(super) fn apply(&mut self, facts: DisruptionBudgetFacts) {
        let namespace = self.namespaces.entry(facts.namespace.clone()).or_default();
        let Some(&id) = namespace.budgets.get(&facts.name) else {
            let name = facts.name.clone();
            let id = self.budgets.insert(Budget::new(facts));
            namespace.budgets.insert(name, id);
            self.select(id);
            return;
        };
        if self.budgets[id].facts.selector == facts.selector {
            self.budgets[id].facts = facts;
        } else {
            self.budgets[id] = Budget::new(facts);
            self.select(id);
        }
    }

    pub(super) fn delete(&mut self, namespace: &str, name: &str) {
        let known = self.namespaces.get_mut(namespace);
        let Some(id) = known.and_then(|known| known.budgets.remove(name)) else {
            return;
        };
        if let Some(budget) = self.budgets.get_mut(id) {
            budget.of_set = None;
        }
        self.select(id);
        self.budgets.remove(id);
        self.drop_if_empty(namespace);
    }

    /// Namespace and name of every budget.
    pub(super) fn names(&self) -> impl Iterator<Item = (Box<str>, Box<str>)> {
        let budgets = self.budgets.iter();
        budgets.map(|(_, budget)| (budget.facts.namespace.clone(), budget.facts.name.clone()))
    }

    /// Holds a selector that is new, or has changed, against every label set of its namespace.
    fn select(&mut self, id: BudgetId) {
        let budget = &self.budgets[id];
        let Some(namespace) = self.namespaces.get(&budget.facts.namespace) else {
            return;
        };
        for set in namespace.sets.values() {
            let set = &mut self.sets[*set];
            set.selected_by.retain(|other| *other != id);
            if budget.may_select(set.stated.as_ref()) {
                let before = |other: &BudgetId| self.budgets[*other].facts.name < budget.facts.name;
                let at = set.selected_by.partition_point(before);
                set.selected_by.insert(at, id);
            }
        }
    }

    fn drop_if_empty(&mut self, name: &str) {
        let namespace = self.namespaces.get(name);
        if namespace.is_some_and(|it| it.budgets.is_empty() && it.sets.is_empty()) {
            self.namespaces.remove(name);
        }
    }
}

impl ClusterState {
    /// The disruption budgets that select a pod, by name; none for a foreign pod.
    ///
    /// The traps: the API server asks them only about a pod that runs and is not being deleted. It
    /// refuses a pod that more than one selects, whatever they allow.
    pub(crate) fn budgets_of(&self, pod: PodId) -> impl Iterator<Item = &DisruptionBudgetFacts> {
        let pod = &self.pods[pod];
        let own = pod.own.as_deref().into_iter();
        own.flat_map(move |own| {
            let (labels, owner) = (self.labels_of(pod), own.owner.as_ref());
            let ids = self.budgets.sets[pod.label_set].selected_by.iter();
            let budgets = ids.map(|id| &self.budgets.budgets[*id]);
            let selecting = budgets.filter(move |budget| {
                let value_of = |key: &str| labels.value(key, &pod.name, owner);
                budget.of_pod.selects(value_of)
            });
            selecting.map(|budget| &budget.facts)
        })
    }

    /// Whether there is any disruption budget.
    pub(crate) fn has_budgets(&self) -> bool {
        self.budgets.budgets.iter().next().is_some()
    }

    /// The disruption budget with an identity; `None`: it has gone.
    pub(crate) fn budget(&self, uid: Uid) -> Option<&DisruptionBudgetFacts> {
        let mut budgets = self.budgets.budgets.iter().map(|(_, budget)| &budget.facts);
        budgets.find(|facts| facts.uid == uid)
    }

    /// The labels of a pod.
    pub(super) fn labels_of(&self, pod: &Pod) -> PodLabels {
        PodLabels {
            implied: pod.own.as_deref().map_or(0, |own| own.implied_labels),
            stated: self.budgets.sets[pod.label_set].stated.clone(),
        }
    }

    /// The names of pods of which it is not known rightly which budgets select them, worked out
    /// from all selectors and all labels.
    pub(crate) fn wrongly_guarded(&self) -> Vec<&str> {
        let is_wrong = |(id, pod): &(PodId, &Pod)| {
            let owner = pod.owner();
            let labels = self.labels_of(pod);
            let all = self.budgets.budgets.iter().map(|(_, budget)| &budget.facts);
            let mut right: Vec<&DisruptionBudgetFacts> = all
                .filter(|facts| facts.namespace == pod.namespace && pod.own.is_some())
                .filter(|facts| {
                    let selector = facts.selector.as_ref();
                    selector.is_some_and(|it| it.selects(|key| labels.value(key, &pod.name, owner)))
                })
                .collect();
            right.sort_by_key(|facts| &facts.name);
            !self.budgets_of(*id).eq(right)
        };
        let wrong = self.pods.iter().filter(is_wrong);
        wrong.map(|(_, pod)| &*pod.name).collect()
    }
}

#[cfg(test)]
mod tests;
