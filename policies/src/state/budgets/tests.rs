use crate::event::{Kind, Listing, Object, ObjectKey};
use crate::facts::{
    DisruptionBudgetFacts, LabelSelector, Labels, MatchOperator, OwnerReference, PodFacts,
    PodLabels, PodPhase, PodShape, SelectorRequirement, Uid,
};
use crate::state::ClusterState;
use alloc::{boxed::Box, collections::BTreeMap, format, string::String, sync::Arc, vec, vec::Vec};
use proptest::prelude::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let pairs = pairs.iter();
    let mut labels: Labels = pairs.map(|(k, v)| ((*k).into(), (*v).into())).collect();
    labels.sort();
    labels
}

fn pod(number: u32, namespace: &str, pairs: &[(&str, &str)]) -> PodFacts {
    let name = format!("web-{number}");
    let uid = Uid(u128::from(number) + 1);
    PodFacts {
        labels: PodLabels::new(&labels(pairs), &name, None),
        ..PodFacts::new(uid, namespace, &name, Arc::new(PodShape::default()))
    }
}

fn budget(name: &str, selector: Option<LabelSelector>) -> DisruptionBudgetFacts {
    DisruptionBudgetFacts {
        uid: Uid(7),
        namespace: "a".into(),
        name: name.into(),
        selector,
        allowed: 1,
        problems: Vec::new(),
    }
}

fn equal(pairs: &[(&str, &str)]) -> LabelSelector {
    LabelSelector {
        match_labels: labels(pairs),
        match_expressions: Vec::new(),
    }
}

fn requires(key: &str, operator: MatchOperator, values: &[&str]) -> LabelSelector {
    LabelSelector {
        match_labels: Vec::new(),
        match_expressions: vec![SelectorRequirement {
            key: key.into(),
            operator,
            values: values.iter().map(|value| (*value).into()).collect(),
        }],
    }
}

/// A state with these objects.
fn state(objects: impl IntoIterator<Item = Object>) -> ClusterState {
    let mut state = ClusterState::new();
    for object in objects {
        state.apply(object, 0);
    }
    state
}

/// The names of the budgets that select a pod, and what they allow.
fn selecting(state: &ClusterState, uid: Uid) -> Vec<(String, u32)> {
    let budgets = state.budgets_of(state.pod_ids[&uid]);
    budgets
        .map(|facts| (String::from(&*facts.name), facts.allowed))
        .collect()
}

fn names(state: &ClusterState, number: u32) -> Vec<String> {
    let selecting = selecting(state, Uid(u128::from(number) + 1));
    selecting.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn selectors_mean_what_they_mean_in_kubernetes() {
    use MatchOperator::{DoesNotExist, Exists, In, NotIn};
    for (selector, with, without) in [
        (None, false, false),
        (Some(LabelSelector::default()), true, true),
        (Some(equal(&[("app", "web")])), true, false),
        (Some(equal(&[("app", "web"), ("tier", "x")])), false, false),
        (Some(requires("app", In, &["db", "web"])), true, false),
        (Some(requires("app", NotIn, &["web"])), false, true),
        (Some(requires("app", Exists, &[])), true, false),
        (Some(requires("app", DoesNotExist, &[])), false, true),
    ] {
        let told = format!("{selector:?}");
        let objects = [
            Object::Pod(pod(0, "a", &[("app", "web")])),
            Object::DisruptionBudget(budget("b", selector)),
            Object::Pod(pod(1, "a", &[])),
            Object::Pod(pod(2, "b", &[("app", "web")])),
        ];
        let state = state(objects);
        let found = [0, 1, 2].map(|number| !names(&state, number).is_empty());
        assert_eq!(found, [with, without, false], "{told}");
    }
}

#[test]
fn all_budgets_that_select_a_pod_are_named_in_order_and_say_what_they_allow() {
    let everything = || Some(LabelSelector::default());
    let later = Object::DisruptionBudget(budget("z", Some(equal(&[("app", "web")]))));
    let mut state = state([later, Object::Pod(pod(0, "a", &[("app", "web")]))]);
    for name in ["m", "b"] {
        state.apply(Object::DisruptionBudget(budget(name, everything())), 0);
    }
    assert_eq!(names(&state, 0), ["b", "m", "z"]);
    let none_left = DisruptionBudgetFacts {
        allowed: 0,
        ..budget("m", everything())
    };
    state.apply(Object::DisruptionBudget(none_left), 0);
    state.delete(ObjectKey::DisruptionBudget("a".into(), "b".into()));
    let expected = [("m".into(), 0), ("z".into(), 1)];
    assert_eq!(selecting(&state, Uid(1)), expected);
}

#[test]
fn labels_of_one_pod_alone_are_asked_for_that_pod() {
    let name = "statefulset.kubernetes.io/pod-name";
    let one = Object::DisruptionBudget(budget("one", Some(equal(&[(name, "web-1")]))));
    let others = requires(name, MatchOperator::NotIn, &["web-1"]);
    let others = Object::DisruptionBudget(budget("others", Some(others)));
    let pods = (0..3).map(|number| {
        let own = format!("web-{number}");
        Object::Pod(pod(number, "a", &[(name, &own), ("app", "web")]))
    });
    let state = state(pods.chain([one, others]));
    let found = [0, 1, 2].map(|number| names(&state, number));
    assert_eq!(found, [["others"], ["one"], ["others"]]);
    // The pods share one set, since only their names tell them apart.
    assert_eq!(state.budgets.sets.len(), 1);
}

#[test]
fn a_foreign_pod_has_no_budget_and_nothing_is_kept_of_pods_that_are_gone() {
    let mut foreign = pod(0, "a", &[]);
    foreign.ours = false;
    let all = Object::DisruptionBudget(budget("all", Some(LabelSelector::default())));
    let mut state = state([
        all,
        Object::Pod(foreign),
        Object::Pod(pod(1, "a", &[("x", "y")])),
    ]);
    assert_eq!(names(&state, 0), Vec::<String>::new());
    assert_eq!(names(&state, 1), ["all"]);
    for uid in [1, 2] {
        state.delete(ObjectKey::Pod(Uid(uid)));
    }
    assert_eq!(state.budgets.sets.len(), 0);
    state.delete(ObjectKey::DisruptionBudget("a".into(), "all".into()));
    state.delete(ObjectKey::DisruptionBudget("a".into(), "never".into()));
    assert!(state.budgets.namespaces.is_empty());
}

#[test]
fn a_list_replaces_all_budgets() {
    let everything = || Some(LabelSelector::default());
    let objects = ["gone", "kept"].map(|name| Object::DisruptionBudget(budget(name, everything())));
    let mut state = state(objects.into_iter().chain([Object::Pod(pod(0, "a", &[]))]));
    let listing = Listing {
        kind: Kind::DisruptionBudget,
        objects: Vec::from(
            ["kept", "new"].map(|name| Object::DisruptionBudget(budget(name, everything()))),
        ),
    };
    state.apply_listing(listing, 0);
    assert_eq!(names(&state, 0), ["kept", "new"]);
}

#[test]
fn a_pod_that_claims_another_namespace_stays_in_its_own() {
    let all = Object::DisruptionBudget(budget("all", Some(LabelSelector::default())));
    let mut state = state([all, Object::Pod(pod(0, "a", &[]))]);
    state.apply(Object::Pod(pod(0, "b", &[("x", "y")])), 0);
    assert_eq!(names(&state, 0), ["all"]);
    state.delete(ObjectKey::Pod(Uid(1)));
    assert_eq!(state.budgets.sets.len(), 0);
}

/// What happens to the objects of a namespace.
#[derive(Debug, Clone)]
enum Change {
    Budget(u8, Option<LabelSelector>, u32),
    NoBudget(u8),
    Pod(u32, Labels, bool),
    NoPod(u32),
}

const KEYS: [&str; 4] = [
    "app",
    "controller-uid",
    "gpu-batch.io/pod-group",
    "statefulset.kubernetes.io/pod-name",
];

fn any_labels() -> impl Strategy<Value = Labels> {
    let key = proptest::sample::select(KEYS.to_vec());
    let value = proptest::sample::select(vec!["web-0", "web-1", "x", ""]);
    proptest::collection::btree_map(key, value, 0..4).prop_map(|pairs| {
        let pairs = pairs.into_iter();
        pairs.map(|(k, v)| (k.into(), v.into())).collect()
    })
}

fn any_selector() -> impl Strategy<Value = LabelSelector> {
    let operators = [
        MatchOperator::In,
        MatchOperator::NotIn,
        MatchOperator::Exists,
        MatchOperator::DoesNotExist,
        MatchOperator::Gt,
    ];
    let operator = proptest::sample::select(operators.to_vec());
    let key = proptest::sample::select(KEYS.to_vec());
    let values = proptest::sample::subsequence(vec!["web-0", "web-1", "x"], 0..3);
    let requirement =
        (key, operator, values).prop_map(|(key, operator, values)| SelectorRequirement {
            key: key.into(),
            operator,
            values: values.into_iter().map(Box::from).collect(),
        });
    let requirements = proptest::collection::vec(requirement, 0..3);
    (any_labels(), requirements).prop_map(|(mut match_labels, match_expressions)| {
        match_labels.truncate(1);
        LabelSelector {
            match_labels,
            match_expressions,
        }
    })
}

fn any_change() -> impl Strategy<Value = Change> {
    let selector = proptest::option::weighted(0.9, any_selector());
    prop_oneof![
        3 => (0..4u8, selector, 0..3u32).prop_map(|(n, s, a)| Change::Budget(n, s, a)),
        1 => (0..4u8).prop_map(Change::NoBudget),
        4 => (0..4u32, any_labels(), any::<bool>()).prop_map(|(n, l, o)| Change::Pod(n, l, o)),
        1 => (0..4u32).prop_map(Change::NoPod),
    ]
}

proptest! {
    /// Whatever comes, changes and goes, in whatever order: each pod has the budgets that select it
    /// by the labels that were written.
    #[test]
    fn what_is_kept_is_what_selectors_and_labels_say(
        changes in proptest::collection::vec(any_change(), 0..40),
    ) {
        let mut state = ClusterState::new();
        let mut budgets: BTreeMap<u8, DisruptionBudgetFacts> = BTreeMap::new();
        let mut pods: BTreeMap<u32, Labels> = BTreeMap::new();
        for change in changes {
            match change {
                Change::Budget(number, selector, allowed) => {
                    let name = format!("b{number}");
                    let facts = DisruptionBudgetFacts { allowed, ..budget(&name, selector) };
                    budgets.insert(number, facts.clone());
                    state.apply(Object::DisruptionBudget(facts), 0);
                }
                Change::NoBudget(number) => {
                    budgets.remove(&number);
                    let name = format!("b{number}").into();
                    state.delete(ObjectKey::DisruptionBudget("a".into(), name));
                }
                Change::Pod(number, labels, owned) => {
                    let mut facts = pod(number, "a", &[]);
                    facts.owner = owned.then(|| OwnerReference {
                        api_version: "batch/v1".into(),
                        kind: "Job".into(),
                        name: "web".into(),
                        uid: Uid(0),
                    });
                    facts.labels = PodLabels::new(&labels, &facts.name, facts.owner.as_ref());
                    facts.phase = PodPhase::Running;
                    pods.insert(number, labels);
                    state.apply(Object::Pod(facts), 0);
                }
                Change::NoPod(number) => {
                    pods.remove(&number);
                    state.delete(ObjectKey::Pod(Uid(u128::from(number) + 1)));
                }
            }
            for (number, labels) in &pods {
                let value = |key: &str| crate::facts::label(labels, key);
                let selects = |facts: &&DisruptionBudgetFacts| {
                    facts.selector.as_ref().is_some_and(|it| it.selects(value))
                };
                let expected = budgets.values().filter(selects);
                let expected: Vec<_> = expected
                    .map(|facts| (String::from(&*facts.name), facts.allowed))
                    .collect();
                let found = selecting(&state, Uid(u128::from(*number) + 1));
                prop_assert_eq!(found, expected);
            }
            prop_assert_eq!(state.wrongly_guarded(), Vec::<&str>::new());
        }
    }
}
