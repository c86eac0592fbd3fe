use super::*;
use crate::facts::{Placement, Problem};
use crate::queues::Refreshed;
use crate::status::QueueFault;

fn below(name: &str, parent: &str) -> QueueFacts {
    gpus(name, parent, 0)
}

fn fault(tree: &mut QueueTree, name: &str) -> Option<(QueueFault, Box<str>)> {
    tree.status(tree.at(name)).fault
}

fn check_fault(queues: &[QueueFacts], name: &str, expected: QueueFault, words: &str) {
    let mut tree = tree(queues.to_vec());
    let (fault, message) = fault(&mut tree, name).expect(name);
    assert_eq!(fault, expected, "{name}");
    assert!(message.contains(words), "{name}: {message}");
    for ready in ["parent", "child", "default", "child of default"] {
        assert_eq!(tree.status(tree.at(ready)).fault, None, "{ready}");
    }
}

#[test]
fn a_queue_whose_place_is_wrong_says_why_and_no_other_is_affected() {
    let queues = [
        below("orphan", "nobody"),
        below("orphan child", "orphan"),
        below("orphan grandchild", "orphan child"),
        below("a", "c"),
        below("b", "a"),
        below("c", "b"),
        below("self", "self"),
        below("below the cycle", "b"),
        below("parent", ""),
        below("child", "parent"),
        below("child of default", "default"),
    ];
    let check = |name, expected, words| check_fault(&queues, name, expected, words);
    check("orphan", QueueFault::ParentNotFound, "nobody");
    let cause = "orphan is not Ready: ParentNotFound";
    check("orphan child", QueueFault::ParentNotReady, cause);
    check("orphan grandchild", QueueFault::ParentNotReady, cause);
    check("a", QueueFault::Cycle, "a -> c -> b -> a");
    check("b", QueueFault::Cycle, "b -> a -> c -> b");
    check("self", QueueFault::Cycle, "self -> self");
    check(
        "below the cycle",
        QueueFault::ParentNotReady,
        "b is not Ready: Cycle",
    );
}

#[test]
fn a_queue_whose_fields_make_no_sense_says_which_and_no_other_is_affected() {
    let broken = |name, field: &str| {
        let mut facts = below(name, "");
        facts.problems.push(Problem {
            field: field.into(),
            message: "makes no sense".into(),
        });
        facts
    };
    let twice = [entry("cpu", 1, None, 1), entry("cpu", 2, None, 1)];
    let queues = [
        broken("bad entry", "spec.resources[0].quota"),
        broken("bad field", "spec.placement"),
        with(queue("twice", ""), &twice),
        with(queue("crossed", ""), &[entry(GPU, 5, Some(4), 1)]),
        with(queue("huge", ""), &[entry(GPU, 1 << 55, None, 1)]),
        with(queue("nameless", ""), &[entry("", 1, None, 1)]),
        with(
            queue("no product", ""),
            &[entry("nvidia.com/gpu@", 1, None, 1)],
        ),
        below("parent", ""),
        below("child", "parent"),
        below("child of default", "default"),
    ];
    let check = |name, words| check_fault(&queues, name, QueueFault::InvalidResources, words);
    check("bad entry", "spec.resources[0].quota: makes no sense");
    check("twice", "spec.resources[1]: another entry");
    check("crossed", "limit is below the quota");
    check("huge", "too large");
    check("nameless", "the name is empty");
    check("no product", "the product is empty");
    check_fault(
        &queues,
        "bad field",
        QueueFault::InvalidSpec,
        "spec.placement",
    );
}

#[test]
fn a_long_cycle_and_a_long_chain_are_no_trouble() {
    let count = 3_000;
    let mut queues: Vec<QueueFacts> = (0..count)
        .map(|at| below(&format!("c{at}"), &format!("c{}", (at + 1) % count)))
        .collect();
    let mut tree = tree(queues.clone());
    let (found, message) = fault(&mut tree, "c5").expect("a cycle");
    assert_eq!(found, QueueFault::Cycle);
    assert!(message.len() < 200 && message.ends_with("..."), "{message}");
    queues.pop();
    queues.push(below(&format!("c{}", count - 1), ""));
    tree.replace(queues);
    tree.refresh(6);
    assert_eq!(fault(&mut tree, "c0"), None);
    tree.capacities(&[(GPU, 4)]);
    tree.hold("c0", &[(GPU, 1)]);
    tree.wait("c0", &[(GPU, 1)]);
    assert_eq!(tree.next(), "c0");
}

#[test]
fn readiness_has_a_time_and_comes_back() {
    let since = |tree: &mut QueueTree| tree.status(tree.at("a")).ready_since_ms;
    let mut tree = QueueTree::new();
    tree.apply(below("a", "p"));
    tree.refresh(10);
    assert_eq!(since(&mut tree), 10);
    tree.apply(below("b", ""));
    tree.refresh(20);
    assert_eq!(since(&mut tree), 10);
    tree.apply(below("p", ""));
    tree.refresh(30);
    assert_eq!((since(&mut tree), fault(&mut tree, "a")), (30, None));
    tree.apply(below("default", ""));
    tree.refresh(35);
    assert_eq!(
        tree.status(tree.at("default")).ready_since_ms,
        35,
        "as an object"
    );
    tree.delete("b");
    tree.apply(below("takes the number of b", ""));
    tree.refresh(37);
    let newcomer = tree.at("takes the number of b");
    assert_eq!(tree.status(newcomer).ready_since_ms, 37);
    tree.delete("p");
    tree.refresh(40);
    assert_eq!(since(&mut tree), 40);
    assert!(fault(&mut tree, "a").is_some());
}

#[test]
fn numbers_stay_while_a_queue_exists_and_it_is_told_when_charges_are_gone() {
    let mut tree = tree(vec![below("a", ""), below("b", ""), below("c", "")]);
    let (a, c) = (tree.at("a"), tree.at("c"));
    tree.capacities(&[(GPU, 8)]);
    tree.hold("a", &[(GPU, 2)]);
    let are_gone = |tree: &mut QueueTree, now_ms| tree.refresh(now_ms) == Refreshed::Rebuilt;
    let held = |tree: &mut QueueTree| tree.status(a).allocated.len();

    let mut changed = below("a", "");
    changed.priority = 7;
    changed.generation = 2;
    tree.apply(changed);
    assert!(!are_gone(&mut tree, 6));
    assert_eq!(held(&mut tree), 1);
    assert_eq!(tree.status(a).observed_generation, 2);

    tree.delete("b");
    assert!(!are_gone(&mut tree, 7), "nothing else has changed");
    assert_eq!(held(&mut tree), 1);
    assert_eq!((tree.at("a"), tree.at("c")), (a, c));
    assert_eq!(tree.find("b"), None);

    tree.apply(with(below("c", ""), &[entry("cpu", 1, None, 1)]));
    assert!(are_gone(&mut tree, 8), "cpu is governed now");
    assert_eq!(held(&mut tree), 0);
    assert_eq!(tree.at("c"), c);

    tree.apply(below("c", "a"));
    assert!(
        are_gone(&mut tree, 9),
        "another parent, and cpu is not governed"
    );
    assert_eq!(tree.governed_id("cpu", None), None);
    assert_eq!(tree.at("c"), c);

    assert!(!are_gone(&mut tree, 10));
    // The number of a queue that is gone does no harm.
    tree.replace(Vec::new());
    tree.refresh(11);
    let gpu = tree.demand(&[(GPU, 1)]);
    tree.charge(c, &gpu, true);
    tree.set_candidate(LineUp::FIRST, c, Some(gpu.clone()));
    assert_eq!(tree.next(), "nobody");
    assert_eq!(
        (tree.room(c, &gpu), tree.budget(c, gpu[0].0)),
        (Ok(()), None)
    );
    assert_eq!(tree.status(c), crate::status::QueueStatus::default());
}

#[test]
fn what_a_queue_does_not_say_is_its_parents() {
    let mut parent = below("p", "");
    parent.placement = PlacementChoice {
        gpu: Some(Placement::Spread),
        cpu: Some(Placement::Spread),
    };
    parent.preempt_min_runtime_ms = Some(60);
    parent.reclaim_min_runtime_ms = Some(70);
    let mut child = below("c", "p");
    child.placement.cpu = Some(Placement::Binpack);
    child.reclaim_min_runtime_ms = Some(0);
    let tree = tree(vec![parent, child]);
    let child = tree.at("c");
    assert_eq!(tree.placement(child).gpu, Some(Placement::Spread));
    assert_eq!(tree.placement(child).cpu, Some(Placement::Binpack));
    assert_eq!(tree.structure.node(child).preempt_min_runtime_ms, 60);
    assert_eq!(tree.structure.node(child).reclaim_min_runtime_ms, 0);
    let default = tree.at("default");
    assert_eq!(tree.placement(default), PlacementChoice::default());
    assert_eq!(tree.structure.node(default).preempt_min_runtime_ms, 0);
}

#[test]
fn keys_are_governed_while_a_valid_queue_names_them() {
    let mut broken = with(queue("broken", ""), &[entry("memory", 1, None, 1)]);
    broken.problems.push(Problem {
        field: "spec.resources[0]".into(),
        message: "no".into(),
    });
    let h100 = "nvidia.com/gpu@NVIDIA-H100";
    let tree = tree(vec![
        broken,
        with(queue("a", ""), &[entry(h100, 1, None, 1)]),
    ]);
    let h100_key = tree.governed_id(GPU, Some("NVIDIA-H100")).expect("named");
    assert_eq!(tree.governed_name(h100_key), h100);
    assert!(tree.governed_id(GPU, None).is_some(), "always");
    for (resource, product) in [("memory", None), ("cpu", None), (GPU, Some("A100"))] {
        assert_eq!(
            tree.governed_id(resource, product),
            None,
            "{resource} {product:?}"
        );
    }
}

#[test]
fn ids_come_parents_first_and_siblings_by_name() {
    let tree = tree(vec![
        below("z", ""),
        below("b", "z"),
        below("a", "z"),
        below("c", "a"),
        below("orphan", "nobody"),
    ]);
    let ids = tree.ids();
    let names: Vec<&str> = ids.iter().map(|id| tree.name(*id)).collect();
    assert_eq!(names, ["default", "orphan", "z", "a", "c", "b"]);
    let parents: Vec<_> = ids.iter().map(|id| tree.parent_name(*id)).collect();
    let expected = [None, Some("nobody"), None, Some("z"), Some("a"), Some("z")];
    assert_eq!(parents, expected);
    let defined: Vec<bool> = ids.iter().map(|id| tree.object(*id).is_some()).collect();
    assert_eq!(defined, [false, true, true, true, true, true]);
}

#[test]
fn what_a_queue_outside_the_hierarchy_holds_is_on_the_roots_books() {
    let mut tree = tree(vec![below("orphan", "nobody"), below("a", "")]);
    tree.capacities(&[(GPU, 8)]);
    tree.hold("orphan", &[(GPU, 6)]);
    tree.want("a", &[(GPU, 6)]);
    assert_eq!(tree.fair("a", GPU) + tree.fair("orphan", GPU), 8);
    assert_eq!(tree.ledger.allocated.row(QueueId::ROOT)[0], 6);
}
