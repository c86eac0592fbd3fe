use super::*;
use std::time::Instant;

/// So many leaves in a tree in which each inner queue has so many children.
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

#[test]
fn charging_and_choosing_takes_microseconds_whatever_the_tree() {
    for (leaves, branching) in [(1000, 6), (1000, 32), (1000, 1000)] {
        let (mut tree, _) = large_tree(leaves, branching);
        let unit = tree.demand(&[(GPU, 1), ("cpu", 1000)]);
        let rounds = 10_000;
        let start = Instant::now();
        for _ in 0..rounds {
            let leaf = tree
                .next_leaf(LineUp::FIRST)
                .expect("all leaves have candidates");
            tree.charge(leaf, &unit, true);
        }
        let each = start.elapsed().as_nanos() / rounds;
        std::println!("{leaves} leaves, {branching} per queue: {each} ns per charge and next leaf");
    }
}

#[test]
fn fair_shares_of_a_large_tree_take_milliseconds() {
    for (leaves, branching) in [(50, 5), (200, 6), (1000, 6), (1000, 1000)] {
        let (mut tree, ids) = large_tree(leaves, branching);
        for (at, id) in ids.iter().enumerate() {
            let at = u64::try_from(at).unwrap();
            let demand = tree.demand(&[(GPU, 1 + at * 7 % 40), ("cpu", 1000 + at * 131 % 9000)]);
            tree.add_requested(*id, &demand);
        }
        let start = Instant::now();
        let share = tree.status(ids[0]).fair_share;
        let took = start.elapsed().as_micros();
        std::println!("{leaves} leaves, {branching} per queue: {took} us, first {share:?}");
    }
}
