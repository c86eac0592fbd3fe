use super::GroupTree;
use crate::facts::{PodGroupFacts, SubGroupFacts, Uid};
use alloc::{format, string::String, vec::Vec};

fn leaf(name: &str, parent: &str, min_member: u32) -> SubGroupFacts {
    SubGroupFacts::new(name, parent, Some(min_member))
}

fn inner(name: &str, parent: &str, min_sub_groups: Option<u32>) -> SubGroupFacts {
    SubGroupFacts {
        min_sub_groups,
        ..SubGroupFacts::new(name, parent, None)
    }
}

fn group(sub_groups: Vec<SubGroupFacts>, min_sub_groups: Option<u32>) -> PodGroupFacts {
    PodGroupFacts {
        sub_groups,
        min_sub_groups,
        ..PodGroupFacts::new(Uid(1), "default", "g", 1)
    }
}

fn fault(facts: &PodGroupFacts) -> String {
    match GroupTree::of(facts) {
        Ok(_) => String::from("none"),
        Err(problem) => format!("{}: {}", problem.field, problem.message),
    }
}

#[test]
fn needs_are_counted_at_every_level() {
    let facts = group(
        Vec::from([
            inner("slices", "", Some(2)),
            leaf("a", "slices", 4),
            leaf("b", "slices", 3),
            leaf("c", "slices", 5),
            leaf("router", "", 1),
        ]),
        None,
    );
    let tree = GroupTree::of(&facts).unwrap().unwrap();
    assert_eq!(tree.fewest(), 4 + 3 + 1);
    let held = |pods: &[(&str, u32)]| {
        let mut held = alloc::vec![0; tree.len()];
        for (name, pods) in pods {
            held[tree.leaf(name).unwrap()] = *pods;
        }
        held
    };
    assert_eq!(tree.needs(&held(&[("c", 4)]))[0], 1 + 3 + 1);
    assert!(tree.is_met(&held(&[("a", 4), ("c", 5), ("router", 1)])));
    // Many pods of one slice do not stand for another one.
    assert!(!tree.is_met(&held(&[("a", 9), ("c", 4), ("router", 1)])));
    assert_eq!(tree.leaf("slices"), None);
    assert!(tree.is_below(tree.leaf("b").unwrap(), 0));
    assert!(!tree.is_below(tree.leaf("router").unwrap(), tree.leaf("b").unwrap()));
}

#[test]
fn what_contradicts_itself_is_named() {
    let check = |sub_groups: &[SubGroupFacts], expected: &str| {
        assert_eq!(fault(&group(sub_groups.to_vec(), None)), expected);
    };
    check(
        &[leaf("a", "", 1), leaf("a", "", 1)],
        "spec.subGroups[1].name: is the name of subGroups[0], too",
    );
    check(
        &[leaf("a", "b", 1)],
        "spec.subGroups[0].parent: there is no sub-group \"b\"",
    );
    check(
        &[
            leaf("x", "", 1),
            inner("a", "b", None),
            inner("b", "a", None),
        ],
        "spec.subGroups[1].parent: makes a cycle",
    );
    check(
        &[leaf("a", "a", 1)],
        "spec.subGroups[0].parent: makes a cycle",
    );
    check(
        &[leaf("a", "", 1), leaf("b", "a", 1)],
        "spec.subGroups[0].minMember: is only for subGroups without children",
    );
    check(
        &[inner("a", "", Some(2)), leaf("b", "a", 1)],
        "spec.subGroups[0].minSubGroups: 2 is more than its 1 direct children",
    );
    check(
        &[inner("a", "", Some(1))],
        "spec.subGroups[0].minSubGroups: it has no children",
    );
    check(&[leaf("", "", 1)], "spec.subGroups[0].name: is missing");
}

#[test]
fn what_contradicts_the_pod_group_is_named() {
    let one = || Vec::from([leaf("a", "", 1)]);
    assert_eq!(
        fault(&group(one(), Some(2))),
        "spec.minSubGroups: 2 is more than its 1 direct children"
    );
    assert_eq!(
        fault(&group(Vec::new(), Some(1))),
        "spec.minSubGroups: there are no subGroups"
    );
    let both = PodGroupFacts {
        minimum: 2,
        ..group(one(), None)
    };
    assert_eq!(fault(&both), "spec.minMember: does not go with subGroups");
}

#[test]
fn trees_are_neither_too_deep_nor_too_large() {
    let chain = |depth: usize| {
        let groups = (0..depth).map(|level| {
            let parent = level.checked_sub(1).map(|above| format!("g{above}"));
            inner(&format!("g{level}"), &parent.unwrap_or_default(), None)
        });
        group(groups.collect(), None)
    };
    assert_eq!(fault(&chain(16)), "none");
    assert!(fault(&chain(17)).contains("16 levels"));
    let many = |count: usize| {
        let groups = (0..count).map(|number| leaf(&format!("g{number}"), "", 1));
        group(groups.collect(), None)
    };
    assert_eq!(fault(&many(128)), "none");
    assert!(fault(&many(129)).contains("129 entries"));
}

#[test]
fn huge_minima_do_not_overflow() {
    let facts = group(
        Vec::from([leaf("a", "", u32::MAX), leaf("b", "", u32::MAX)]),
        None,
    );
    let tree = GroupTree::of(&facts).unwrap().unwrap();
    assert_eq!(tree.fewest(), u32::MAX);
}
