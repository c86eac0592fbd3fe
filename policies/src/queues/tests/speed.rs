//! What a change costs, counted in keys and children, not in time. It grows with the number of
//! queues only where it must.

use super::*;

/// A tree with so many leaves in which each inner queue has so many children; the leaves by number.
fn large_tree(leaves: usize, branching: usize) -> (QueueTree, Vec<QueueId>) {
    let mut queues = Vec::new();
    let mut level: Vec<String> = vec![String::new()];
    while level.len() < leaves {
        let mut next = Vec::new();
        for parent in &level {
            for child in 0..branching.min(leaves - next.len()) {
                let name = format!("{parent}q{child}");
                let entries = [entry(GPU, 1, None, 1), entry("cpu", 8000, None, 1)];
                queues.push(with(queue(&name, parent), &entries));
                next.push(name);
            }
        }
        level = next;
    }
    let mut tree = tree(queues);
    tree.capacities(&[(GPU, 10_000), ("cpu", 1_000_000)]);
    let leaves: Vec<QueueId> = level.iter().map(|name| tree.at(name)).collect();
    for name in &level {
        tree.wait(name, &[(GPU, 1), ("cpu", 1000)]);
    }
    (tree, leaves)
}

/// How many keys are computed, and children looked at for them, for each charge of a long series.
fn looked_at_each(leaves: usize, branching: usize) -> u64 {
    const CHARGES: u64 = 4_000;
    let (mut tree, _) = large_tree(leaves, branching);
    let unit = tree.demand(&[(GPU, 1), ("cpu", 1000)]);
    let mut leaf = tree.next_leaf(LineUp::FIRST);
    let before = tree.orders[0].counted;
    for _ in 0..CHARGES {
        tree.charge(leaf.expect("all leaves have candidates"), &unit, true);
        leaf = tree.next_leaf(LineUp::FIRST);
    }
    let after = tree.orders[0].counted;
    (after.keys - before.keys + after.children - before.children) / CHARGES
}

#[test]
fn a_charge_looks_at_its_path_and_the_children_of_that_whatever_the_tree() {
    for (leaves, branching, depth) in [(1000, 6, 4), (1000, 32, 2), (1000, 1000, 1)] {
        let each = looked_at_each(leaves, branching);
        // Each queue of the path, the children of its inner queues, and siblings whose quota counts
        // for something else now: none of them more than twice.
        let most = 2 * (depth + (depth - 1) * branching as u64);
        assert!(
            each <= most,
            "{leaves} leaves, {branching} per queue: {each} > {most}"
        );
    }
}

/// The work of dividing fair shares among so many leaves that ask for different amounts.
fn work_of_division(leaves: usize, branching: usize) -> u64 {
    let (mut tree, ids) = large_tree(leaves, branching);
    for (at, id) in ids.iter().enumerate() {
        let at = u64::try_from(at).unwrap();
        let demand = tree.demand(&[(GPU, 1 + at * 7 % 40), ("cpu", 1000 + at * 131 % 9000)]);
        tree.add_wanted(*id, &demand);
    }
    let mut work = 0;
    assert!(tree.divide(&mut work, u64::MAX));
    work
}

#[test]
fn dividing_among_four_times_as_many_queues_takes_four_times_the_work_and_not_sixteen() {
    // In a tree of one level all siblings are looked at when one of them is served at another rate.
    for (branching, most) in [(6, 4), (32, 4), (1000, 10)] {
        let [few, many] = [250, 1000].map(|leaves| work_of_division(leaves, branching));
        assert!(
            many <= most * few,
            "{branching} per queue: {few} for 250, {many} for 1000"
        );
    }
}

/// How many keys are computed for one charge to one of many siblings. All of them have a gang to be
/// tried and a quota of `quota`; another sibling holds `held`.
fn keys_of_a_charge(siblings: u64, held: u64, quota: u64) -> u64 {
    let mut queues = vec![gpus("p", "", held)];
    queues.extend((0..siblings).map(|at| gpus(&format!("q{at}"), "p", quota)));
    let mut tree = tree(queues);
    tree.capacities(&[(GPU, 1_000_000)]);
    for at in 0..siblings {
        tree.wait(&format!("q{at}"), &[(GPU, 1)]);
    }
    tree.hold("q1", &[(GPU, held)]);
    tree.next();
    let before = tree.orders[0].counted.keys;
    tree.hold("q0", &[(GPU, 1)]);
    tree.next();
    tree.orders[0].counted.keys - before
}

#[test]
fn the_keys_of_a_charge_do_not_grow_with_the_number_of_siblings() {
    for siblings in [10, 100, 1_000] {
        assert_eq!(keys_of_a_charge(siblings, 1_000, 8), 2, "{siblings}");
        // Quotas are larger than what the parent holds. So besides the keys of the charged leaf and
        // of its parent, those of the two siblings that hold something are computed anew.
        assert_eq!(keys_of_a_charge(siblings, 4, 8), 4, "{siblings}");
    }
}

#[test]
fn a_changed_queue_adjusts_the_weights_of_its_siblings_alone() {
    let siblings = 20;
    for parents in [2, 20, 50] {
        let mut queues: Vec<QueueFacts> = (0..parents)
            .map(|parent| gpus(&format!("p{parent}"), "", 0))
            .collect();
        for parent in 0..parents {
            let names = (0..siblings).map(|at| format!("p{parent}q{at}"));
            queues.extend(names.map(|name| gpus(&name, &format!("p{parent}"), 0)));
        }
        let mut tree = QueueTree::new();
        tree.set_half_life(Some(3_600_000));
        tree.replace(queues);
        tree.refresh(5);
        tree.capacities(&[(GPU, 1_000)]);
        tree.count_use(0);
        for parent in 0..parents {
            for at in 0..siblings {
                let name = format!("p{parent}q{at}");
                tree.hold(&name, &[(GPU, 1 + at % 3)]);
                tree.wait(&name, &[(GPU, 1)]);
            }
        }
        tree.count_use(600_000);
        tree.next();
        let before = tree.orders[0].counted.keys;
        tree.apply(with(queue("p1q1", "p1"), &[entry(GPU, 0, None, 7)]));
        tree.refresh(6);
        tree.next();
        let computed = tree.orders[0].counted.keys - before;
        let most = siblings + 1;
        assert!(computed <= most, "{parents} parents: {computed} keys");
    }
}
