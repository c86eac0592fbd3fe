//! Fair shares of GPUs are cut to whole cards, until a pod holds a part of a card, a quota promises
//! one, or the cluster lacks one; then to thousandths of a card.

use super::*;

fn three_that_want(amount: Amount) -> QueueTree {
    let names = ["a", "b", "c"];
    let mut tree = tree(names.map(|name| queue(name, "")).to_vec());
    tree.capacities(&[(GPU, 10 * CARD)]);
    for name in names {
        tree.want(name, &[(GPU, amount)]);
    }
    tree
}

#[test]
fn shares_of_whole_cards_are_whole_until_somebody_asks_for_a_part() {
    let mut tree = three_that_want(8 * CARD);
    assert_eq!(tree.fair("a", GPU), 3 * CARD);
    tree.hold("b", &[(GPU, CARD / 2)]);
    assert_eq!(tree.fair("a", GPU), 3_333);
    let part = tree.demand(&[(GPU, CARD / 2)]);
    tree.release(tree.at("b"), &part, true);
    tree.sub_wanted(tree.at("b"), &part);
    assert_eq!(tree.fair("a", GPU), 3 * CARD);
}

#[test]
fn a_part_that_is_promised_or_missing_divides_cards_too() {
    for (quota, capacity, expected) in [
        (CARD, 10 * CARD, 3 * CARD),
        (CARD / 2, 10 * CARD, 3_333),
        (CARD, 10 * CARD - 100, 3_300),
    ] {
        let mut tree = three_that_want(8 * CARD);
        tree.apply(gpus("a", "", quota));
        tree.refresh(6);
        tree.capacities(&[(GPU, capacity)]);
        assert_eq!(tree.fair("b", GPU), expected, "{quota} {capacity}");
    }
}

#[test]
fn what_was_cut_otherwise_is_divided_anew_without_any_other_change() {
    let mut tree = three_that_want(8 * CARD);
    assert_eq!(tree.fair("a", GPU), 3 * CARD);
    let part = tree.demand(&[(GPU, CARD / 2)]);
    tree.charge(tree.at("b"), &part, true);
    assert_eq!(tree.fair("a", GPU), 3_333);
}

#[test]
fn averages_are_in_thousandths_of_a_card() {
    let mut tree = QueueTree::new();
    tree.set_half_life(Some(60_000));
    tree.replace(vec![gpus("a", "", 0)]);
    tree.refresh(5);
    tree.count_use(0);
    tree.hold("a", &[(GPU, 3 * CARD / 2)]);
    tree.count_use(60_000);
    let past = tree.status(tree.at("a")).past_use.expect("past use");
    assert_eq!(past.averages, [(GPU.into(), 750)]);
}
