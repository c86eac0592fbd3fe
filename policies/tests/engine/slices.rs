//! Searches for victims that take more than one slice, and claimants that are alike.

use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{World, gang, leaf, names, node, pod, quota, topology};

/// So many nodes that to collect the gangs that run is more work than a slice has.
const NODES: usize = 520;

/// Nodes full of jobs of one GPU each of the queue `b`, which has no quota.
fn crowded(nodes: usize) -> World {
    let mut world = World::new();
    let gpus = 8 * nodes as u64;
    world.apply((quota("a", gpus), quota("b", 0)));
    world.apply(node(&names("n", nodes), 8));
    for number in 0..nodes {
        let jobs = names(&format!("job{number}-"), 8);
        let jobs = pod(&jobs, 1).queue("b").on(&format!("n{number}"));
        world.apply(jobs);
    }
    world.settle();
    world
}

/// Nodes that are each shared by two gangs of two to four pods, and a gang that claims a third of
/// them.
fn entangled(nodes: usize, seed: u64) -> World {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut places: Vec<usize> = (0..2 * nodes).map(|place| place / 2).collect();
    random.shuffle(&mut places);
    let mut world = World::new();
    world.apply((quota("a", 8 * nodes as u64), quota("b", 0)));
    world.apply(node(&names("n", nodes), 8));
    for number in 0.. {
        let size = random.usize(2..=4).min(places.len());
        let on = places.split_off(places.len() - size);
        if on.is_empty() {
            break;
        }
        let minimum = u32::try_from(size).unwrap();
        let name = format!("g{number}");
        world.apply(gang(&name, minimum).queue("b"));
        for (member, node) in on.into_iter().enumerate() {
            let member = pod(&format!("{name}-{member}"), 4).of(&name);
            world.apply(member.on(&format!("n{node}")));
        }
    }
    let size = nodes / 3;
    world.apply(gang("claims", u32::try_from(size).unwrap()).queue("a"));
    world.apply(pod(&names("claims-", size), 8).of("claims"));
    world
}

fn is_nominated(world: &World, pod: &str) -> bool {
    world.stored(pod).nominated.is_some()
}

/// How many steps it takes until a claimant is nominated; before each of them `happens`.
fn steps_to_nomination(world: &mut World, mut happens: impl FnMut(&mut World, usize)) -> usize {
    world.apply((gang("g", 2).queue("a"), pod("p0 p1", 8).of("g")));
    for step in 1..40 {
        happens(world, step);
        world.step();
        if is_nominated(world, "p0") && is_nominated(world, "p1") {
            return step;
        }
        world.pass(100);
    }
    panic!("the claimant is never nominated");
}

#[test]
fn a_search_for_victims_goes_on_in_slices() {
    let mut world = crowded(NODES);
    let steps = steps_to_nomination(&mut world, |_, _| {});
    assert!(steps > 1, "one step has done it all");
}

#[test]
fn a_search_for_victims_ends_although_something_changes_before_each_slice() {
    let mut world = crowded(NODES);
    let steps = steps_to_nomination(&mut world, |world, step| {
        world.apply(node(&format!("new{step}"), 0));
    });
    assert!(steps > 3, "nothing has disturbed the search");
}

#[test]
fn a_search_for_victims_is_dropped_with_its_claimant() {
    let mut world = crowded(NODES);
    world.apply((gang("g", 2).queue("a"), pod("p0 p1", 8).of("g")));
    world.step();
    assert!(!is_nominated(&world, "p0"), "the search is not over");
    world.delete("p0 p1");
    world.run(2_000);
    assert_eq!(world.evictions, 0);
}

/// In debug builds the engine compares each of these plans with that of a search.
#[test]
fn claimants_of_one_pod_take_from_the_queue_that_holds_too_much_and_no_more() {
    let mut world = crowded(4);
    world.apply(quota("b", 20));
    world.apply(quota("a", 12));
    world.apply(pod(&names("one", 16), 1).queue("a"));
    world.run(20_000);
    let bound = (0..16).filter(|number| {
        let pod = world.stored(&format!("one{number}"));
        pod.node.is_some()
    });
    assert_eq!(bound.count(), 12);
}

/// There is always a plan here: all may leave. Where branching finds none in its time, what is left
/// of all is one.
#[test]
fn a_plan_is_found_where_each_victim_shares_nodes_with_many_others() {
    for seed in 0..6 {
        let mut world = entangled(150, seed);
        world.step();
        let found = world.explain("claims").eviction.expect("it waits");
        let plan = found.expect("a plan");
        assert_eq!(plan.places.len(), 50, "seed {seed}");
        assert!(plan.gangs_broken_at_least > 0, "seed {seed}");
        assert!(
            plan.gangs_broken_at_least <= plan.gangs_broken,
            "seed {seed}"
        );
    }
}

/// An explanation undoes all that it tries, so a kept search for victims goes on where it was.
#[test]
fn asking_does_not_hold_up_a_search_for_victims() {
    let run = |ask: &mut dyn FnMut(&mut World)| {
        let mut world = crowded(NODES);
        let steps = steps_to_nomination(&mut world, |world, _| ask(world));
        let nominated = ["p0", "p1"].map(|pod| world.stored(pod).nominated.clone());
        (steps, nominated)
    };
    let mut asked = 0;
    let mut ask = |world: &mut World| {
        let gangs = world.engine.gang_reports();
        if gangs.iter().any(|gang| gang.name == "default/g") {
            let explained = world.explain("g");
            asked += u32::from(explained.eviction.is_some());
        }
    };
    assert_eq!(run(&mut ask), run(&mut |_| {}));
    assert!(asked > 1, "nobody has asked while the search was kept");
}

/// When a pod is promised to start, from now.
fn starts_in_ms(world: &World, pod: &str) -> Option<u64> {
    let name = format!("default/pod/{pod}");
    let mut promised = world.engine.promised_starts();
    let at_ms = promised.find_map(|(known, at_ms)| (*known == *name).then_some(at_ms));
    at_ms.map(|at_ms| at_ms - world.now_ms)
}

/// All of 40 nodes are taken, and 300 pods that each need a whole one have promises.
fn promised() -> World {
    let mut world = World::with(Settings {
        reservations: 1_000,
        ..Settings::default()
    });
    for number in 0..40_u64 {
        let name = format!("n{number}");
        let runs = pod(&format!("r{number}"), 8).on(&name);
        world.apply((node(&name, 8), runs.runtime(1_000_000 + 1_000 * number)));
    }
    world.then(pod(&names("w", 300), 8).runtime(500_000));
    world
}

/// Room comes early where hundreds of gangs have promises. Meanwhile one of them goes.
#[test]
fn promises_are_pulled_forward_in_slices() {
    let mut world = promised();
    let before = starts_in_ms(&world, "w299");
    world.end("r39");
    let mut steps = 0;
    while world.step() || !world.engine.is_idle() {
        steps += 1;
        if steps == 20 {
            assert_eq!(starts_in_ms(&world, "w299"), before);
            world.delete("w7");
        }
    }
    assert!(steps > 50, "{steps} steps");
    assert_eq!(world.places("w0"), "n39");
    assert_eq!(starts_in_ms(&world, "w1"), Some(500_000));
    assert_eq!(starts_in_ms(&world, "w7"), None);
    assert!(starts_in_ms(&world, "w299") < before);
}

/// Room for members of all sub-groups together is counted, and most times need not be tried.
#[test]
fn a_start_of_sub_groups_is_found_behind_many_promises() {
    let mut world = promised();
    world.apply(gang("z", 1).sub_groups(leaf("a b", "", 1)));
    for group in ["a", "b"] {
        world.apply(pod(&format!("z{group}"), 8).of_leaf("z", group));
    }
    world.settle();
    let start_ms = world.gang("z").status.estimated_start_ms;
    assert_eq!(start_ms, Some(world.now_ms + 4_491_000));
}

/// Nodes `nI` and `n(I + 20)` are a rack. Whether both are free at once is not counted: one time is
/// tried after the other.
#[test]
fn a_start_is_looked_for_in_slices() {
    let mut world = promised();
    world.apply(topology("default", "rack"));
    for number in 0..40 {
        let rack = format!("r{}", number % 20);
        world.apply(node(&format!("n{number}"), 8).label("rack", &rack));
    }
    let slice = leaf("a", "", 2).required("rack");
    world.apply(gang("z", 1).sub_groups(slice));
    world.apply(pod("z1 z2", 8).of_leaf("z", "a"));
    let mut steps = 0;
    while world.step() || !world.engine.is_idle() {
        steps += 1;
    }
    let start_ms = world.gang("z").status.estimated_start_ms;
    assert_eq!(start_ms, Some(world.now_ms + 4_970_000));
    assert!(steps > 20, "{steps} steps");
}
