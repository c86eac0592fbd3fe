//! Tallies follow pods, nodes and classes.

use super::follow::SlotLog;
use super::{ClassRelations, Counted, DomainKey, OfSet, Tally, differs_in_set};
use crate::facts::{
    PodSelection, PodShape, PodTerm, Preferences, Relations as Rules, SpreadRule, label,
};
use crate::ids::{ById, ClassId, DomainKeyId, LabelSetId, NodeId, PodId, TallyId};
use crate::state::ClusterState;
use alloc::{boxed::Box, collections::BTreeMap, sync::Arc, vec, vec::Vec};
use smallvec::SmallVec;

/// What a node gets for each pod whose required affinity selects the pod to be placed
/// (`hardPodAffinityWeight`).
const REQUIRED_DRAWS: i32 = 1;

impl ClusterState {
    /// What a new class has to do with other pods; `None`: nothing. `kept_out`: the terms of others
    /// that select pods of the class.
    pub(crate) fn begin_relations(
        &mut self,
        shape: &PodShape,
        kept_out: &[TallyId],
    ) -> Option<Box<ClassRelations>> {
        let (rules, preferences) = (shape.relations.as_deref(), shape.preferences.as_deref());
        if rules.is_none() && preferences.is_none() && kept_out.is_empty() {
            return None;
        }
        let mut class = ClassRelations {
            kept_out: kept_out.to_vec(),
            ..ClassRelations::default()
        };
        for tally in kept_out {
            self.relations.tallies[*tally].classes += 1;
        }
        if let Some(rules) = rules {
            self.begin_rules(&mut class, rules);
        }
        if let Some(preferences) = preferences {
            self.begin_preferences(&mut class, preferences);
        }
        self.begin_drawing(&mut class, shape);
        Some(Box::new(class))
    }

    fn begin_rules(&mut self, class: &mut ClassRelations, rules: &Rules) {
        let selections: Vec<PodSelection> = rules
            .affinity
            .iter()
            .map(|term| term.selection.clone())
            .collect();
        class.likes_itself = rules
            .affinity
            .iter()
            .all(|term| self.selects_itself(term, rules));
        for term in &rules.affinity {
            let key = self.domain_key(&term.topology_key);
            class
                .affinity
                .push(self.tally(Counted::Selected(selections.clone(), key)));
        }
        for term in &rules.anti_affinity {
            let key = self.domain_key(&term.topology_key);
            let selected = Counted::Selected(vec![term.selection.clone()], key);
            let selects_itself = self.selects_itself(term, rules);
            let selected = self.tally(selected);
            class.anti_affinity.push((selected, selects_itself));
            let carrying = self.tally(Counted::Carrying(term.selection.clone(), key));
            match class.carries.contains(&carrying) {
                // A term that is written twice counts once.
                true => self.relations.tallies[carrying].classes -= 1,
                false => class.carries.push(carrying),
            }
        }
        class.spread.tallies = self.spread_tallies(&rules.namespace, &rules.spread);
    }

    fn begin_preferences(&mut self, class: &mut ClassRelations, preferences: &Preferences) {
        for term in &preferences.pods {
            let key = self.domain_key(&term.topology_key);
            let selected = self.tally(Counted::Selected(vec![term.selection.clone()], key));
            // tests plant bugs here: weight-of-a-preferred-term
            class.preferred.push((selected, term.weight));
        }
        let spread = self.spread_tallies(&preferences.namespace, &preferences.spread);
        class.preferred_spread.tallies = spread;
    }

    /// Begins the tallies of the terms by which pods of a class draw others, or send them away.
    fn begin_drawing(&mut self, class: &mut ClassRelations, shape: &PodShape) {
        let preferred = shape.preferences.iter().flat_map(|it| &it.pods);
        // tests plant bugs here: weight-by-which-pods-draw
        let preferred = preferred.map(|term| (&*term.topology_key, &term.selection, term.weight));
        let required = shape.relations.iter().flat_map(|it| &it.affinity);
        let required = required.map(|term| (&*term.topology_key, &term.selection, REQUIRED_DRAWS));
        let mut terms: Vec<(&str, &PodSelection, i32)> = Vec::new();
        for (key, selection, weight) in preferred.chain(required) {
            match terms
                .iter_mut()
                .find(|(of, pods, _)| (*of, *pods) == (key, selection))
            {
                Some((_, _, sum)) => *sum += weight,
                None => terms.push((key, selection, weight)),
            }
        }
        for (key, selection, weight) in terms {
            let key = self.domain_key(key);
            let drawing = self.tally(Counted::Drawing(selection.clone(), key, weight));
            class.carries.push(drawing);
        }
    }

    fn spread_tallies(&mut self, namespace: &str, rules: &[SpreadRule]) -> Vec<TallyId> {
        let mut tallies = Vec::with_capacity(rules.len());
        for rule in rules {
            let key = self.domain_key(&rule.topology_key);
            let selection = super::spread_selection(namespace, rule);
            tallies.push(self.tally(Counted::Spread(selection, key)));
        }
        tallies
    }

    /// Forgets what a class that is gone had to do with other pods.
    pub(crate) fn end_relations(&mut self, class: &ClassRelations) {
        for id in class.tallies() {
            let tally = &mut self.relations.tallies[id];
            tally.classes -= 1;
            if tally.classes > 0 {
                continue;
            }
            let of = tally.of.clone();
            self.relations.tallies.remove(id);
            self.relations.tally_ids.remove(&of);
            self.relations.new_terms.retain(|term| *term != id);
            for set in self.relations.of_set.made_mut() {
                set.counted.retain(|tally| *tally != id);
                set.kept_out.retain(|tally| *tally != id);
                set.drawn.retain(|tally| *tally != id);
            }
            let key = of.key();
            self.relations.keys[key].tallies -= 1;
            if self.relations.keys[key].tallies == 0
                && let Some(gone) = self.relations.keys.remove(key)
            {
                self.relations.key_ids.remove(&gone.name);
            }
        }
    }

    fn domain_key(&mut self, name: &str) -> DomainKeyId {
        if let Some(key) = self.relations.key_ids.get(name) {
            return *key;
        }
        let mut key = DomainKey {
            name: name.into(),
            tallies: 0,
            values: BTreeMap::new(),
            of_node: ById::default(),
            nodes: Vec::new(),
        };
        for (node, record) in self.nodes.iter() {
            let labels = record.known.as_ref().map(|known| &known.facts.labels);
            key.set(node, labels);
        }
        let id = self.relations.keys.insert(key);
        self.relations.key_ids.insert(name.into(), id);
        id
    }

    /// The tally that counts something, for one class more. A new one counts all pods on nodes.
    fn tally(&mut self, of: Counted) -> TallyId {
        let relations = &mut self.relations;
        if let Some(id) = relations.tally_ids.get(&of) {
            relations.tallies[*id].classes += 1;
            return *id;
        }
        let differs_in_set = of.selections().iter().any(differs_in_set);
        relations.keys[of.key()].tallies += 1;
        let (is_carried, keeps_out) = (of.is_carried(), matches!(of, Counted::Carrying(..)));
        let of = Arc::new(of);
        let id = relations.tallies.insert(Tally {
            of: of.clone(),
            classes: 1,
            counts: Vec::new(),
            total: 0,
            digest: 0,
            log: SlotLog::default(),
            differs_in_set,
        });
        relations.tally_ids.insert(of, id);
        // Mostly the first pod of an application brings the rule, and there is nothing to count.
        if self.match_sets(id) {
            // Pods with the term enter its class after this, and are counted then.
            if !is_carried {
                self.count_all(id);
            }
            if keeps_out {
                self.relations.new_terms.push(id);
            }
        }
        id
    }

    /// Finds the label sets whose pods a tally may select. Returns whether there is any.
    fn match_sets(&mut self, id: TallyId) -> bool {
        let tally = &self.relations.tallies[id];
        let mut selected: Vec<LabelSetId> = Vec::new();
        for (namespace, set) in self.budgets.label_sets() {
            let spans = |selection: &PodSelection| self.spans(selection, namespace);
            if tally.may_select(namespace, spans, self.budgets.stated(set)) {
                selected.push(set);
            }
        }
        let is_any = !selected.is_empty();
        let of = tally.of.clone();
        for set in selected {
            self.relations.of_set[set].add(&of, id);
        }
        is_any
    }

    /// Finds the tallies that may select the pods of a new label set.
    pub(crate) fn match_tallies(&mut self, set: LabelSetId, namespace: &str) {
        let mut of_set = OfSet::default();
        for (id, tally) in self.relations.tallies.iter() {
            let spans = |selection: &PodSelection| self.spans(selection, namespace);
            if tally.may_select(namespace, spans, self.budgets.stated(set)) {
                of_set.add(&tally.of, id);
            }
        }
        self.relations.of_set[set] = of_set;
    }

    /// Counts all pods on nodes in a tally that has none yet.
    fn count_all(&mut self, id: TallyId) {
        let mut found: Vec<NodeId> = Vec::new();
        for (node, record) in self.nodes.iter() {
            let counted = record.pods.iter().filter(|pod| self.counts_in(id, **pod));
            found.extend(counted.map(|_| node));
        }
        for node in found {
            self.relations.change(id, node, true);
        }
    }

    /// Whether a tally counts a pod while it is on a node.
    pub(super) fn counts_in(&self, id: TallyId, pod: PodId) -> bool {
        let record = &self.pods[pod];
        let tally = &self.relations.tallies[id];
        match &*tally.of {
            Counted::Carrying(..) | Counted::Drawing(..) => {
                let relations = self.classes[record.class].relations.as_deref();
                relations.is_some_and(|relations| relations.carries.contains(&id))
            }
            Counted::Selected(..) | Counted::Spread(..) => {
                let of_set = &self.relations.of_set[record.label_set];
                of_set.counted.contains(&id) && self.counts(id, pod)
            }
        }
    }

    /// Whether a tally that may count pods of a pod's label set counts the pod while it is on a
    /// node.
    fn counts(&self, id: TallyId, pod: PodId) -> bool {
        let is_spread = matches!(*self.relations.tallies[id].of, Counted::Spread(..));
        !(is_spread && self.pods[pod].deleting) && self.selects(id, pod)
    }

    /// Whether the terms of a tally, which may select pods of a pod's label set, select the pod.
    fn selects(&self, id: TallyId, pod: PodId) -> bool {
        if !self.relations.tallies[id].differs_in_set {
            return true;
        }
        let record = &self.pods[pod];
        let (labels, owner) = (self.labels_of(record), record.owner());
        let value_of = |key: &str| labels.value(key, &record.name, owner);
        let mut selections = self.relations.tallies[id].of.selections().iter();
        selections.all(|selection| {
            let by_labels = selection.labels.as_ref();
            by_labels.is_some_and(|labels| labels.selects(value_of))
        })
    }

    /// Whether a term selects the pods that have it, among their other rules.
    fn selects_itself(&self, term: &PodTerm, rules: &Rules) -> bool {
        term.selects_own_labels && self.spans(&term.selection, &rules.namespace)
    }

    /// Whether a selection may select pods of a namespace.
    fn spans(&self, selection: &PodSelection, namespace: &str) -> bool {
        let labels = self.namespaces.get(namespace);
        selection.spans(namespace, |key| label(labels?, key))
    }

    /// The terms of others that draw a pod or send it away.
    pub(super) fn drawn(&self, pod: PodId) -> impl Iterator<Item = TallyId> {
        let drawn = self.relations.of_set[self.pods[pod].label_set].drawn.iter();
        drawn.copied().filter(move |id| self.selects(*id, pod))
    }

    /// The terms of others' anti-affinity that select a pod, sorted.
    pub(crate) fn kept_out(&self, pod: PodId) -> SmallVec<[TallyId; 2]> {
        let of_set = &self.relations.of_set[self.pods[pod].label_set];
        let mut terms: SmallVec<[TallyId; 2]> = of_set.kept_out.clone();
        terms.retain(|id| self.selects(*id, pod));
        terms.sort_unstable();
        terms
    }

    /// Counts a pod on a node in all tallies that count it, or counts it no more.
    pub(crate) fn relate(&mut self, pod: PodId, node: NodeId, takes: bool) {
        if self.relations.is_empty() {
            return;
        }
        let record = &self.pods[pod];
        let of_set = &self.relations.of_set[record.label_set];
        let mut tallies: SmallVec<[TallyId; 8]> = SmallVec::new();
        let counted = of_set.counted.iter().copied();
        tallies.extend(counted.filter(|id| self.counts(*id, pod)));
        if let Some(relations) = self.classes[record.class].relations.as_deref() {
            tallies.extend(relations.carries.iter().copied());
        }
        // tests plant bugs here: pods-of-a-term
        for tally in tallies {
            self.relations.change(tally, node, takes);
        }
    }

    /// Brings pods into other classes that terms of anti-affinity select which are new.
    pub(crate) fn follow_new_terms(&mut self) {
        for id in core::mem::take(&mut self.relations.new_terms) {
            if self.relations.tallies.get(id).is_none() {
                continue;
            }
            let selects = |pod: &PodId| {
                let set = self.pods[*pod].label_set;
                self.pods[*pod].own.is_some() && self.relations.of_set[set].kept_out.contains(&id)
            };
            let pods: Vec<PodId> = self.pods.ids().into_iter().filter(selects).collect();
            for pod in pods {
                self.reclass(pod);
            }
        }
    }

    /// Takes in that labels or taints of a node have changed, or that it is gone. The pods on it
    /// count in the domains that its labels name.
    pub(crate) fn relabel(&mut self, node: NodeId) {
        self.relations.version += 1;
        self.follow_soft_taints(node);
        if self.relations.is_empty() {
            return;
        }
        let pods: Vec<PodId> = self.nodes[node].pods.to_vec();
        for pod in &pods {
            self.relate(*pod, node, false);
        }
        let known = self.nodes[node].known.as_ref();
        let labels = known.map(|known| &known.facts.labels);
        for key in self.relations.keys.ids() {
            self.relations.keys[key].set(node, labels);
        }
        for pod in &pods {
            self.relate(*pod, node, true);
        }
    }

    /// Notes that a namespace has come or gone, or has other labels.
    pub(crate) fn note_namespace(&mut self) {
        self.relations.namespaces_changed = true;
    }

    /// Works everything out anew if labels of namespaces have changed by which rules select pods.
    pub(crate) fn follow_namespaces(&mut self) {
        let by_labels = |selection: &PodSelection| selection.namespace_selector.is_some();
        let reads = |tally: &Tally| tally.of.selections().iter().any(by_labels);
        if !core::mem::take(&mut self.relations.namespaces_changed)
            || !self.relations.tallies.iter().any(|(_, tally)| reads(tally))
        {
            return;
        }
        let sets: Vec<(Box<str>, LabelSetId)> = self
            .budgets
            .label_sets()
            .map(|(namespace, set)| (namespace.into(), set))
            .collect();
        for (namespace, set) in sets {
            self.match_tallies(set, &namespace);
        }
        for id in self.relations.tallies.ids() {
            let tally = &mut self.relations.tallies[id];
            tally.counts.clear();
            (tally.total, tally.digest) = (0, 0);
            self.count_all(id);
        }
        for class in self.classes.ids() {
            self.reread_itself(class);
        }
        for pod in self.pods.ids() {
            if self.pods[pod].own.is_some() {
                self.reclass(pod);
            }
        }
        self.relations.version += 1;
    }

    /// Works out anew whether the terms of a class select the class itself.
    fn reread_itself(&mut self, class: ClassId) {
        let shape = self.classes[class].shape.clone();
        let Some(rules) = shape.relations.as_deref() else {
            return;
        };
        let Some(mut relations) = self.classes[class].relations.take() else {
            return;
        };
        let selects_itself = |term: &PodTerm| self.selects_itself(term, rules);
        relations.likes_itself = rules.affinity.iter().all(selects_itself);
        for (entry, term) in relations.anti_affinity.iter_mut().zip(&rules.anti_affinity) {
            entry.1 = selects_itself(term);
        }
        self.classes[class].relations = Some(relations);
    }

    /// What tallies count wrongly, worked out from all pods; for audits.
    pub(crate) fn wrong_tallies(&self) -> usize {
        let wrong = |(id, tally): &(TallyId, &Tally)| {
            let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
            for (node, record) in self.nodes.iter() {
                let Some(slot) = self.relations.slot(*id, node) else {
                    continue;
                };
                let pods = record.pods.iter().filter(|pod| self.counts_in(*id, **pod));
                let pods = u32::try_from(pods.count()).unwrap_or(u32::MAX);
                if pods > 0 {
                    *counts.entry(slot).or_insert(0) += pods;
                }
            }
            let kept = tally.counts.iter().copied().enumerate();
            let kept: BTreeMap<usize, u32> = kept.filter(|(_, count)| *count > 0).collect();
            kept != counts
        };
        self.relations.tallies.iter().filter(wrong).count()
    }
}
