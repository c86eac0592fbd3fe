mod laws;

use super::*;

fn check(
    what: &str,
    queues: Vec<QueueFacts>,
    capacities: &[(&str, Amount)],
    wants: &[(&str, &[(&str, Amount)])],
    expected: &[(&str, &[(&str, Amount)])],
) {
    let mut tree = tree(queues);
    tree.capacities(capacities);
    for (name, amounts) in wants {
        tree.want(name, amounts);
    }
    for (name, amounts) in expected {
        for (key, amount) in *amounts {
            assert_eq!(tree.fair(name, key), *amount, "{what}: {name} {key}");
        }
    }
}

#[test]
fn one_resource_is_divided_by_quota_priority_and_weight() {
    let a = |quota, weight, priority| {
        let mut facts = with(queue("a", ""), &[entry(GPU, quota, None, weight)]);
        facts.priority = priority;
        facts
    };
    let one = |what, queues, wants_a: Amount, wants_b: Amount, a: Amount, b: Amount| {
        check(
            what,
            queues,
            &[(GPU, 10)],
            &[("a", &[(GPU, wants_a)]), ("b", &[(GPU, wants_b)])],
            &[("a", &[(GPU, a)]), ("b", &[(GPU, b)])],
        );
    };
    let b = |quota| gpus("b", "", quota);
    one("equal", vec![a(0, 1, 0), b(0)], 20, 20, 5, 5);
    one("little is wanted", vec![a(0, 1, 0), b(0)], 2, 20, 2, 8);
    one("weight 3", vec![a(0, 3, 0), b(0)], 20, 20, 7, 2);
    one("weight 0", vec![a(0, 0, 0), b(0)], 20, 7, 3, 7);
    one("priority", vec![a(0, 1, 1), b(0)], 7, 20, 7, 3);
    one("quota first", vec![a(0, 1, 9), b(4)], 20, 20, 6, 4);
    one(
        "quota counts as share",
        vec![a(0, 1, 0), b(4)],
        20,
        20,
        5,
        5,
    );
    one("over-committed", vec![a(6, 1, 0), b(9)], 20, 20, 4, 6);
    one("more than there is", vec![a(30, 1, 0), b(10)], 40, 40, 5, 5);
    one(
        "a tenth is not cut to nothing",
        vec![a(0, 9, 0), b(0)],
        20,
        20,
        9,
        1,
    );
}

#[test]
fn over_committed_quotas_weigh_no_more_than_what_the_parent_has() {
    check(
        "two levels",
        vec![
            gpus("p", "", 0),
            gpus("a", "p", 20),
            gpus("b", "p", 4),
            gpus("q", "", 0),
        ],
        &[(GPU, 20)],
        &[
            ("a", &[(GPU, 50)]),
            ("b", &[(GPU, 50)]),
            ("q", &[(GPU, 50)]),
        ],
        &[
            ("p", &[(GPU, 10)]),
            ("q", &[(GPU, 10)]),
            // The 10 of p are divided as 10 : 4, not as 20 : 4.
            ("a", &[(GPU, 7)]),
            ("b", &[(GPU, 2)]),
        ],
    );
}

#[test]
fn dominant_shares_are_equalised_across_resources() {
    let both = |name, parent| both(name, parent, (0, 0), 1);
    check(
        "the example of the DRF paper: 9 CPUs and 18 GB as 9 and 18",
        vec![both("a", ""), both("b", "")],
        &[("cpu", 9000), (GPU, 18_000)],
        &[
            ("a", &[("cpu", 100_000), (GPU, 400_000)]),
            ("b", &[("cpu", 300_000), (GPU, 100_000)]),
        ],
        &[
            ("a", &[("cpu", 3000), (GPU, 12_000)]),
            ("b", &[("cpu", 6000), (GPU, 2000)]),
        ],
    );
    check(
        "who wants only what nobody else wants gets all of it",
        vec![
            both("p", ""),
            both("p1", "p"),
            both("p2", "p"),
            both("q", ""),
        ],
        &[("cpu", 100), (GPU, 100)],
        &[
            ("p1", &[("cpu", 1000)]),
            ("p2", &[(GPU, 1000)]),
            ("q", &[("cpu", 1000)]),
        ],
        &[
            ("p1", &[("cpu", 50)]),
            ("p2", &[(GPU, 100)]),
            ("q", &[("cpu", 50)]),
            ("p", &[("cpu", 50), (GPU, 100)]),
        ],
    );
}

fn both(name: &str, parent: &str, quota: (Amount, Amount), weight: u16) -> QueueFacts {
    let entries = [
        entry(GPU, quota.0, None, weight),
        entry("cpu", quota.1, None, weight),
    ];
    with(queue(name, parent), &entries)
}

#[test]
fn an_inner_queue_is_held_back_by_another_resource_once_that_is_its_dominant_one() {
    // p1 has 20 GPUs by quota. p2 asks for 2 CPUs with each GPU: once p has 40 of each, CPUs become
    // its dominant resource.
    check(
        "20 + t GPUs and 2 t CPUs",
        vec![
            both("p", "", (20, 0), 1),
            both("p1", "p", (20, 0), 1),
            both("p2", "p", (0, 0), 1),
            both("q", "", (0, 0), 1),
        ],
        &[(GPU, 140), ("cpu", 140)],
        &[
            ("p1", &[(GPU, 20)]),
            ("p2", &[(GPU, 100), ("cpu", 200)]),
            ("q", &[(GPU, 100)]),
        ],
        &[
            ("p1", &[(GPU, 20)]),
            ("p2", &[(GPU, 40), ("cpu", 80)]),
            ("q", &[(GPU, 80)]),
        ],
    );
}

#[test]
fn quotas_that_end_at_the_same_moment_end_from_the_leaves_up() {
    // p and p2 use up their GPU quotas at one moment, whatever rounding says. p1, which is next in
    // p, asks for CPUs alone, and p has quota of CPUs left. So p is served on, before the queue
    // without any quota.
    let urgent = |mut facts: QueueFacts| {
        facts.priority = 1;
        facts
    };
    for quota in 1..60 {
        check(
            "p has quota left for what it serves next",
            vec![
                both("p", "", (quota, 700), 1),
                urgent(both("p1", "p", (0, 0), 0)),
                both("p2", "p", (quota, 700), 0),
                urgent(both("a", "", (0, 0), 0)),
            ],
            &[(GPU, 100), ("cpu", 1000)],
            &[
                ("p1", &[("cpu", 578)]),
                ("p2", &[(GPU, 61), ("cpu", 61)]),
                ("a", &[("cpu", 6000)]),
            ],
            &[
                ("p1", &[("cpu", 578)]),
                ("p2", &[(GPU, quota), ("cpu", quota)]),
                ("a", &[("cpu", 1000 - 578 - quota)]),
            ],
        );
    }
}

#[test]
fn limits_hold_on_every_level_and_what_is_left_goes_to_others() {
    let limited = |name, parent, limit| with(queue(name, parent), &[entry(GPU, 0, Some(limit), 1)]);
    check(
        "limits of a leaf and of an inner queue",
        vec![
            limited("p", "", 6),
            limited("p1", "p", 1),
            queue("p2", "p"),
            queue("q", ""),
        ],
        &[(GPU, 20)],
        &[
            ("p1", &[(GPU, 50)]),
            ("p2", &[(GPU, 50)]),
            ("q", &[(GPU, 50)]),
        ],
        &[
            ("p1", &[(GPU, 1)]),
            ("p2", &[(GPU, 5)]),
            ("p", &[(GPU, 6)]),
            ("q", &[(GPU, 14)]),
        ],
    );
}

#[test]
fn what_is_held_counts_as_wanted() {
    let mut tree = tree(vec![queue("a", ""), queue("b", "")]);
    tree.capacities(&[(GPU, 10)]);
    tree.hold("a", &[(GPU, 8)]);
    tree.want("b", &[(GPU, 8)]);
    assert_eq!((tree.fair("a", GPU), tree.fair("b", GPU)), (5, 5));
    let status = tree.status(tree.at("a"));
    assert_eq!(*status.allocated, [(GPU.into(), 8)]);
    assert_eq!(*status.requested, [(GPU.into(), 8)]);
    assert_eq!(status.dominant_share_millionths, 800_000);
    tree.capacities(&[(GPU, 4)]);
    assert_eq!((tree.fair("a", GPU), tree.fair("b", GPU)), (2, 2));
}

#[test]
fn a_model_that_is_gone_stops_only_those_who_need_it() {
    const H100: &str = "nvidia.com/gpu@H100";
    const A100: &str = "nvidia.com/gpu@A100";
    let team = |name| {
        let entries = [GPU, H100, A100].map(|key| entry(key, 0, None, 1));
        with(queue(name, ""), &entries)
    };
    let there = [(GPU, 12), (H100, 4), (A100, 8)];
    check(
        "8 of the other model are wanted by nobody else",
        vec![team("a"), team("b")],
        &there,
        &[
            ("a", &[(GPU, 12), (H100, 12)]),
            ("a", &[(GPU, 24)]),
            ("b", &[]),
        ],
        &[("a", &[(GPU, 12), (H100, 4)])],
    );
    check(
        "both models are wanted",
        vec![team("a")],
        &there,
        &[
            ("a", &[(GPU, 16), (H100, 16)]),
            ("a", &[(GPU, 6), (A100, 6)]),
        ],
        &[("a", &[(GPU, 10), (H100, 4), (A100, 6)])],
    );
    check(
        "others share what is left of the other model",
        vec![team("a"), team("b")],
        &there,
        &[
            ("a", &[(GPU, 40), (H100, 40)]),
            ("a", &[(GPU, 40), (A100, 40)]),
            ("b", &[(GPU, 40), (A100, 40)]),
        ],
        &[
            ("a", &[(GPU, 6), (H100, 4), (A100, 2)]),
            ("b", &[(GPU, 5), (A100, 5)]),
        ],
    );
    check(
        "a limit on a model stops no others",
        vec![
            with(
                queue("a", ""),
                &[entry(GPU, 0, None, 1), entry(H100, 0, Some(1), 1)],
            ),
            team("b"),
        ],
        &there,
        &[("a", &[(GPU, 9), (H100, 9)]), ("a", &[(GPU, 9)])],
        &[("a", &[(GPU, 10), (H100, 1)])],
    );
}
