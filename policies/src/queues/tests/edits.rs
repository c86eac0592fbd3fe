//! A tree whose queues are changed one by one is equal to a tree that is built at once.

use super::*;
use crate::facts::{PastUse, Placement};
use crate::queues::Refreshed;
use fastrand::Rng;
use std::collections::BTreeMap;

const KEYS: [&str; 3] = [GPU, "cpu", "nvidia.com/gpu@H100"];

fn any_queue(random: &mut Rng, name: &str, parent: &str) -> QueueFacts {
    let mut facts = queue(name, parent);
    for key in KEYS {
        if random.u32(0..3) == 0 {
            let quota = random.u64(0..5);
            let limit = random.bool().then(|| quota + random.u64(0..9));
            facts
                .resources
                .push(entry(key, quota, limit, random.u16(0..4)));
        }
    }
    if random.u32(0..12) == 0 {
        facts.resources.push(entry(GPU, 5, Some(4), 1));
    }
    facts.priority = random.i32(0..2);
    facts.created_ms = random.u64(0..3);
    facts.closed = random.u32(0..4) == 0;
    facts.preempt_min_runtime_ms = random.bool().then(|| random.u64(0..9));
    facts.placement.gpu = random.bool().then_some(Placement::Spread);
    facts
}

/// Everything about a queue that users see or that its gangs depend on.
fn describe(tree: &QueueTree, name: &str) -> String {
    let node = tree.structure.node(tree.at(name));
    let names = |ids: &[QueueId]| -> Vec<String> {
        ids.iter().map(|&id| String::from(tree.name(id))).collect()
    };
    let mut terms: Vec<_> = node
        .terms
        .iter()
        .map(|(key, it)| {
            let numbers = (it.quota, it.limit, it.weight, it.written, it.reach);
            (tree.governed_name(*key), numbers)
        })
        .collect();
    terms.sort_unstable();
    format!(
        "{} {:?} {:?} {:?} {} {:?} {} {:?} {:?} {} {} {terms:?}",
        node.defined,
        names(node.parent.as_slice()),
        names(&node.children),
        node.depth,
        node.created_ms,
        node.priority,
        node.exists,
        node.fault,
        node.placement,
        node.preempt_min_runtime_ms,
        node.reclaim_min_runtime_ms,
    )
}

/// What each leaf holds, by key.
type Charges = BTreeMap<String, [u64; 3]>;

fn demand(tree: &QueueTree, amounts: [u64; 3]) -> Demand {
    let keys = KEYS.map(|key| match key.split_once('@') {
        Some((resource, model)) => tree.governed_id(resource, Some(model)),
        None => tree.governed_id(key, None),
    });
    let amounts = keys.into_iter().zip(amounts);
    let mut demand: Demand = amounts
        .filter(|(_, amount)| *amount > 0)
        .filter_map(|(key, amount)| Some((key?, amount)))
        .collect();
    demand.sort_unstable();
    demand
}

fn enter_all(tree: &mut QueueTree, charges: &Charges) {
    for (name, amounts) in charges {
        if let Some(id) = tree.find(name) {
            let demand = demand(tree, *amounts);
            tree.charge(id, &demand, true);
            tree.set_candidate(LineUp::FIRST, id, Some(demand));
        }
    }
}

/// The leaves in the order in which they are served, if each gang is refused.
fn ranking(tree: &mut QueueTree, charges: &Charges) -> Vec<String> {
    let mut ranking = Vec::new();
    while let Some(leaf) = tree.next_leaf(LineUp::FIRST) {
        ranking.push(String::from(tree.name(leaf)));
        tree.set_candidate(LineUp::FIRST, leaf, None);
    }
    for name in &ranking {
        let demand = demand(tree, charges[name]);
        tree.set_candidate(LineUp::FIRST, tree.at(name), Some(demand));
    }
    ranking
}

/// A tree without queues, in which past use counts or not.
fn empty(past: bool) -> QueueTree {
    let mut tree = QueueTree::new();
    tree.set_half_life(past.then_some(3_600_000));
    tree.count_use(0);
    tree
}

/// The past use in the status of a queue of this name: none, or a random one.
fn past_use(name: &str) -> Option<PastUse> {
    let seed = name.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte));
    let mut random = Rng::with_seed(seed);
    random.bool().then(|| PastUse {
        at_ms: 0,
        averages: KEYS
            .map(|key| (key.into(), random.u64(1..9_000)))
            .into_iter()
            .collect(),
    })
}

/// Compares a tree with one that is built at once from the definitions.
fn compare(
    tree: &mut QueueTree,
    definitions: &BTreeMap<String, QueueFacts>,
    charges: &Charges,
    seed: u64,
    step: u32,
) {
    let mut fresh = empty(tree.next_use_ms().is_some());
    fresh.replace(definitions.values().cloned().collect());
    fresh.refresh(5);
    fresh.capacities(&[(GPU, 20)]);
    enter_all(&mut fresh, charges);
    for name in definitions.keys().map(String::as_str).chain(["default"]) {
        let what = format!("seed {seed}, step {step}: {name}");
        assert_eq!(describe(tree, name), describe(&fresh, name), "{what}");
        let held = |tree: &QueueTree| -> Vec<(String, Amount)> {
            let held = tree.allocated(tree.at(name));
            let mut held: Vec<_> = held
                .map(|(key, amount)| (String::from(tree.governed_name(key)), amount))
                .collect();
            held.sort();
            held
        };
        assert_eq!(held(tree), held(&fresh), "{what}");
    }
    assert_eq!(
        ranking(tree, charges),
        ranking(&mut fresh, charges),
        "seed {seed}, step {step}: the order"
    );
}

fn check(seed: u64) -> u32 {
    let mut random = Rng::with_seed(seed);
    let past = seed % 2 == 1;
    let mut tree = empty(past);
    let mut definitions: BTreeMap<String, QueueFacts> = BTreeMap::new();
    if past {
        // Past use of a key that no queue names is forgotten, so one queue always names all keys.
        let facts = with(queue("p", ""), &KEYS.map(|key| entry(key, 0, None, 1)));
        definitions.insert("p".into(), facts.clone());
        tree.apply(facts);
    }
    let mut charges = Charges::new();
    let mut edits = 0;
    for step in 0..60 {
        for _ in 0..random.usize(1..3) {
            let name = format!("q{}", random.u32(0..12));
            if random.u32(0..4) == 0 {
                tree.delete(&name);
                definitions.remove(&name);
                continue;
            }
            let parent = match definitions.get(&name).filter(|_| random.u32(0..5) > 0) {
                Some(facts) => String::from(facts.parent.as_deref().unwrap_or("")),
                None if random.bool() => String::new(),
                None => format!("q{}", random.u32(0..12)),
            };
            let mut facts = any_queue(&mut random, &name, &parent);
            facts.past_use = past_use(&name).filter(|_| past);
            definitions.insert(name, facts.clone());
            tree.apply(facts);
        }
        for leaf in tree.leaving() {
            let name = String::from(tree.name(leaf));
            if let Some(amounts) = charges.remove(&name) {
                let demand = demand(&tree, amounts);
                tree.release(leaf, &demand, true);
            }
        }
        let refreshed = tree.refresh(9);
        charges.retain(|name, _| definitions.contains_key(name));
        match refreshed {
            Refreshed::Unchanged => {}
            Refreshed::Edited { .. } => edits += 1,
            Refreshed::Rebuilt => {
                tree.capacities(&[(GPU, 20)]);
                enter_all(&mut tree, &charges);
            }
        }
        for (name, amounts) in &charges {
            let demand = demand(&tree, *amounts);
            tree.set_candidate(LineUp::FIRST, tree.at(name), Some(demand));
        }
        if let Some(name) = definitions
            .keys()
            .nth(random.usize(0..definitions.len() + 1))
        {
            let before = charges.insert(name.clone(), [random.u64(1..5), random.u64(0..5), 0]);
            let id = tree.at(name);
            let before = demand(&tree, before.unwrap_or_default());
            tree.release(id, &before, true);
            let after = demand(&tree, charges[name]);
            tree.charge(id, &after, true);
            tree.set_candidate(LineUp::FIRST, id, Some(after));
        }
        compare(&mut tree, &definitions, &charges, seed, step);
    }
    edits
}

#[test]
fn edited_queues_are_as_if_they_had_been_built_anew() {
    let edits: u32 = (0..150).map(check).sum();
    assert!(edits > 2_000, "{edits} edits");
}

#[test]
fn only_what_an_edit_concerns_is_named() {
    let mut tree = tree(vec![
        gpus("p", "", 4),
        gpus("a", "p", 2),
        gpus("b", "p", 2),
        gpus("q", "", 0),
    ]);
    let mut check = |facts: QueueFacts, rules: &[&str], bounds: &[&str]| {
        tree.apply(facts);
        let refreshed = tree.refresh(9);
        let ids = |names: &[&str]| names.iter().map(|name| tree.at(name)).collect();
        let expected = Refreshed::Edited {
            rules: ids(rules),
            bounds: ids(bounds),
        };
        assert_eq!(refreshed, expected);
    };
    let weight = |weight| with(queue("a", "p"), &[entry(GPU, 2, None, weight)]);
    check(weight(5), &[], &[]);
    check(gpus("a", "p", 3), &[], &["a"]);
    let mut closed = gpus("p", "", 4);
    closed.closed = true;
    check(closed, &["p", "a", "b"], &[]);
    check(gpus("c", "q", 0), &["c", "q"], &[]);
    tree.delete("c");
    assert_eq!(tree.leaving(), [tree.at("c")]);
    tree.delete("q");
    assert_eq!(tree.leaving(), [tree.at("c"), tree.at("q")]);
}
