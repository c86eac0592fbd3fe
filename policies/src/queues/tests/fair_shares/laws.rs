use super::super::*;
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Leaf {
    parent: usize,
    quota: Amount,
    limit: Option<Amount>,
    weight: u16,
    priority: i32,
    wants: (Amount, Amount),
}

const CAPACITY: Amount = 100;

fn leaf() -> impl Strategy<Value = Leaf> {
    let limit = prop::option::of(0u64..40);
    let wants = (0u64..60, 0u64..6000);
    (0usize..4, 0u64..12, limit, 0u16..5, 0i32..3, wants).prop_map(
        |(parent, quota, limit, weight, priority, wants)| Leaf {
            parent,
            quota,
            limit: limit.map(|limit| limit.max(quota)),
            weight,
            priority,
            wants,
        },
    )
}

fn leaves() -> impl Strategy<Value = Vec<Leaf>> {
    prop::collection::vec(leaf(), 1..8)
}

/// Leaves of parent 0 are below the root. Quotas are never over-committed: they are at most 7 x 12
/// of 100, and a parent's quota is the sum of its children's.
fn definitions(leaves: &[Leaf], cpu: bool) -> Vec<QueueFacts> {
    let entries = |quota: Amount, limit: Option<Amount>, weight| {
        let cpus = entry("cpu", quota * 100, limit.map(|limit| limit * 100), weight);
        let gpus = entry(GPU, quota, limit, weight);
        if cpu { vec![gpus, cpus] } else { vec![gpus] }
    };
    let mut queues: Vec<QueueFacts> = Vec::new();
    for parent in 1..4 {
        let below = leaves.iter().filter(|leaf| leaf.parent == parent);
        let quota = below.map(|leaf| leaf.quota).sum();
        queues.push(with(
            queue(&format!("p{parent}"), ""),
            &entries(quota, None, 1),
        ));
    }
    for (at, leaf) in leaves.iter().enumerate() {
        let parent = match leaf.parent {
            0 => String::new(),
            parent => format!("p{parent}"),
        };
        let mut facts = with(
            queue(&format!("leaf{at}"), &parent),
            &entries(leaf.quota, leaf.limit, leaf.weight),
        );
        facts.priority = leaf.priority;
        queues.push(facts);
    }
    queues
}

fn filled(definitions: Vec<QueueFacts>, leaves: &[Leaf], cpu: bool) -> QueueTree {
    let mut tree = tree(definitions);
    tree.capacities(&[(GPU, CAPACITY)]);
    if cpu {
        tree.capacities(&[("cpu", CAPACITY * 100)]);
    }
    for (at, leaf) in leaves.iter().enumerate() {
        let name = format!("leaf{at}");
        tree.want(&name, &[(GPU, leaf.wants.0)]);
        if cpu {
            tree.want(&name, &[("cpu", leaf.wants.1)]);
        }
    }
    tree
}

proptest! {
    #[test]
    fn a_quota_that_is_wanted_is_got(leaves in leaves()) {
        let mut tree = filled(definitions(&leaves, false), &leaves, false);
        for (at, leaf) in leaves.iter().enumerate() {
            let fair = tree.fair(&format!("leaf{at}"), GPU);
            prop_assert!(fair >= leaf.quota.min(leaf.wants.0), "leaf{at}: {fair}");
        }
    }

    #[test]
    fn as_much_of_all_wants_as_fits_in_the_quota_is_got(leaves in leaves()) {
        let mut tree = filled(definitions(&leaves, true), &leaves, true);
        for (at, leaf) in leaves.iter().enumerate() {
            let name = format!("leaf{at}");
            let fair = (tree.fair(&name, GPU), tree.fair(&name, "cpu"));
            let met = fair == leaf.wants;
            // One base unit may be lost at each of the two levels.
            let at_quota = (leaf.wants.0 > 0 && fair.0 + 2 >= leaf.quota)
                || (leaf.wants.1 > 0 && fair.1 + 2 >= leaf.quota * 100);
            prop_assert!(met || at_quota, "{name}: {fair:?}");
        }
    }

    #[test]
    fn nobody_exceeds_a_limit_a_want_a_parent_or_the_capacity(leaves in leaves()) {
        let mut tree = filled(definitions(&leaves, true), &leaves, true);
        for (key, scale) in [(GPU, 1), ("cpu", 100)] {
            let mut below = [0; 4];
            for (at, leaf) in leaves.iter().enumerate() {
                let fair = tree.fair(&format!("leaf{at}"), key);
                let wanted = if key == GPU { leaf.wants.0 } else { leaf.wants.1 };
                prop_assert!(fair <= wanted);
                prop_assert!(leaf.limit.is_none_or(|limit| fair <= limit * scale));
                below[leaf.parent] += fair;
            }
            for (parent, below) in below.iter().enumerate().skip(1) {
                let fair = tree.fair(&format!("p{parent}"), key);
                prop_assert!(fair >= *below);
            }
            let top: Amount = (1..4).map(|p| tree.fair(&format!("p{p}"), key)).sum();
            prop_assert!(below[0] + top <= CAPACITY * scale);
        }
    }

    #[test]
    fn nothing_is_left_that_a_leaf_could_use(leaves in leaves()) {
        let mut tree = filled(definitions(&leaves, false), &leaves, false);
        let shares: Vec<Amount> =
            (0..leaves.len()).map(|at| tree.fair(&format!("leaf{at}"), GPU)).collect();
        let left = CAPACITY - shares.iter().sum::<Amount>();
        // Rounding down loses less than a unit for each leaf and each inner queue.
        let rounding = u64::try_from(leaves.len()).unwrap() + 3;
        let hungry = leaves.iter().zip(&shares).any(|(leaf, &share)| {
            share < leaf.wants.0 && leaf.limit.is_none_or(|limit| share < limit)
        });
        prop_assert!(left <= rounding || !hungry, "{left} left: {shares:?}");
    }

    #[test]
    fn unit_by_unit_the_order_yields_the_fair_shares(leaves in leaves()) {
        let mut tree = filled(definitions(&leaves, false), &leaves, false);
        let unit = tree.demand(&[(GPU, 1)]);
        let ids: Vec<QueueId> = (0..leaves.len()).map(|at| tree.at(&format!("leaf{at}"))).collect();
        let held = |tree: &QueueTree, at: usize| tree.ledger.allocated.row(ids[at])[0];
        let mut left = CAPACITY;
        while left > 0 {
            for (at, leaf) in leaves.iter().enumerate() {
                let more = held(&tree, at) < leaf.wants.0 && tree.room(ids[at], &unit).is_ok();
                tree.set_candidate(LineUp::FIRST, ids[at], Some(unit.clone()).filter(|_| more));
            }
            let Some(leaf) = tree.next_leaf(LineUp::FIRST) else { break };
            tree.charge(leaf, &unit, true);
            tree.sub_requested(leaf, &unit);
            left -= 1;
        }
        for at in 0..leaves.len() {
            let (fair, held) = (tree.fair(&format!("leaf{at}"), GPU), held(&tree, at));
            // At each of the two levels, one unit for the queue in turn and one for rounding.
            prop_assert!(fair.abs_diff(held) <= 4, "leaf{at}: {held} held, {fair} fair");
        }
    }

    #[test]
    fn the_order_in_which_queues_are_applied_does_not_matter(
        (leaves, shuffled) in leaves().prop_flat_map(|leaves| {
            let shuffled = Just(definitions(&leaves, true)).prop_shuffle();
            (Just(leaves), shuffled)
        }),
    ) {
        let mut together = filled(definitions(&leaves, true), &leaves, true);
        let mut one_by_one = QueueTree::new();
        for facts in shuffled {
            one_by_one.apply(facts);
            one_by_one.refresh(5);
        }
        one_by_one.capacities(&[(GPU, CAPACITY), ("cpu", CAPACITY * 100)]);
        for (at, leaf) in leaves.iter().enumerate() {
            let wants = [(GPU, leaf.wants.0), ("cpu", leaf.wants.1)];
            one_by_one.want(&format!("leaf{at}"), &wants);
        }
        for at in 0..leaves.len() {
            for key in [GPU, "cpu"] {
                let name = format!("leaf{at}");
                prop_assert_eq!(together.fair(&name, key), one_by_one.fair(&name, key));
            }
        }
    }

    #[test]
    fn amounts_and_weights_of_any_size_are_divided_within_bounds(
        queues in prop::collection::vec(
            (0usize..4, amount(), amount(), amount(), any::<u16>(), amount(), amount()),
            1..9,
        ),
        capacities in (amount(), amount()),
    ) {
        let mut definitions: Vec<QueueFacts> = (1..4).map(|p| queue(&format!("p{p}"), "")).collect();
        for (at, (parent, gpus, cpus, limit, weight, ..)) in queues.iter().enumerate() {
            let parent = if *parent == 0 { String::new() } else { format!("p{parent}") };
            let entries = [
                entry(GPU, (*gpus).min(*limit), Some(*limit), *weight),
                entry("cpu", *cpus, None, weight.rotate_left(5)),
            ];
            let entries = if at % 3 == 0 { &entries[..1] } else { &entries[..] };
            definitions.push(with(queue(&format!("leaf{at}"), &parent), entries));
        }
        definitions.push(with(queue("names cpu", ""), &[entry("cpu", 0, None, 1)]));
        let mut tree = tree(definitions);
        tree.capacities(&[(GPU, capacities.0), ("cpu", capacities.1)]);
        for (at, (.., gpus, cpus)) in queues.iter().enumerate() {
            tree.want(&format!("leaf{at}"), &[(GPU, *gpus), ("cpu", *cpus)]);
        }
        let mut sums = (0u64, 0u64);
        for (at, (_, _, _, limit, _, gpus, cpus)) in queues.iter().enumerate() {
            let row = tree.fair_row(&format!("leaf{at}"));
            prop_assert!(row[0] <= *gpus.min(limit) && row[1] <= *cpus);
            sums = (sums.0 + row[0], sums.1 + row[1]);
        }
        prop_assert!(sums.0 <= capacities.0 && sums.1 <= capacities.1);
        // A queue that still wants something has met a bound.
        let short = |left: Amount, capacity: Amount| left > 20 + (capacity >> 40);
        let left = (capacities.0 - sums.0, capacities.1 - sums.1);
        for (at, (_, _, _, limit, _, gpus, cpus)) in queues.iter().enumerate() {
            let row = tree.fair_row(&format!("leaf{at}"));
            let met = [(row[0], gpus), (row[1], cpus)]
            .iter()
            .all(|(share, wanted)| share + 1 + (*wanted >> 50) >= **wanted);
            let limited = *gpus > 0 && row[0] + 1 + (limit >> 40) >= *limit;
            let gone = (*gpus > 0 && !short(left.0, capacities.0))
                || (*cpus > 0 && !short(left.1, capacities.1));
            prop_assert!(met || limited || gone, "leaf{at}: {row:?}, {left:?} left");
        }
    }

    #[test]
    fn in_trees_of_any_shape_children_stay_within_their_parents_and_limits(
        queues in prop::collection::vec(node(), 1..14),
    ) {
        let mut tree = tree(any_tree(&queues));
        tree.capacities(&[(GPU, 512), ("cpu", 4_000_000), ("memory", 1 << 44)]);
        let memory = tree.governed_id("memory", None).expect("governed").index();
        for (at, node) in queues.iter().enumerate() {
            if tree.structure.node(tree.at(&format!("q{at}"))).is_leaf() {
                let (gpus, cpus) = (node.wants.0, node.wants.1 * 1000);
                let wants = [(GPU, gpus), ("cpu", cpus), ("memory", node.wants.2 << 30)];
                tree.want(&format!("q{at}"), &wants);
            }
        }
        for (at, node) in queues.iter().enumerate() {
            let name = format!("q{at}");
            let row = tree.fair_row(&name);
            prop_assert!(node.limit.is_none_or(|limit| row[0] <= limit));
            let children = tree.structure.node(tree.at(&name)).children.clone();
            let children: Vec<_> = children.iter().map(|&it| String::from(tree.name(it))).collect();
            for key in [0, memory] {
                let below: Amount = children.iter().map(|it| tree.fair_row(it)[key]).sum();
                prop_assert!(children.is_empty() || below <= row[key]);
            }
        }
    }
}

#[derive(Debug, Clone)]
struct AnyNode {
    parent: prop::sample::Index,
    named: [bool; 2],
    quota: Amount,
    limit: Option<Amount>,
    weight: u16,
    priority: i32,
    wants: (Amount, Amount, Amount),
}

fn node() -> impl Strategy<Value = AnyNode> {
    let wants = (0u64..300, 0u64..3000, 0u64..10_000);
    let limit = prop::option::weighted(0.3, 0u64..300);
    (
        any::<prop::sample::Index>(),
        any::<[bool; 2]>(),
        0u64..100,
        limit,
        0u16..6,
        0i32..3,
        wants,
    )
        .prop_map(
            |(parent, named, quota, limit, weight, priority, wants)| AnyNode {
                parent,
                named,
                quota,
                limit: limit.map(|limit| limit.max(quota)),
                weight,
                priority,
                wants,
            },
        )
}

/// Queues whose parent is the root or any earlier queue.
fn any_tree(nodes: &[AnyNode]) -> Vec<QueueFacts> {
    let mut queues = vec![with(
        queue("names all", ""),
        &[entry("cpu", 0, None, 1), entry("memory", 0, None, 1)],
    )];
    for (at, node) in nodes.iter().enumerate() {
        let parent = match node.parent.index(at + 1) {
            0 => String::new(),
            earlier => format!("q{}", earlier - 1),
        };
        let mut facts = queue(&format!("q{at}"), &parent);
        facts.priority = node.priority;
        facts
            .resources
            .push(entry(GPU, node.quota, node.limit, node.weight));
        if node.named[0] {
            facts
                .resources
                .push(entry("cpu", node.quota * 9000, None, node.weight));
        }
        if node.named[1] {
            facts
                .resources
                .push(entry("memory", node.quota << 34, None, 1));
        }
        queues.push(facts);
    }
    queues
}

/// Amounts of every magnitude.
fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        1 => Just(0),
        9 => (0u32..55, any::<u64>()).prop_map(|(bits, any)| any & ((1 << (bits + 1)) - 1)),
    ]
}
