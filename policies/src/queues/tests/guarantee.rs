use super::*;

fn guaranteed(tree: &mut QueueTree, name: &str, key: &str) -> Amount {
    tree.divide_all();
    let key = tree.demand(&[(key, 1)])[0].0;
    tree.guaranteed(tree.at(name), key)
}

/// Two queues hold their quotas of GPUs, and a sibling whose quota is memory alone wants more of
/// that than is left.
fn with_a_quota_of_memory(quota: Amount) -> QueueTree {
    let mut tree = tree(vec![
        gpus("a", "", quota),
        gpus("b", "", quota),
        with(queue("c", ""), &[entry("memory", 60, None, 1)]),
    ]);
    tree.capacities(&[(GPU, 16), ("memory", 100)]);
    tree.hold("a", &[(GPU, 8), ("memory", 40)]);
    tree.hold("b", &[(GPU, 8), ("memory", 40)]);
    tree.want("b", &[(GPU, 8), ("memory", 40)]);
    tree.want("c", &[("memory", 60)]);
    tree
}

#[test]
fn quotas_that_promise_no_more_than_there_is_hold_where_another_resource_is_gone() {
    let mut tree = with_a_quota_of_memory(8);
    assert_eq!(tree.fair("a", GPU), 4);
    assert_eq!(guaranteed(&mut tree, "a", GPU), 8);
    assert_eq!(guaranteed(&mut tree, "b", GPU), 8);
    assert_eq!(guaranteed(&mut tree, "c", "memory"), 60);
}

#[test]
fn quotas_that_promise_too_much_guarantee_the_fair_share() {
    let mut tree = with_a_quota_of_memory(12);
    assert_eq!(tree.fair("b", GPU), 4);
    assert_eq!(guaranteed(&mut tree, "b", GPU), 4);
}

#[test]
fn below_a_queue_there_is_what_is_guaranteed_to_it() {
    let mut tree = tree(vec![
        gpus("p", "", 8),
        gpus("a", "p", 6),
        gpus("b", "p", 6),
        gpus("q", "", 8),
    ]);
    tree.capacities(&[(GPU, 16)]);
    tree.want("a", &[(GPU, 6)]);
    tree.want("b", &[(GPU, 2)]);
    tree.want("q", &[(GPU, 16)]);
    assert_eq!(guaranteed(&mut tree, "a", GPU), 6);
    tree.want("b", &[(GPU, 4)]);
    assert_eq!(tree.fair("a", GPU), 4);
    assert_eq!(guaranteed(&mut tree, "a", GPU), 4);
}
