//! Verdicts compared with a plain reading of all pods and nodes, as kube-scheduler reads them.

use crate::event::{Object, ObjectKey};
use crate::facts::{
    LabelSelector, Labels, MatchOperator, NamespaceFacts, NodeFacts, PodFacts, PodLabels, PodPhase,
    PodSelection, PodShape, PodTerm, Preferences, PreferredPods, Relations, SelectorRequirement,
    SpreadRule, Taint, TaintEffect, Uid, label,
};
use crate::filter::{self, Filter};
use crate::ids::Id;
use crate::state::ClusterState;
use crate::txn::Txn;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{boxed::Box, format, string::String, sync::Arc, vec, vec::Vec};
use proptest::prelude::*;

/// The objects of a cluster, as the events told of them.
#[derive(Debug, Default, Clone)]
struct Told {
    nodes: BTreeMap<u8, NodeFacts>,
    pods: BTreeMap<u8, PodFacts>,
    namespaces: BTreeMap<Box<str>, Labels>,
}

impl Told {
    fn selects(&self, selection: &PodSelection, pod: &PodFacts) -> bool {
        let labels = self.namespaces.get(&pod.namespace);
        let in_namespace = selection.spans(&pod.namespace, |key| label(labels?, key));
        let value = |key: &str| pod.labels.value(key, &pod.name, pod.owner.as_ref());
        in_namespace
            && selection
                .labels
                .as_ref()
                .is_some_and(|it| it.selects(value))
    }

    /// The pods on known nodes, each with its node.
    fn placed(&self) -> impl Iterator<Item = (&PodFacts, &NodeFacts)> {
        self.pods.values().filter_map(|pod| {
            let name = pod.node.as_ref()?;
            Some((pod, self.nodes.values().find(|node| node.name == *name)?))
        })
    }

    /// Whether some pod in the same domain as a node is selected.
    fn has(&self, node: &NodeFacts, key: &str, selects: impl Fn(&PodFacts) -> bool) -> bool {
        let Some(value) = label(&node.labels, key) else {
            return false;
        };
        let mut placed = self.placed();
        placed.any(|(pod, other)| label(&other.labels, key) == Some(value) && selects(pod))
    }

    fn verdict(&self, pod: &PodFacts, node: &NodeFacts) -> Result<(), Filter> {
        let none = Relations::default();
        let rules = pod.shape.relations.as_deref().unwrap_or(&none);
        self.spread(pod, rules, node)?;
        let by_all = |other: &PodFacts| {
            let mut terms = rules.affinity.iter();
            terms.all(|term| self.selects(&term.selection, other))
        };
        let keys = || rules.affinity.iter().map(|term| &*term.topology_key);
        let labelled = keys().all(|key| label(&node.labels, key).is_some());
        let anywhere = self
            .nodes
            .values()
            .any(|node| keys().any(|key| self.has(node, key, by_all)));
        let near = keys().all(|key| self.has(node, key, by_all));
        if !labelled || !(near || (!anywhere && by_all(pod))) {
            return Err(Filter::PodAffinity);
        }
        let too_near = |term: &PodTerm| {
            self.has(node, &term.topology_key, |other| {
                self.selects(&term.selection, other)
            })
        };
        if rules.anti_affinity.iter().any(too_near) {
            return Err(Filter::PodAntiAffinity);
        }
        let keeps_out = |(other, of): (&PodFacts, &NodeFacts)| {
            let terms = other.shape.relations.as_deref().into_iter();
            let mut terms = terms.flat_map(|rules| &rules.anti_affinity);
            terms.any(|term| {
                let domain = label(&of.labels, &term.topology_key);
                domain.is_some()
                    && domain == label(&node.labels, &term.topology_key)
                    && self.selects(&term.selection, pod)
            })
        };
        match self.placed().any(keeps_out) {
            true => Err(Filter::OthersAntiAffinity),
            false => Ok(()),
        }
    }

    /// What the preferred terms of a pod, and the terms of all pods on nodes, give a node.
    fn drawn_to(&self, pod: &PodFacts, node: &NodeFacts) -> i64 {
        let preferred = |of: &PodFacts| {
            let preferences = of.shape.preferences.clone();
            preferences.map(|it| it.pods).unwrap_or_default()
        };
        let required = |of: &PodFacts| {
            let relations = of.shape.relations.clone();
            let terms = relations.map(|it| it.affinity).unwrap_or_default();
            let drawing = terms.into_iter().map(|term| PreferredPods {
                weight: 1,
                topology_key: term.topology_key,
                selection: term.selection,
            });
            drawing.collect::<Vec<_>>()
        };
        let mut sum = 0;
        for (other, on) in self.placed() {
            let near = |term: &&PreferredPods| {
                let domain = label(&on.labels, &term.topology_key);
                domain.is_some() && domain == label(&node.labels, &term.topology_key)
            };
            for term in preferred(pod).iter().filter(near) {
                sum += i64::from(term.weight) * i64::from(self.selects(&term.selection, other));
            }
            let carried = [preferred(other), required(other)].concat();
            for term in carried.iter().filter(near) {
                sum += i64::from(term.weight) * i64::from(self.selects(&term.selection, pod));
            }
        }
        sum
    }

    fn spread(&self, pod: &PodFacts, rules: &Relations, node: &NodeFacts) -> Result<(), Filter> {
        let labelled = |node: &NodeFacts| {
            let mut rules = rules.spread.iter();
            rules.all(|rule| label(&node.labels, &rule.topology_key).is_some())
        };
        for rule in &rules.spread {
            let Some(domain) = label(&node.labels, &rule.topology_key) else {
                return Err(Filter::NoSpreadLabel(rule.topology_key.clone()));
            };
            let counts = |node: &&NodeFacts| {
                labelled(node)
                    && (!rule.honors_affinity || filter::selects(&pod.shape, node))
                    && (!rule.honors_taints || filter::tolerates(&pod.shape, node))
            };
            let mut found: BTreeMap<&str, u32> = BTreeMap::new();
            for other in self.nodes.values().filter(counts) {
                let here = self.placed().filter(|(_, on)| on.name == other.name);
                let selected = here.filter(|(it, _)| {
                    let value = |key: &str| it.labels.value(key, &it.name, None);
                    let is_empty = rule.labels.as_ref() == Some(&LabelSelector::default());
                    let labels = rule.labels.as_ref().filter(|_| !is_empty);
                    it.deletion_ms.is_none()
                        && it.namespace == pod.namespace
                        && labels.is_some_and(|labels| labels.selects(value))
                });
                let domain = label(&other.labels, &rule.topology_key).unwrap_or_default();
                let pods = u32::try_from(selected.count()).unwrap_or(u32::MAX);
                *found.entry(domain).or_insert(0) += pods;
            }
            let fewest = match found.len() < rule.min_domains as usize {
                true => 0,
                false => found.values().copied().min().unwrap_or(0),
            };
            let there = found.get(domain).copied().unwrap_or(0);
            if there + u32::from(rule.selects_own_labels) > fewest + rule.max_skew {
                return Err(Filter::Spread);
            }
        }
        Ok(())
    }
}

const KEYS: [&str; 3] = ["zone", "rack", "host"];
const APPS: [&str; 3] = ["a", "b", "c"];
const NAMESPACES: [&str; 2] = ["one", "two"];
/// A label that is kept as implied where it says the name of the pod.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";

fn one_of(values: &[&'static str]) -> impl Strategy<Value = &'static str> + use<> {
    proptest::sample::select(values.to_vec())
}

fn selector() -> impl Strategy<Value = LabelSelector> {
    let app = one_of(&APPS).prop_map(|app| LabelSelector {
        match_labels: vec![("app".into(), app.into())],
        match_expressions: Vec::new(),
    });
    let expression = |key: &'static str, values: Vec<&'static str>| LabelSelector {
        match_labels: Vec::new(),
        match_expressions: vec![SelectorRequirement {
            key: key.into(),
            operator: MatchOperator::NotIn,
            values: values.into_iter().map(Into::into).collect(),
        }],
    };
    prop_oneof![
        4 => app,
        1 => Just(LabelSelector::default()),
        1 => Just(expression("app", vec!["a"])),
        1 => Just(expression(POD_NAME, vec!["pod-1", "pod-2"])),
    ]
}

fn selection() -> impl Strategy<Value = PodSelection> {
    let named = proptest::sample::subsequence(NAMESPACES.to_vec(), 0..=2);
    let by_labels = proptest::option::weighted(
        0.2,
        Just(LabelSelector {
            match_labels: vec![("team".into(), "x".into())],
            match_expressions: Vec::new(),
        }),
    );
    let labels = proptest::option::weighted(0.9, selector());
    (named, by_labels, labels).prop_map(|(named, namespace_selector, labels)| PodSelection {
        namespaces: named.into_iter().map(Into::into).collect(),
        namespace_selector,
        labels,
    })
}

fn term() -> impl Strategy<Value = PodTerm> {
    (one_of(&KEYS), selection()).prop_map(|(key, selection)| PodTerm {
        topology_key: key.into(),
        selection,
        selects_own_labels: false,
    })
}

fn rule() -> impl Strategy<Value = SpreadRule> {
    let labels = proptest::option::weighted(0.9, selector());
    (
        one_of(&KEYS),
        1u32..3,
        1u32..4,
        labels,
        any::<(bool, bool)>(),
    )
        .prop_map(
            |(key, max_skew, min_domains, labels, (honors_affinity, honors_taints))| SpreadRule {
                topology_key: key.into(),
                max_skew,
                min_domains,
                labels,
                selects_own_labels: false,
                honors_affinity,
                honors_taints,
            },
        )
}

/// What happens.
#[derive(Debug, Clone)]
enum Change {
    Node(u8, Vec<Option<u8>>, bool),
    NoNode(u8),
    Namespace(&'static str, bool),
    Pod(u8, Box<PodChange>),
    NoPod(u8),
}

#[derive(Debug, Clone)]
struct PodChange {
    namespace: &'static str,
    app: &'static str,
    numbered: bool,
    node: Option<u8>,
    deleted: bool,
    ours: bool,
    rules: (Vec<PodTerm>, Vec<PodTerm>, Vec<SpreadRule>),
    zone: Option<u8>,
}

fn change() -> impl Strategy<Value = Change> {
    let value = proptest::option::weighted(0.85, 0u8..3);
    let labels = proptest::collection::vec(value, 3);
    let rules = (
        proptest::collection::vec(term(), 0..2),
        proptest::collection::vec(term(), 0..3),
        proptest::collection::vec(rule(), 0..2),
    );
    let pod = (
        (one_of(&NAMESPACES), one_of(&APPS), any::<bool>()),
        proptest::option::weighted(0.7, 0u8..6),
        (proptest::bool::weighted(0.1), proptest::bool::weighted(0.7)),
        rules,
        proptest::option::weighted(0.2, 0u8..3),
    );
    let pod = pod.prop_map(
        |((namespace, app, numbered), node, (deleted, ours), rules, zone)| {
            Box::new(PodChange {
                namespace,
                app,
                numbered,
                node,
                deleted,
                ours,
                rules,
                zone,
            })
        },
    );
    prop_oneof![
        4 => (0u8..6, labels, proptest::bool::weighted(0.2))
            .prop_map(|(node, labels, tainted)| Change::Node(node, labels, tainted)),
        1 => (0u8..6).prop_map(Change::NoNode),
        1 => (one_of(&NAMESPACES), any::<bool>())
            .prop_map(|(name, labelled)| Change::Namespace(name, labelled)),
        12 => (0u8..12, pod).prop_map(|(pod, change)| Change::Pod(pod, change)),
        2 => (0u8..12).prop_map(Change::NoPod),
    ]
}

fn labels(pairs: impl IntoIterator<Item = (&'static str, String)>) -> Labels {
    let pairs = pairs.into_iter();
    let mut labels: Labels = pairs
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    labels.sort();
    labels
}

fn node(number: u8, values: &[Option<u8>], tainted: bool) -> NodeFacts {
    let amounts = vec![("cpu".into(), 1_000_000), ("pods".into(), 100)];
    let values = KEYS.into_iter().zip(values);
    let taint = Taint {
        key: "x".into(),
        value: "".into(),
        effect: TaintEffect::NoSchedule,
    };
    NodeFacts {
        labels: labels(values.filter_map(|(key, value)| Some((key, format!("{}", (*value)?))))),
        taints: tainted.then_some(taint).into_iter().collect(),
        ..NodeFacts::new(
            Uid(1000 + u128::from(number)),
            &format!("node-{number}"),
            amounts,
        )
    }
}

/// Some pods prefer what others require.
fn preferences(change: &PodChange) -> Preferences {
    let (near, far, _) = &change.rules;
    let weighted = |terms: &[PodTerm], weight: i32| -> Vec<PreferredPods> {
        let terms = terms.iter().filter(|_| change.app != "a");
        let preferred = terms.map(|term| PreferredPods {
            weight,
            topology_key: term.topology_key.clone(),
            selection: term.selection.clone(),
        });
        preferred.collect()
    };
    Preferences {
        pods: [weighted(near, 7), weighted(far, -3)].concat(),
        ..Preferences::default()
    }
}

fn pod(number: u8, change: &PodChange) -> PodFacts {
    let name = format!("pod-{number}");
    let numbered = change.numbered.then(|| (POD_NAME, name.clone()));
    let own = labels([("app", change.app.into())].into_iter().chain(numbered));
    let (affinity, anti_affinity, spread) = change.rules.clone();
    let selects = |labels: Option<&LabelSelector>| {
        labels.is_some_and(|labels| labels.selects(|key| label(&own, key)))
    };
    let known = |mut term: PodTerm| {
        term.selects_own_labels = change.ours && selects(term.selection.labels.as_ref());
        term
    };
    let mut relations = Relations {
        namespace: change.namespace.into(),
        affinity: affinity.into_iter().map(known).collect(),
        anti_affinity: anti_affinity.into_iter().map(known).collect(),
        spread: spread
            .into_iter()
            .map(|rule| SpreadRule {
                selects_own_labels: selects(rule.labels.as_ref()),
                ..rule
            })
            .collect(),
    };
    let preferences = preferences(change);
    if !change.ours {
        (relations.affinity, relations.spread) = (Vec::new(), Vec::new());
    }
    let selector = change.zone.filter(|_| change.ours);
    let shape = PodShape {
        requests: vec![("cpu".into(), 1), ("pods".into(), 1)],
        node_selector: labels(selector.map(|zone| ("zone", format!("{zone}")))),
        relations: (!relations.is_empty()).then(|| Box::new(relations)),
        preferences: (!preferences.is_empty()).then(|| Box::new(preferences)),
        ..PodShape::default()
    };
    PodFacts {
        ours: change.ours,
        labels: match change.ours {
            true => PodLabels::new(&own, &name, None),
            false => PodLabels {
                implied: 0,
                stated: Some(Arc::new(own)),
            },
        },
        node: change.node.map(|node| format!("node-{node}").into()),
        deletion_ms: change.deleted.then_some(5),
        phase: PodPhase::Pending,
        ..PodFacts::new(
            Uid(u128::from(number)),
            change.namespace,
            &name,
            Arc::new(shape),
        )
    }
}

fn apply(state: &mut ClusterState, told: &mut Told, change: &Change) {
    match change {
        Change::Node(number, values, tainted) => {
            let facts = node(*number, values, *tainted);
            told.nodes.insert(*number, facts.clone());
            state.apply(Object::Node(facts), 0);
        }
        Change::NoNode(number) => {
            if let Some(gone) = told.nodes.remove(number) {
                state.delete(ObjectKey::Node(gone.name, gone.uid));
            }
        }
        Change::Namespace(name, labelled) => {
            let team = labelled.then(|| ("team", "x".into()));
            let labels = labels(team);
            told.namespaces.insert((*name).into(), labels.clone());
            let facts = NamespaceFacts {
                name: (*name).into(),
                uid: Uid(7),
                labels,
                problems: Vec::new(),
            };
            state.apply(Object::Namespace(facts), 0);
        }
        Change::Pod(number, change) => {
            let facts = pod(*number, change);
            // A pod keeps its namespace, its node and its scheduler, and stays deleted.
            if let Some(before) = told.pods.get(number) {
                let stays = before.namespace == facts.namespace
                    && before.ours == facts.ours
                    && (before.node.is_none() || before.node == facts.node)
                    && (before.deletion_ms.is_none() || facts.deletion_ms.is_some());
                if !stays {
                    return;
                }
            }
            told.pods.insert(*number, facts.clone());
            state.apply(Object::Pod(facts), 0);
        }
        Change::NoPod(number) => {
            told.pods.remove(number);
            state.delete(ObjectKey::Pod(Uid(u128::from(*number))));
        }
    }
}

/// The verdict of every rule about other pods for each waiting pod of ours on each node.
fn compare(state: &mut ClusterState, told: &Told) -> Result<(), TestCaseError> {
    state.follow_namespaces();
    prop_assert_eq!(state.wrong_tallies(), 0);
    for facts in told
        .pods
        .values()
        .filter(|pod| pod.ours && pod.node.is_none())
    {
        let class = state.pods[state.pod_ids[&facts.uid]].class;
        state.refresh(class);
        let view = state.view(class);
        for node in told.nodes.values() {
            let id = state.node_ids[&node.name];
            let verdict = view.as_ref().map_or(Ok(()), |view| view.verdict(id));
            let expected = told.verdict(facts, node);
            let table = state.table_as_of(class);
            let has_room = table.is_some_and(|table| table.is_eligible(id))
                && state.nodes[id].multiplicity(&state.classes[class]) > 0;
            let opens = has_room && expected.is_ok();
            prop_assert_eq!(verdict, expected, "{} on {}", facts.name, node.name);
            let fits = state.fits_on(class, id);
            prop_assert_eq!(fits > 0, opens, "{} on {}", facts.name, node.name);
        }
        let pod = state.pod_ids[&facts.uid];
        for node in told.nodes.values() {
            let drawn = state.drawn_to(pod, &[state.node_ids[&node.name]]);
            let expected = told.drawn_to(facts, node);
            prop_assert_eq!(drawn, [expected], "{} on {}", facts.name, node.name);
            let everywhere = state.drawn_everywhere(pod);
            let drawn = everywhere[state.node_ids[&node.name].index()];
            prop_assert_eq!(drawn, expected, "{} on {}", facts.name, node.name);
        }
    }
    Ok(())
}

#[test]
fn a_node_that_pods_only_name_counts_for_no_spread() {
    let change = |app, node, ours, spread: Vec<SpreadRule>| {
        Box::new(PodChange {
            namespace: "two",
            app,
            numbered: false,
            node,
            deleted: false,
            ours,
            rules: (Vec::new(), Vec::new(), spread),
            zone: None,
        })
    };
    let rule = SpreadRule {
        topology_key: "host".into(),
        max_skew: 1,
        min_domains: 1,
        labels: Some(LabelSelector {
            match_labels: vec![("app".into(), "a".into())],
            match_expressions: Vec::new(),
        }),
        selects_own_labels: false,
        honors_affinity: false,
        honors_taints: false,
    };
    let host = |number| Change::Node(number, vec![None, None, Some(0)], false);
    let changes = [
        host(0),
        Change::Pod(3, change("a", None, true, vec![rule])),
        Change::NoNode(0),
        host(4),
        Change::Pod(2, change("a", Some(4), false, Vec::new())),
        // The number of node 0 is given again.
        Change::Pod(1, change("a", Some(0), false, Vec::new())),
    ];
    let (mut state, mut told) = (ClusterState::new(), Told::default());
    for change in &changes {
        apply(&mut state, &mut told, change);
        compare(&mut state, &told).unwrap();
    }
}

proptest! {
    #[test]
    fn verdicts_are_those_of_a_plain_reading(
        changes in proptest::collection::vec(change(), 1..60),
    ) {
        let (mut state, mut told) = (ClusterState::new(), Told::default());
        for change in &changes {
            apply(&mut state, &mut told, change);
            compare(&mut state, &told)?;
        }
        for number in told.pods.keys().copied().collect::<BTreeSet<_>>() {
            apply(&mut state, &mut told, &Change::NoPod(number));
        }
        compare(&mut state, &told)?;
    }

    #[test]
    fn a_transaction_undoes_what_it_has_changed(
        changes in proptest::collection::vec(change(), 1..40),
        moves in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<bool>()), 1..10),
    ) {
        let (mut state, mut told) = (ClusterState::new(), Told::default());
        for change in &changes {
            apply(&mut state, &mut told, change);
        }
        let nodes = state.nodes.ids();
        let pods = state.pods.ids();
        prop_assume!(!nodes.is_empty() && !pods.is_empty());
        let mut txn = Txn::default();
        let start = txn.checkpoint();
        for (pod, node, ends) in moves {
            let pod = pods[usize::from(pod) % pods.len()];
            let node = nodes[usize::from(node) % nodes.len()];
            let (record, class) = (&state.pods[pod], state.pods[pod].class);
            if ends {
                txn.displace(&mut state, pod);
            } else if record.stage == crate::state::pod::Stage::Waiting
                && state.nodes[node].multiplicity(&state.classes[class]) > 0
            {
                txn.place(&mut state, pod, node, crate::facts::Placement::Binpack);
            }
            prop_assert_eq!(state.wrong_tallies(), 0);
        }
        txn.rollback(&mut state, start);
        compare(&mut state, &told)?;
    }
}
