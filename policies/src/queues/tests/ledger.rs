use super::*;
use crate::queues::{Bound, Excess};

const H100: &str = "nvidia.com/gpu@H100";

fn limited(name: &str, parent: &str, limits: &[(&str, Amount)]) -> QueueFacts {
    let entries: Vec<_> = limits
        .iter()
        .map(|(key, limit)| entry(key, 0, Some(*limit), 1))
        .collect();
    with(queue(name, parent), &entries)
}

/// The limit that is in the way of a demand; empty if there is none.
fn in_the_way(tree: &QueueTree, room: Result<(), Excess>) -> String {
    room.err().map_or_else(String::new, |excess| {
        let Excess {
            allowed,
            allocated,
            asked,
            ..
        } = excess;
        assert_eq!(excess.bound, Bound::Limit);
        let (queue, key) = (tree.name(excess.queue), tree.governed_name(excess.key));
        format!("{queue}: {allowed} of {key}, {allocated} held, {asked} asked for")
    })
}

#[test]
fn limits_hold_at_every_ancestor_for_plain_keys_and_models() {
    let mut tree = tree(vec![
        limited("p", "", &[(GPU, 10), ("cpu", 4500)]),
        limited("a", "p", &[(GPU, 8), (H100, 4)]),
        queue("b", "p"),
    ]);
    tree.hold("b", &[(GPU, 5), ("cpu", 2500)]);
    tree.hold("a", &[(GPU, 3), (H100, 3)]);
    let check = |asked: &[(&str, Amount)], expected: &str| {
        let demand = tree.demand(asked);
        assert_eq!(
            in_the_way(&tree, tree.room(tree.at("a"), &demand)),
            expected,
            "{asked:?}"
        );
    };
    check(&[(GPU, 2)], "");
    check(&[(GPU, 1), (H100, 1), ("cpu", 2000)], "");
    check(&[], "");
    check(
        &[(GPU, 2), (H100, 2)],
        "a: 4 of nvidia.com/gpu@H100, 3 held, 2 asked for",
    );
    check(&[(GPU, 6)], "a: 8 of nvidia.com/gpu, 3 held, 6 asked for");
    check(&[(GPU, 3)], "p: 10 of nvidia.com/gpu, 8 held, 3 asked for");
    check(
        &[("cpu", 3000)],
        "p: 4500 of cpu, 2500 held, 3000 asked for",
    );
    let budget = |name, key| tree.budget(tree.at(name), tree.demand(&[(key, 1)])[0].0);
    assert_eq!(budget("a", GPU), Some(2));
    assert_eq!(budget("a", H100), Some(1));
    assert_eq!(budget("b", GPU), Some(2));
    assert_eq!(budget("b", H100), None);
}

#[test]
fn a_limit_that_is_exceeded_already_stops_only_what_asks_for_more_of_it() {
    let mut tree = tree(vec![limited("a", "", &[(GPU, 2), ("cpu", 9)])]);
    tree.hold("a", &[(GPU, 5)]);
    let room = |amounts| tree.room(tree.at("a"), &tree.demand(amounts)).is_ok();
    assert!(room(&[("cpu", 1)]));
    assert!(!room(&[("cpu", 1), (GPU, 1)]));
}

#[test]
fn non_preemptible_gangs_stay_within_the_quotas_of_their_path() {
    let mut tree = tree(vec![
        gpus("p", "", 6),
        with(
            queue("a", "p"),
            &[entry(GPU, 5, None, 1), entry("cpu", 100, None, 1)],
        ),
        queue("b", "p"),
        with(queue("only h100", ""), &[entry(H100, 4, None, 1)]),
    ]);
    let four = tree.demand(&[(GPU, 4)]);
    tree.charge(tree.at("a"), &four, false);
    tree.hold("a", &[(GPU, 20)]);
    let check = |tree: &QueueTree, name: &str, asked: &[(&str, Amount)], expected: Option<&str>| {
        let room = tree.quota_room(tree.at(name), &tree.demand(asked));
        let found = room.err().map(|excess| {
            assert_eq!(excess.bound, Bound::Quota);
            format!(
                "{} {}",
                tree.name(excess.queue),
                tree.governed_name(excess.key)
            )
        });
        assert_eq!(found.as_deref(), expected, "{name} {asked:?}");
    };
    check(&tree, "a", &[(GPU, 1), ("cpu", 100)], None);
    check(&tree, "a", &[(GPU, 2)], Some("a nvidia.com/gpu"));
    check(&tree, "a", &[(GPU, 1), ("cpu", 101)], Some("a cpu"));
    check(&tree, "b", &[(GPU, 1)], Some("b nvidia.com/gpu"));
    check(&tree, "b", &[], None);
    check(&tree, "only h100", &[(GPU, 4), (H100, 4)], None);
    check(
        &tree,
        "only h100",
        &[(GPU, 5), (H100, 5)],
        Some("only h100 nvidia.com/gpu@H100"),
    );
    check(
        &tree,
        "only h100",
        &[(GPU, 1)],
        Some("only h100 nvidia.com/gpu"),
    );
    tree.apply(gpus("p", "", 4));
    tree.refresh(6);
    check(&tree, "a", &[(GPU, 1)], Some("p nvidia.com/gpu"));
    tree.release(tree.at("a"), &four, false);
    check(&tree, "a", &[(GPU, 4)], None);
}

#[test]
fn books_balance_on_every_level() {
    let mut tree = tree(vec![
        queue("p", ""),
        with(queue("a", "p"), &[entry("cpu", 0, None, 1)]),
        queue("b", "p"),
    ]);
    tree.hold("a", &[(GPU, 3), ("cpu", 500)]);
    tree.hold("b", &[(GPU, 4)]);
    tree.want("b", &[(GPU, 2), ("cpu", 100)]);
    let check = |name, allocated: &[(&str, Amount)], requested: &[(&str, Amount)]| {
        let named = |amounts: &[(&str, Amount)]| -> Vec<(Box<str>, Amount)> {
            amounts
                .iter()
                .map(|(key, amount)| ((*key).into(), *amount))
                .collect()
        };
        let status = tree.status(tree.at(name));
        assert_eq!(status.allocated, named(allocated), "{name}");
        assert_eq!(status.requested, named(requested), "{name}");
    };
    check("a", &[("cpu", 500), (GPU, 3)], &[("cpu", 500), (GPU, 3)]);
    check("b", &[(GPU, 4)], &[("cpu", 100), (GPU, 6)]);
    check("p", &[("cpu", 500), (GPU, 7)], &[("cpu", 600), (GPU, 9)]);
    check("default", &[], &[]);
    let all = tree.demand(&[(GPU, 9), ("cpu", 900)]);
    tree.release(tree.at("a"), &all, true);
    assert!(
        tree.status(tree.at("a")).allocated.is_empty(),
        "never below nothing"
    );
}
