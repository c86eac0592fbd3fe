//! Whether the pods on nodes let one more pod of a class in.

use super::{ClassRelations, DomainKey, Relations, SpreadTallies};
use crate::facts::{PodShape, SpreadRule};
use crate::filter::{self, Filter};
use crate::ids::{ById, ClassId, GangId, NodeId, PodId, TallyId};
use crate::state::ClusterState;
use crate::state::pod::Stage;
use alloc::{borrow::Cow, vec, vec::Vec};

/// What other pods say of a class, as the state is now in the transaction.
///
/// The trap: it holds for the next pod of the class. Any pod that gets a place may change it.
#[derive(Debug)]
pub(crate) struct View<'a> {
    relations: &'a Relations,
    class: &'a ClassRelations,
    /// A pod of the class may be the first of its kind anywhere.
    may_be_first: bool,
    spread: Vec<SpreadView<'a>>,
}

/// How the pods of a rule of spread are spread now.
#[derive(Debug)]
struct SpreadView<'a> {
    rule: &'a SpreadRule,
    key: &'a DomainKey,
    /// One more than the pods in each domain, by its number; 0: no node of the domain counts.
    found: Cow<'a, [u32]>,
    /// How many pods there are in the domain that has fewest.
    fewest: u32,
}

impl View<'_> {
    /// Whether one more pod of the class may go to a node.
    ///
    /// # Errors
    /// The first rule that refuses, in the order in which kube-scheduler asks its plugins.
    pub(crate) fn verdict(&self, node: NodeId) -> Result<(), Filter> {
        for spread in &self.spread {
            let value = spread.key.of_node[node];
            if value == 0 {
                return Err(Filter::NoSpreadLabel(spread.key.name.clone()));
            }
            if spread.left(value) == 0 {
                return Err(Filter::Spread);
            }
        }
        if !self.likes(node) {
            return Err(Filter::PodAffinity);
        }
        let mut avoided = self.class.anti_affinity.iter().map(|(tally, _)| *tally);
        if avoided.any(|tally| self.has_any(tally, node)) {
            return Err(Filter::PodAntiAffinity);
        }
        // tests plant bugs here: anti-affinity-of-others
        if self
            .class
            .kept_out
            .iter()
            .any(|tally| self.has_any(*tally, node))
        {
            return Err(Filter::OthersAntiAffinity);
        }
        Ok(())
    }

    /// How many more pods of the class other pods let in to a node, one after the other.
    pub(crate) fn most(&self, node: NodeId) -> u32 {
        if self.verdict(node).is_err() {
            return 0;
        }
        let keeps_apart = |(tally, selects_itself): &(TallyId, bool)| {
            *selects_itself && self.value(*tally, node) > 0
        };
        if self.class.anti_affinity.iter().any(keeps_apart) {
            return 1;
        }
        let rules = self.spread.iter().filter(|spread| spread.counts_itself());
        let left = rules.map(|spread| spread.left(spread.key.of_node[node]));
        left.min().unwrap_or(u32::MAX)
    }

    /// How many more pods of the class the table may count on a node: one, where a pod of the class
    /// may close the node to the next one.
    pub(crate) fn room(&self, node: NodeId) -> u32 {
        // The verdict would copy the name of a missing label, for each node.
        let lacks_label = self
            .spread
            .iter()
            .any(|spread| spread.key.of_node[node] == 0);
        if lacks_label || self.verdict(node).is_err() {
            return 0;
        }
        let apart =
            |(tally, of_itself): &(TallyId, bool)| *of_itself && self.value(*tally, node) > 0;
        let spreads = self.spread.iter().any(SpreadView::counts_itself);
        match spreads || self.class.anti_affinity.iter().any(apart) {
            true => 1,
            false => u32::MAX,
        }
    }

    /// The domain of a node that pods of the class must share with the pods that their first term
    /// of affinity selects; 0: there is no such term, or the node is in no domain.
    pub(crate) fn shared_domain(&self, node: NodeId) -> u32 {
        let first = self.class.affinity.first();
        first.map_or(0, |tally| self.value(*tally, node))
    }

    /// Whether pods of the class that get a place never open nodes to others of it.
    pub(crate) fn only_closes(&self) -> bool {
        self.class.affinity.is_empty() && self.spread.is_empty()
    }

    /// The domain of a node in which there may be one pod of the class, if there is any such.
    pub(crate) fn apart(&self, node: NodeId) -> Option<u32> {
        let of_itself = self
            .class
            .anti_affinity
            .iter()
            .filter(|(_, of_itself)| *of_itself);
        let mut domains = of_itself.map(|(tally, _)| self.value(*tally, node));
        domains.next().filter(|domain| *domain > 0)
    }

    /// The number of the domain of a node that a tally counts by; 0: the node is in none.
    fn value(&self, tally: TallyId, node: NodeId) -> u32 {
        let key = self.relations.tallies[tally].of.key();
        self.relations.keys[key].of_node[node]
    }

    fn has_any(&self, tally: TallyId, node: NodeId) -> bool {
        let value = self.value(tally, node);
        value > 0 && self.relations.tallies[tally].count(value) > 0
    }

    /// Whether the pods that the affinity selects are near enough.
    fn likes(&self, node: NodeId) -> bool {
        let affinity = &self.class.affinity;
        affinity.iter().all(|tally| self.value(*tally, node) > 0)
            && (self.may_be_first || affinity.iter().all(|tally| self.has_any(*tally, node)))
    }
}

impl SpreadView<'_> {
    fn counts_itself(&self) -> bool {
        self.rule.selects_own_labels
    }

    /// How many more pods may come to a domain, as long as the fewest stay; 0: none.
    fn left(&self, value: u32) -> u32 {
        let found = self.found.get(value as usize).copied().unwrap_or(0);
        left(self.rule, found.saturating_sub(1), self.fewest)
    }
}

/// How many more pods a rule lets in to a domain that has `there`, as long as the fewest stay.
pub(super) fn left(rule: &SpreadRule, there: u32, fewest: u32) -> u32 {
    let most = fewest.saturating_add(rule.max_skew);
    match rule.selects_own_labels {
        true => most.saturating_sub(there),
        false => u32::from(there <= most),
    }
}

/// How many pods there are in the domain of a rule that has fewest, as the rule counts.
pub(super) fn fewest(rule: &SpreadRule, found: &[u32]) -> u32 {
    let domains = found.iter().filter(|found| **found > 0);
    let (domains, fewest) = domains.fold((0u32, u32::MAX), |(domains, fewest), found| {
        (domains + 1, fewest.min(found - 1))
    });
    // tests plant bugs here: min-domains
    match domains < rule.min_domains {
        true => 0,
        false => fewest,
    }
}

impl Relations {
    /// Whether a pod of a class may be the first of its kind anywhere.
    pub(super) fn may_be_first(&self, class: &ClassRelations) -> bool {
        // Each term that selects a pod counts it once; without a label it counts nowhere.
        let none = |tally: &TallyId| self.tallies[*tally].total == 0;
        // tests plant bugs here: first-of-its-kind
        class.likes_itself && class.affinity.iter().all(none)
    }
}

impl ClusterState {
    /// A number that changes with everything about other pods that decides where pods of a class
    /// may go; 0: nothing does.
    pub(crate) fn relation_stamp(&self, class: ClassId) -> u64 {
        let relations = self
            .classes
            .get(class)
            .and_then(|class| class.relations.as_deref())
            .filter(|relations| relations.decides());
        relations.map_or(0, |relations| self.relations.stamp(relations))
    }

    /// A number that changes when labels or taints of any node change.
    pub(crate) fn labels_version(&self) -> u64 {
        self.relations.version
    }

    /// Whether where pods of a class may go depends on other pods.
    pub(crate) fn is_related(&self, class: ClassId) -> bool {
        let relations = self.classes[class].relations.as_deref();
        relations.is_some_and(ClassRelations::decides)
    }

    /// Whether a place of the pod may change where pods of a class may go.
    pub(crate) fn decides_for(&self, pod: PodId, class: ClassId) -> bool {
        let relations = self.classes[class].relations.as_deref();
        let mut deciding = relations.into_iter().flat_map(ClassRelations::deciding);
        deciding.any(|tally| self.counts_in(tally, pod))
    }

    /// Whether where any waiting member of a gang may go depends on other pods.
    pub(crate) fn has_related_members(&self, gang: GangId) -> bool {
        let members = self.gangs[gang].members.iter().map(|pod| &self.pods[*pod]);
        let mut waiting = members.filter(|pod| pod.stage == Stage::Waiting);
        !self.relations.is_empty() && waiting.any(|pod| self.is_related(pod.class))
    }

    /// What other pods say of a class; `None`: it does not depend on them.
    pub(crate) fn view(&self, id: ClassId) -> Option<View<'_>> {
        self.view_by(id, Self::followed_domains)
    }

    /// What other pods say of a class, with nothing that was kept; for audits.
    pub(crate) fn view_anew(&self, id: ClassId) -> Option<View<'_>> {
        self.view_by(id, |_, _, _| None)
    }

    fn view_by<'a>(
        &'a self,
        id: ClassId,
        kept: impl Fn(&'a Self, &'a SpreadTallies, usize) -> Option<&'a [u32]>,
    ) -> Option<View<'a>> {
        let relations = &self.relations;
        let class = self.classes[id].relations.as_deref();
        let class = class.filter(|class| class.decides())?;
        let rules = self.classes[id].shape.relations.as_deref();
        let spread = rules.map_or(&[] as &[SpreadRule], |rules| &rules.spread);
        let spread = spread.iter().enumerate().map(|(at, rule)| {
            let found = match kept(self, &class.spread, at) {
                Some(found) => Cow::Borrowed(found),
                None => Cow::Owned(self.counts_by_domain(&class.spread, at)),
            };
            let tally = &relations.tallies[class.spread.tallies[at]];
            SpreadView {
                rule,
                key: &relations.keys[tally.of.key()],
                fewest: fewest(rule, &found),
                found,
            }
        });
        Some(View {
            relations,
            class,
            may_be_first: relations.may_be_first(class),
            spread: spread.collect(),
        })
    }

    /// By the number of each domain of a topology spread constraint, one more than the pods that it
    /// counts there; 0: no node of the domain counts.
    pub(super) fn counts_by_domain(&self, spread: &SpreadTallies, at: usize) -> Vec<u32> {
        let tally = &self.relations.tallies[spread.tallies[at]];
        let key = &self.relations.keys[tally.of.key()];
        let mut found: Vec<u32> = vec![0; key.values.len() + 1];
        for (node, _) in self.nodes.iter() {
            if spread.included[node] & (1 << at) == 0 {
                continue;
            }
            let domain = &mut found[key.of_node[node] as usize];
            *domain = (*domain).max(1) + tally.at(node);
        }
        found
    }

    /// Works out which nodes count for the topology spread constraints of a class, if nodes have
    /// changed.
    pub(crate) fn include_nodes(&mut self, id: ClassId) {
        let shape = self.classes[id].shape.clone();
        let Some(mut relations) = self.classes[id].relations.take() else {
            return;
        };
        if let Some(rules) = &shape.relations {
            self.include(&shape, (&rules.spread, false), &mut relations.spread);
        }
        if let Some(preferences) = &shape.preferences {
            let rules = (&*preferences.spread, preferences.spread_is_default);
            self.include(&shape, rules, &mut relations.preferred_spread);
        }
        self.classes[id].relations = Some(relations);
    }

    /// `are_default`: the rules are the cluster's, for which nodes count that lack a label.
    fn include(
        &self,
        shape: &PodShape,
        (rules, are_default): (&[SpreadRule], bool),
        spread: &mut SpreadTallies,
    ) {
        let version = Some(self.relations.version);
        if rules.is_empty() || spread.included_as_of == version {
            return;
        }
        spread.included_as_of = version;
        // The number of a node that is gone may stand for another one by now.
        spread.included = ById::default();
        let selects_all = shape.node_selector.is_empty() && shape.node_affinity.is_none();
        let tallies = spread.tallies.iter();
        let keys: Vec<_> = tallies
            .map(|tally| self.relations.tallies[*tally].of.key())
            .collect();
        for (node, record) in self.nodes.iter() {
            let mut bits = 0;
            let has_labels = |key| self.relations.keys[key].of_node[node] > 0;
            if let Some(known) = record
                .known
                .as_ref()
                .filter(|_| are_default || keys.iter().copied().all(has_labels))
            {
                let selects = selects_all || filter::selects(shape, &known.facts);
                for (at, rule) in rules.iter().enumerate() {
                    let counts = (selects || !rule.honors_affinity)
                        && (!rule.honors_taints || filter::tolerates(shape, &known.facts));
                    bits |= u32::from(counts) << at;
                }
            }
            spread.included[node] = bits;
        }
    }
}
