//! Gangs with sub-groups: minima at every level, domains inside domains.

use gpu_batch_policies::command::EvictionCause;
use gpu_batch_policies::facts::PodGroupFacts;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::status::Phase;
use gpu_batch_testing::{Sketch, World, gang, inner, leaf, names, node, pod, queue, topology};

/// Two racks of two nodes with 8 GPUs each; the first rack has two NVLink domains.
fn racks() -> World {
    let mut world = World::new();
    world.apply(topology("default", "zone rack nvlink"));
    for (name, rack, nvlink) in [
        ("n1", "r1", "d1"),
        ("n2", "r1", "d2"),
        ("n3", "r2", "d1"),
        ("n4", "r2", "d1"),
    ] {
        let node = node(name, 8).label("zone", "z1").label("rack", rack);
        world.apply(node.label("nvlink", nvlink));
    }
    world
}

fn pods(world: &mut World, leaf: &str, count: usize, gpus: u64) {
    let names = names(&format!("{leaf}-"), count);
    world.apply(pod(&names, gpus).of_leaf("g", leaf));
}

fn nodes(world: &World, leaf: &str, count: usize) -> Vec<String> {
    let mut nodes = world.nodes_of(&names(&format!("{leaf}-"), count));
    nodes.dedup();
    nodes
}

fn roles() -> Sketch<PodGroupFacts> {
    gang("g", 1).sub_groups([leaf("prefill", "", 2), leaf("decode", "", 1)])
}

#[test]
fn every_role_counts_its_own_members() {
    let mut world = racks();
    world.apply(roles());
    pods(&mut world, "prefill", 3, 1);
    world.settle();
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("g"), Some(Reason::WaitingForMembers));
    assert_eq!(
        world.message("g"),
        "0 of at least 1 members of sub-group decode exist"
    );
    pods(&mut world, "decode", 1, 1);
    world.settle();
    // The third of prefill is surplus.
    assert_eq!(world.binds, 4);
    assert_eq!(world.phase("g"), Phase::Running);
    assert_eq!(world.gang("g").status.members.expected, 3);
}

#[test]
fn roles_start_together_or_not_at_all() {
    let mut world = World::new();
    world.apply((node("n1", 4), roles()));
    pods(&mut world, "prefill", 2, 2);
    pods(&mut world, "decode", 1, 2);
    world.settle();
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
    world.then(node("n2", 2));
    assert_eq!(world.binds, 3);
}

#[test]
fn some_of_the_slices_are_enough_and_the_others_follow_whole() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    let slices = leaf("a b c", "", 4);
    world.apply(gang("g", 1).sub_groups(slices).at_least(2));
    for slice in ["a", "b", "c"] {
        pods(&mut world, slice, 4, 1);
    }
    world.settle();
    assert_eq!(world.binds, 8);
    assert_eq!(world.phase("g"), Phase::Running);
    // Three more: too few for a slice.
    world.then(node("n2", 3));
    assert_eq!(world.binds, 8);
    world.then(node("n3", 1));
    assert_eq!(world.binds, 12);
}

#[test]
fn room_for_members_of_any_shape_wakes_a_gang_that_may_begin_with_them() {
    let mut world = World::of((
        node("n1", 4),
        pod("other-1 other-2", 2).on("n1"),
        gang("g", 1).sub_groups([leaf("a", "", 1)]),
        pod("large", 4).of_leaf("g", "a"),
        pod("small", 2).of_leaf("g", "a"),
    ));
    assert_eq!(world.binds, 0);
    world.delete("other-1");
    world.settle();
    assert!(world.is_placed("small"));
}

#[test]
fn a_slice_that_lacks_members_does_not_keep_the_others_waiting() {
    let mut world = racks();
    let slices = leaf("a b c", "", 2);
    world.apply(gang("g", 1).sub_groups(slices).at_least(2));
    pods(&mut world, "a", 1, 1);
    pods(&mut world, "b", 2, 1);
    pods(&mut world, "c", 2, 1);
    world.settle();
    assert_eq!(world.binds, 4);
    assert!(!world.is_placed("a-0"));
}

#[test]
fn each_slice_is_in_a_domain_of_its_own_inside_the_domain_of_the_gang() {
    let mut world = racks();
    let slices = leaf("a b", "", 2).required("nvlink");
    world.apply(gang("g", 1).required("rack").sub_groups(slices));
    // A slice of 2 x 8 fits into the second rack alone, which has no room for two.
    pods(&mut world, "a", 2, 4);
    pods(&mut world, "b", 2, 4);
    world.settle();
    assert_eq!(world.binds, 4);
    let (a, b) = (nodes(&world, "a", 2), nodes(&world, "b", 2));
    assert_eq!((a.len(), b.len()), (1, 1));
    let rack = |nodes: &[String]| matches!(&*nodes[0], "n1" | "n2");
    assert_eq!(rack(&a), rack(&b));
}

#[test]
fn a_first_choice_of_domains_that_leads_nowhere_is_taken_back() {
    let mut world = World::new();
    world.apply(topology("default", "rack"));
    // The small slice fits tightest where the large one must go.
    world.apply((
        node("n1", 3).label("rack", "r1"),
        node("n2", 4).label("rack", "r2"),
        pod("other", 1).on("n2"),
        node("n3", 2).label("rack", "r3"),
        gang("g", 1).sub_groups([
            leaf("small", "", 1).required("rack"),
            leaf("middle", "", 1).required("rack"),
            leaf("large", "", 3).required("rack"),
        ]),
    ));
    pods(&mut world, "small", 1, 2);
    pods(&mut world, "middle", 1, 3);
    pods(&mut world, "large", 3, 1);
    world.settle();
    assert_eq!(world.binds, 5);
}

#[test]
fn a_slice_that_fits_nowhere_alone_is_named() {
    let mut world = racks();
    world.apply(gang("g", 1).sub_groups([
        leaf("ring", "", 3).required("nvlink"),
        leaf("router", "", 1),
    ]));
    pods(&mut world, "ring", 3, 8);
    pods(&mut world, "router", 1, 0);
    world.settle();
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
    let message = world.message("g");
    assert!(
        message.starts_with("sub-group ring: 3 members with 8 nvidia.com/gpu each"),
        "{message}"
    );
    assert!(message.contains("in one nvlink"), "{message}");
    world.then(
        node("n5", 8)
            .label("zone", "z1")
            .label("rack", "r2")
            .label("nvlink", "d1"),
    );
    assert_eq!(world.binds, 4);
}

#[test]
fn what_fits_apart_and_not_together_is_proved() {
    let mut world = racks();
    let slices = leaf("a b c d", "", 2).required("rack");
    world.apply(gang("g", 1).sub_groups(slices));
    for slice in ["a", "b", "c", "d"] {
        pods(&mut world, slice, 2, 6);
    }
    world.settle();
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
}

#[test]
fn a_preferred_domain_of_a_slice_may_be_left() {
    let mut world = racks();
    world.apply(gang("g", 1).sub_groups([leaf("a", "", 2).preferred("nvlink")]));
    pods(&mut world, "a", 2, 8);
    world.settle();
    assert_eq!(nodes(&world, "a", 2), ["n3", "n4"]);
    let mut world = racks();
    world.apply(gang("g", 1).sub_groups([leaf("a", "", 3).preferred("nvlink")]));
    pods(&mut world, "a", 3, 8);
    world.settle();
    assert_eq!(world.binds, 3);
}

#[test]
fn two_topologies_hold_at_once() {
    let mut world = World::new();
    world.apply((topology("default", "rack"), topology("power", "feed")));
    for (name, rack, feed) in [
        ("n1", "r1", "f1"),
        ("n2", "r1", "f2"),
        ("n3", "r2", "f2"),
        ("n4", "r2", "f2"),
    ] {
        world.apply(node(name, 8).label("rack", rack).label("feed", feed));
    }
    world.apply(
        gang("g", 1)
            .required("rack")
            .sub_groups([leaf("a", "", 2).required("feed").in_topology("power")]),
    );
    pods(&mut world, "a", 2, 8);
    world.settle();
    assert_eq!(nodes(&world, "a", 2), ["n3", "n4"]);
}

#[test]
fn replacements_return_to_the_domain_of_their_slice() {
    let mut world = racks();
    let slices = leaf("a b", "", 2).required("rack");
    world.apply(gang("g", 1).sub_groups(slices));
    pods(&mut world, "a", 2, 4);
    pods(&mut world, "b", 2, 4);
    world.settle();
    assert_eq!(world.binds, 4);
    let before = nodes(&world, "a", 2);
    world.delete("a-1");
    world.settle();
    world.then(pod("a-1", 4).of_leaf("g", "a").late());
    assert_eq!(world.binds, 5);
    let rack = |node: &str| matches!(node, "n1" | "n2");
    for node in nodes(&world, "a", 2) {
        assert_eq!(rack(&node), rack(&before[0]));
    }
}

#[test]
fn a_gang_whose_role_stays_below_its_minimum_is_evicted_whole() {
    let mut world = racks();
    world.apply(roles().grace(5_000));
    pods(&mut world, "prefill", 4, 1);
    pods(&mut world, "decode", 1, 1);
    world.settle();
    assert_eq!(world.binds, 5);
    // There are more members than the sum of all minima, and decode has none.
    world.delete("decode-0");
    world.settle();
    let staleness = world.gang("g").status.staleness;
    assert!(staleness.is_some_and(|it| it.stale));
    world.later(4_999);
    assert_eq!(world.evictions, 0);
    world.later(1);
    assert_eq!(world.evictions, 4);
    assert_eq!(world.cause, Some(EvictionCause::Stale));
}

#[test]
fn a_gang_that_keeps_enough_slices_is_not_stale() {
    let mut world = racks();
    let slices = leaf("a b c", "", 2);
    let group = gang("g", 1).sub_groups(slices).at_least(2);
    world.apply(group.grace(1_000));
    for slice in ["a", "b", "c"] {
        pods(&mut world, slice, 2, 1);
    }
    world.settle();
    assert_eq!(world.binds, 6);
    world.delete("a-0");
    world.settle();
    world.later(10_000);
    assert_eq!(world.evictions, 0);
    assert_eq!(world.phase("g"), Phase::Running);
    world.delete("b-0");
    world.settle();
    world.later(1_000);
    assert_eq!(world.evictions, 4);
}

#[test]
fn a_part_of_a_tree_that_was_never_complete_is_unwound() {
    let mut world = World::new();
    world.apply((node("n1", 8), roles()));
    for number in 0..3 {
        let name = format!("prefill-{number}");
        world.apply(pod(&name, 1).of_leaf("g", "prefill").on("n1"));
    }
    // It has waited since before the others were bound, and fits nowhere.
    world.then(pod("decode-0", 9).of_leaf("g", "decode"));
    world.later(2_000);
    assert_eq!(world.evictions, 3);
    assert_eq!(world.cause, Some(EvictionCause::Unwind));
}

#[test]
fn pods_without_a_leaf_wait_and_say_why() {
    let mut world = racks();
    world.then((
        gang("g", 1).sub_groups([inner("slices", ""), leaf("a", "slices", 1)]),
        pod("x", 1).of("g"),
    ));
    assert_eq!(world.reason("g"), Some(Reason::SubGroupNotFound));
    assert!(
        world
            .message("g")
            .contains("label gpu-batch.io/subgroup is missing")
    );
    world.delete("x");
    world.then(pod("y", 1).of_leaf("g", "slices"));
    assert_eq!(world.reason("g"), Some(Reason::SubGroupNotFound));
    assert!(world.message("g").contains("pods belong to a leaf"));
    // Those that are right do not wait for them.
    pods(&mut world, "a", 1, 1);
    world.settle();
    assert_eq!(world.binds, 1);
}

#[test]
fn contradictions_are_told_and_nothing_else_is_disturbed() {
    let mut world = racks();
    let check = |world: &mut World, group: Sketch<PodGroupFacts>, reason: Reason, says: &str| {
        world.then(group);
        assert_eq!(world.reason("g"), Some(reason));
        let message = world.message("g");
        assert!(message.contains(says), "{message}");
        assert_eq!(world.binds, 0);
    };
    pods(&mut world, "a", 2, 1);
    let wide = gang("g", 1).required("nvlink");
    let wide = wide.sub_groups([leaf("a", "", 2).required("rack")]);
    let says = "sub-group a: topology.required: rack is wider than the level that the PodGroup";
    check(&mut world, wide, Reason::InvalidSpec, says);
    let below = [
        inner("slices", "").required("rack"),
        leaf("a", "slices", 1).required("zone"),
    ];
    let says = "zone is wider than the level that slices requires";
    check(
        &mut world,
        gang("g", 1).sub_groups(below),
        Reason::InvalidSpec,
        says,
    );
    let level = gang("g", 1).sub_groups([leaf("a", "", 2).required("row")]);
    check(
        &mut world,
        level,
        Reason::TopologyNotFound,
        "sub-group a: Topology",
    );
    let other = gang("g", 1).sub_groups([leaf("a", "", 2).required("rack").in_topology("x")]);
    check(
        &mut world,
        other,
        Reason::TopologyNotFound,
        "there is no Topology \"x\"; those that exist: default",
    );
    let cycle = gang("g", 1).sub_groups([inner("a", "b"), inner("b", "a")]);
    check(&mut world, cycle, Reason::InvalidSpec, "makes a cycle");
    let orphan = gang("g", 1).sub_groups([leaf("a", "nobody", 2)]);
    let says = "spec.subGroups[0].parent: there is no sub-group \"nobody\"";
    check(&mut world, orphan, Reason::InvalidSpec, says);
    let too_many = gang("g", 1).sub_groups([leaf("a", "", 2)]).at_least(2);
    let says = "spec.minSubGroups: 2 is more than its 1 direct children";
    check(&mut world, too_many, Reason::InvalidSpec, says);
    let few = gang("g", 1).sub_groups([leaf("a", "", 3)]);
    let says = "2 of at least 3 members of sub-group a exist";
    check(&mut world, few, Reason::WaitingForMembers, says);
    world.then(pod("single", 1));
    assert!(world.is_placed("single"));
    world.binds = 0;
    world.then(gang("g", 1).sub_groups([leaf("a", "", 2)]));
    assert_eq!(world.binds, 2);
}

#[test]
fn a_queue_without_room_for_the_first_slices_takes_others() {
    let mut world = racks();
    world.apply(queue("q").limit(5));
    let slices = [leaf("a", "", 1), leaf("b", "", 1), leaf("c", "", 1)];
    world.apply(gang("g", 1).sub_groups(slices).at_least(2).queue("q"));
    pods(&mut world, "a", 1, 4);
    pods(&mut world, "b", 1, 3);
    pods(&mut world, "c", 1, 2);
    world.settle();
    assert_eq!(world.binds, 2);
    assert!(world.is_placed("c-0"));
}

#[test]
fn members_on_a_node_that_is_gone_keep_their_slice_waiting() {
    let mut world = racks();
    let slices = leaf("a b", "", 1).required("rack");
    world.apply(gang("g", 1).sub_groups(slices));
    pods(&mut world, "a", 1, 1);
    pods(&mut world, "b", 1, 1);
    world.settle();
    assert_eq!(world.binds, 2);
    let node = world.node_of("a-0").unwrap();
    world.lose_node(&node);
    world.then(pod("a-1", 1).of_leaf("g", "a").late());
    assert_eq!(world.binds, 2);
    assert!(world.message("g").contains("sub-group a"));
}

#[test]
fn cliques_of_zeros_and_empty_labels_are_nobody_s_domain() {
    for value in ["00000000-0000-0000-0000-000000000000.0", ""] {
        let mut world = World::of((
            topology("default", "clique"),
            node("n1", 8).label("clique", value),
            node("n2", 8).label("clique", value),
            gang("g", 2).required("clique"),
            pod("a b", 8).of("g"),
        ));
        assert_eq!(world.binds, 0);
        world.then((
            node("n1", 8).label("clique", "7b968a6d.1"),
            node("n2", 8).label("clique", "7b968a6d.1"),
        ));
        assert_eq!(world.binds, 2);
    }
}

#[test]
fn surplus_that_completes_no_sub_group_waits_for_members() {
    let group = gang("g", 1).sub_groups(leaf("a b", "", 2)).at_least(1);
    let mut world = World::of((
        node("n1", 8),
        group,
        pod("a0 a1", 1).of_leaf("g", "a"),
        pod("b0", 1).of_leaf("g", "b"),
    ));
    world.later(15_000);
    assert_eq!(world.places("a0 a1 b0"), "n1 n1 -");
    let says = "its waiting members are too few to complete one more sub-group";
    assert_eq!(world.message("g"), says);
    assert_eq!(world.condition("b0"), ("WaitingForMembers", says));
    let explained = world.explain("g");
    assert_eq!(explained.message, says);
    assert_eq!(explained.proof, None);
}
