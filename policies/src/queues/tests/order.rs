use super::*;
use crate::queues::Refreshed;

/// Serves units of one GPU until the capacity is used up; returns how many units each leaf got.
fn serve(tree: &mut QueueTree, units: u32) -> Vec<(String, u32)> {
    let unit = tree.demand(&[(GPU, 1)]);
    let mut served = std::collections::BTreeMap::new();
    for _ in 0..units {
        let Some(leaf) = tree.next_leaf(LineUp::FIRST) else {
            break;
        };
        tree.charge(leaf, &unit, true);
        *served.entry(String::from(tree.name(leaf))).or_insert(0) += 1;
    }
    served.into_iter().collect()
}

#[test]
fn units_go_to_the_queues_in_the_stated_order() {
    let check = |what: &str, queues: Vec<QueueFacts>, expected: &[(&str, u32)]| {
        let mut tree = tree(queues.clone());
        tree.capacities(&[(GPU, 12)]);
        for facts in &queues {
            tree.wait(&facts.name, &[(GPU, 1)]);
        }
        let served = serve(&mut tree, 12);
        let served: Vec<_> = served.iter().map(|(name, n)| (&**name, *n)).collect();
        assert_eq!(served, expected, "{what}");
    };
    let over = |name, parent, priority, weight| {
        let mut facts = with(queue(name, parent), &[entry(GPU, 0, None, weight)]);
        facts.priority = priority;
        facts
    };
    check(
        "equal weights",
        vec![over("a", "", 0, 1), over("b", "", 0, 1)],
        &[("a", 6), ("b", 6)],
    );
    check(
        "weights 2 and 1",
        vec![over("a", "", 0, 2), over("b", "", 0, 1)],
        &[("a", 8), ("b", 4)],
    );
    check(
        "weight 0 comes last",
        vec![over("a", "", 0, 0), over("b", "", 0, 1)],
        &[("b", 12)],
    );
    check(
        "priority comes before share",
        vec![over("a", "", 0, 100), over("b", "", 1, 1)],
        &[("b", 12)],
    );
    check(
        "quota comes before priority",
        vec![over("a", "", 9, 1), gpus("b", "", 4)],
        &[("a", 8), ("b", 4)],
    );
    check(
        "too large quotas are used evenly",
        vec![gpus("a", "", 24), gpus("b", "", 6)],
        &[("a", 8), ("b", 4)],
    );
    check(
        "an inner queue counts once",
        vec![
            queue("p", ""),
            queue("p1", "p"),
            queue("p2", "p"),
            queue("q", ""),
        ],
        &[("p1", 3), ("p2", 3), ("q", 6)],
    );
    check(
        "quota of an inner queue is guaranteed to it before its siblings go over theirs",
        vec![
            gpus("p", "", 9),
            gpus("p1", "p", 0),
            gpus("p2", "p", 3),
            queue("q", ""),
        ],
        &[("p1", 5), ("p2", 4), ("q", 3)],
    );
}

/// A gang that is larger than what is left of a quota could be taken back at once.
#[test]
fn those_come_first_whom_their_gang_leaves_within_quota() {
    let mut tree = tree(vec![gpus("a", "", 4), gpus("b", "", 8), gpus("c", "", 0)]);
    tree.capacities(&[(GPU, 16)]);
    tree.hold("a", &[(GPU, 2)]);
    tree.hold("b", &[(GPU, 6)]);
    tree.wait("a", &[(GPU, 3)]);
    tree.wait("b", &[(GPU, 2)]);
    assert_eq!(tree.next(), "b", "a would hold 5 of 4");
    tree.wait("b", &[(GPU, 3)]);
    tree.wait("c", &[(GPU, 1)]);
    assert_eq!(
        tree.next(),
        "c",
        "both would exceed their quotas, and c holds nothing"
    );
    tree.wait("a", &[(GPU, 2)]);
    assert_eq!(
        tree.next(),
        "a",
        "it would hold all of its quota and no more"
    );
}

#[test]
fn equals_are_told_apart_by_what_they_hold_after_the_start() {
    let mut tree = tree(vec![gpus("a", "", 4), gpus("b", "", 8)]);
    tree.capacities(&[(GPU, 16)]);
    tree.wait("a", &[(GPU, 2)]);
    tree.wait("b", &[(GPU, 2)]);
    assert_eq!(tree.next(), "b", "2 of 8 is less than 2 of 4");
    tree.wait("b", &[(GPU, 5)]);
    assert_eq!(tree.next(), "a", "5 of 8 is more than 2 of 4");
    tree.wait("a", &[(GPU, 6)]);
    tree.wait("b", &[(GPU, 9)]);
    assert_eq!(
        tree.next(),
        "a",
        "the share of 6 of 16 is smaller than that of 9"
    );
}

#[test]
fn quota_is_left_only_if_everything_that_is_asked_for_has_some_left() {
    let mut tree = tree(vec![
        with(queue("a", ""), &[entry(GPU, 8, None, 1)]),
        with(
            queue("b", ""),
            &[entry(GPU, 8, None, 1), entry("cpu", 8000, None, 1)],
        ),
    ]);
    tree.capacities(&[(GPU, 16), ("cpu", 64_000)]);
    tree.wait("a", &[(GPU, 1)]);
    tree.wait("b", &[(GPU, 1), ("cpu", 1000)]);
    tree.hold("b", &[(GPU, 2), ("cpu", 1000)]);
    assert_eq!(tree.next(), "a", "both have quota, a has used less of it");
    tree.wait("a", &[(GPU, 1), ("cpu", 1000)]);
    assert_eq!(tree.next(), "b", "a has no CPU quota");
    tree.hold("b", &[("cpu", 7000)]);
    assert_eq!(
        tree.next(),
        "a",
        "b has used its CPU quota up, a's share is less"
    );
}

#[test]
fn a_quota_of_one_model_needs_none_of_the_whole_resource() {
    let mut tree = tree(vec![
        with(queue("a", ""), &[entry("nvidia.com/gpu@H100", 4, None, 1)]),
        queue("b", ""),
    ]);
    tree.capacities(&[(GPU, 16), ("nvidia.com/gpu@H100", 8)]);
    tree.hold("a", &[(GPU, 1), ("nvidia.com/gpu@H100", 1)]);
    tree.wait("b", &[(GPU, 1)]);
    tree.wait("a", &[(GPU, 1), ("nvidia.com/gpu@H100", 1)]);
    assert_eq!(tree.next(), "a");
    tree.wait("a", &[(GPU, 1)]);
    assert_eq!(tree.next(), "b", "any GPU is not what a has been promised");
}

#[test]
fn a_gang_that_asks_for_nothing_divided_has_no_quota_and_its_queue_keeps_its_share() {
    let mut tree = tree(vec![gpus("a", "", 4), gpus("b", "", 4), gpus("c", "", 0)]);
    tree.capacities(&[(GPU, 8)]);
    tree.hold("a", &[(GPU, 3)]);
    tree.wait("a", &[]);
    tree.wait("b", &[]);
    assert_eq!(tree.next(), "b");
    tree.wait("c", &[(GPU, 1)]);
    tree.hold("b", &[(GPU, 1)]);
    assert_eq!(tree.next(), "c");
    tree.wait("a", &[(GPU, 1)]);
    assert_eq!(tree.next(), "a", "it has quota left again");
}

/// A queue that names GPUs and CPUs.
fn both(name: &str, parent: &str) -> QueueFacts {
    let entries = [entry(GPU, 0, None, 1), entry("cpu", 0, None, 1)];
    with(queue(name, parent), &entries)
}

#[test]
fn the_share_of_a_leaf_is_that_of_everything_it_holds() {
    let mut tree = tree(vec![both("a", ""), both("b", "")]);
    tree.capacities(&[(GPU, 8), ("cpu", 100)]);
    tree.hold("a", &[(GPU, 4)]);
    tree.hold("b", &[("cpu", 40)]);
    tree.wait("a", &[("cpu", 1)]);
    tree.wait("b", &[("cpu", 1)]);
    assert_eq!(tree.next(), "b", "40 % against 50 %");
    tree.capacities(&[("cpu", 50)]);
    assert_eq!(tree.next(), "a", "80 % now");
}

#[test]
fn quota_of_something_else_does_not_excuse_what_a_child_has_beyond_its_turn() {
    let mut tree = tree(vec![
        both("p", ""),
        gpus("c", "p", 8),
        both("c1", "c"),
        both("d", "p"),
        both("q", ""),
    ]);
    tree.capacities(&[(GPU, 10), ("cpu", 10)]);
    tree.hold("c1", &[(GPU, 8), ("cpu", 6)]);
    tree.hold("d", &[("cpu", 1)]);
    tree.hold("q", &[("cpu", 3)]);
    for leaf in ["c1", "d", "q"] {
        tree.wait(leaf, &[("cpu", 1)]);
    }
    assert_eq!(tree.next(), "d", "c counts as far as d: 2 against 3");
}

#[test]
fn a_child_that_ran_ahead_on_another_resource_does_not_starve_its_sibling() {
    // The example of the paper on hierarchical DRF: p2 has all GPUs, since no other queue wants
    // any; p1 and q share the CPUs.
    let mut tree = tree(vec![
        both("p", ""),
        both("p1", "p"),
        both("p2", "p"),
        both("q", ""),
    ]);
    tree.capacities(&[(GPU, 10), ("cpu", 10)]);
    tree.hold("p2", &[(GPU, 10)]);
    tree.hold("p1", &[("cpu", 4)]);
    tree.hold("q", &[("cpu", 5)]);
    tree.wait("p1", &[("cpu", 1)]);
    tree.wait("q", &[("cpu", 1)]);
    assert_eq!(tree.next(), "p1", "p2 is blocked");
    tree.wait("p2", &[(GPU, 1)]);
    assert_eq!(tree.next(), "p1", "p2 waits too, but p1 is first");
    tree.hold("p1", &[("cpu", 2)]);
    assert_eq!(tree.next(), "q");
}

#[test]
fn what_a_waiting_child_has_beyond_its_turn_is_not_held_against_its_sibling() {
    let mut tree = tree(vec![
        queue("p", ""),
        queue("ahead", "p"),
        queue("behind", "p"),
        queue("q", ""),
    ]);
    tree.capacities(&[(GPU, 20)]);
    tree.hold("ahead", &[(GPU, 9)]);
    tree.hold("behind", &[(GPU, 1)]);
    tree.hold("q", &[(GPU, 3)]);
    tree.wait("behind", &[(GPU, 1)]);
    tree.wait("q", &[(GPU, 1)]);
    assert_eq!(
        tree.next(),
        "q",
        "ahead is blocked and counts in full: 10 against 3"
    );
    tree.wait("ahead", &[(GPU, 1)]);
    assert_eq!(
        tree.next(),
        "behind",
        "ahead counts as far as behind: 2 against 3"
    );
    tree.hold("behind", &[(GPU, 1)]);
    assert_eq!(tree.next(), "q", "4 against 3");
}

#[test]
fn what_a_child_has_within_its_quota_is_not_beyond_its_turn() {
    let mut tree = tree(vec![
        gpus("p", "", 8),
        gpus("guaranteed", "p", 8),
        gpus("late", "p", 0),
        gpus("q", "", 0),
    ]);
    tree.capacities(&[(GPU, 20)]);
    tree.hold("guaranteed", &[(GPU, 10)]);
    tree.hold("q", &[(GPU, 5)]);
    for leaf in ["guaranteed", "late", "q"] {
        tree.wait(leaf, &[(GPU, 1)]);
    }
    assert_eq!(tree.next(), "q", "guaranteed counts 8, not 0");
    tree.hold("q", &[(GPU, 4)]);
    assert_eq!(tree.next(), "late", "8 against 9");
}

#[test]
fn equal_siblings_are_served_by_age_then_name() {
    let aged = |name, created_ms| QueueFacts {
        created_ms,
        ..queue(name, "")
    };
    let mut tree = tree(vec![aged("a", 9), aged("c", 5), aged("b", 5)]);
    tree.capacities(&[(GPU, 8)]);
    let mut order = Vec::new();
    for leaf in ["a", "b", "c"] {
        tree.wait(leaf, &[(GPU, 1)]);
    }
    while let Some(leaf) = tree.next_leaf(LineUp::FIRST) {
        order.push(String::from(tree.name(leaf)));
        tree.set_candidate(LineUp::FIRST, leaf, None);
    }
    assert_eq!(order, ["b", "c", "a"]);
}

#[test]
fn only_leaves_have_candidates() {
    let mut tree = tree(vec![queue("p", ""), queue("p1", "p")]);
    tree.wait("p", &[(GPU, 1)]);
    assert_eq!(tree.next(), "nobody");
    tree.wait("p1", &[(GPU, 1)]);
    assert_eq!(tree.next(), "p1");
}

#[test]
fn new_terms_change_the_order_and_keep_charges_and_candidates() {
    let mut tree = tree(vec![gpus("a", "", 0), gpus("b", "", 0)]);
    tree.capacities(&[(GPU, 8)]);
    tree.hold("a", &[(GPU, 3)]);
    tree.wait("a", &[(GPU, 1)]);
    tree.wait("b", &[(GPU, 1)]);
    assert_eq!(tree.next(), "b");
    tree.apply(gpus("a", "", 4));
    assert_eq!(tree.next(), "b", "not before the refresh");
    assert!(matches!(tree.refresh(6), Refreshed::Edited { .. }));
    assert_eq!(tree.next(), "a");
}

mod laws {
    use super::*;
    use proptest::prelude::*;

    /// Charges to the leaves of [`forest`], two inner queues with three leaves each: leaf, GPUs,
    /// CPUs.
    fn charges() -> impl Strategy<Value = Vec<(usize, Amount, Amount)>> {
        prop::collection::vec((0usize..6, 0u64..5, 0u64..50), 0..30)
    }

    fn forest(terms: &[(Amount, u16, i32)]) -> QueueTree {
        let mut queues = Vec::new();
        for (at, &(quota, weight, priority)) in terms.iter().enumerate() {
            let (name, parent) = match at {
                0 | 1 => (format!("p{at}"), String::new()),
                _ => (format!("leaf{}", at - 2), format!("p{}", at % 2)),
            };
            let entries = [
                entry(GPU, quota, None, weight),
                entry("cpu", quota * 10, None, 1),
            ];
            let mut facts = with(queue(&name, &parent), &entries);
            facts.priority = priority;
            queues.push(facts);
        }
        tree(queues)
    }

    fn terms() -> impl Strategy<Value = Vec<(Amount, u16, i32)>> {
        prop::collection::vec((0u64..20, 0u16..4, 0i32..2), 8)
    }

    /// The leaves in the order in which they are served, if each gang is refused.
    fn ranking(tree: &mut QueueTree, heads: &[(Amount, Amount)]) -> Vec<String> {
        for (at, &(gpus, cpus)) in heads.iter().enumerate() {
            tree.wait(&format!("leaf{at}"), &[(GPU, gpus), ("cpu", cpus)]);
        }
        let mut ranking = Vec::new();
        while let Some(leaf) = tree.next_leaf(LineUp::FIRST) {
            ranking.push(String::from(tree.name(leaf)));
            tree.set_candidate(LineUp::FIRST, leaf, None);
        }
        ranking
    }

    proptest! {
        #[test]
        fn what_is_released_leaves_no_trace(
            terms in terms(),
            before in charges(),
            tentative in charges(),
            heads in prop::collection::vec((0u64..3, 0u64..3), 6),
            ask in any::<bool>(),
        ) {
            let mut tree = forest(&terms);
            tree.capacities(&[(GPU, 40), ("cpu", 400)]);
            for (leaf, gpus, cpus) in before {
                tree.hold(&format!("leaf{leaf}"), &[(GPU, gpus), ("cpu", cpus)]);
            }
            let expected = ranking(&mut tree, &heads);
            for (at, (gpus, cpus)) in heads.iter().enumerate() {
                tree.wait(&format!("leaf{at}"), &[(GPU, *gpus), ("cpu", *cpus)]);
            }
            let mut undo = Vec::new();
            for (leaf, gpus, cpus) in tentative {
                let demand = tree.demand(&[(GPU, gpus), ("cpu", cpus)]);
                let leaf = tree.at(&format!("leaf{leaf}"));
                tree.charge(leaf, &demand, true);
                if ask {
                    let _ = tree.next_leaf(LineUp::FIRST);
                }
                undo.push((leaf, demand));
            }
            while let Some((leaf, demand)) = undo.pop() {
                tree.release(leaf, &demand, true);
            }
            prop_assert_eq!(ranking(&mut tree, &heads), expected);
        }

        #[test]
        fn keys_that_were_updated_are_those_that_would_be_computed_anew(
            terms in terms(),
            charges in charges(),
            heads in prop::collection::vec((0u64..3, 0u64..3), 6),
        ) {
            let mut updated = forest(&terms);
            updated.capacities(&[(GPU, 40), ("cpu", 400)]);
            let mut fresh = forest(&terms);
            for (at, (gpus, cpus)) in heads.iter().enumerate() {
                updated.wait(&format!("leaf{at}"), &[(GPU, *gpus), ("cpu", *cpus)]);
            }
            for (leaf, gpus, cpus) in charges {
                let amounts = [(GPU, gpus), ("cpu", cpus)];
                updated.hold(&format!("leaf{leaf}"), &amounts);
                let _ = updated.next_leaf(LineUp::FIRST);
                fresh.hold(&format!("leaf{leaf}"), &amounts);
            }
            fresh.capacities(&[(GPU, 40), ("cpu", 400)]);
            prop_assert_eq!(ranking(&mut updated, &heads), ranking(&mut fresh, &heads));
        }
    }
}
