//! Searches that take more than one slice.

use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{World, gang, names, node, pod, queue, topology};

/// Five nodes hold 101 each, all sizes are even, and their sum is 502: of each shape alone there is
/// room, and all together do not fit, for an odd node is never full.
const TOO_MANY: [u64; 17] = [
    14, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 16, 10,
];
/// Sizes as in [`TOO_MANY`] but for the last: these fit in few ways.
const FITTING: [u64; 17] = [
    14, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 16, 8,
];

/// How long it takes until searches may take another slice.
const MS_PER_SLICE: u64 = 20;

/// A gang of such sizes beside so many nodes of 101.
fn tight(world: &mut World, nodes: usize, sizes: &[u64]) {
    world.apply(node(&names("n", nodes), 101));
    ask(world, sizes);
}

fn ask(world: &mut World, sizes: &[u64]) {
    world.apply(gang("g", u32::try_from(sizes.len()).unwrap()));
    members(world, "g", sizes);
}

/// The members of a gang: `p0` and so on of the gang `g`, and so on.
fn members(world: &mut World, gang: &str, sizes: &[u64]) {
    let stem = if gang == "g" { "p" } else { gang };
    for (number, size) in sizes.iter().enumerate() {
        world.apply(pod(&format!("{stem}{number}"), *size).of(gang));
    }
}

/// A gang for which everything that searches may take is too little: two more nodes, and more than
/// twenty times the steps.
fn too_hard(world: &mut World) {
    tight(world, 7, &[&TOO_MANY[..], &[48, 50, 52, 50]].concat());
}

/// An empty world in which searches have taken all that they may, and so many slices have come back
/// since.
fn spent(slices: u64) -> World {
    let mut world = World::new();
    too_hard(&mut world);
    world.settle();
    assert_eq!(world.reason("g"), Some(Reason::NotFoundWithinBound));
    for key in world.objects.keys().cloned().collect::<Vec<_>>() {
        world.forget(key);
    }
    world.settle();
    world.pass(slices * MS_PER_SLICE);
    world
}

/// Whether the engine goes on at once: with a search, or to tell what came of it.
fn goes_on(world: &World) -> bool {
    world.engine.next_deadline() == Some(world.now_ms)
}

/// Whether things of these sizes fit into what is free, by trying everything.
fn fits(free: &mut [u64], sizes: &[u64]) -> bool {
    let Some((size, others)) = sizes.split_first() else {
        return true;
    };
    for node in 0..free.len() {
        // Of nodes that are alike the first.
        if free[node] < *size || free[..node].contains(&free[node]) {
            continue;
        }
        free[node] -= size;
        let fits = fits(free, others);
        free[node] += size;
        if fits {
            return true;
        }
    }
    false
}

/// Steps until the search needs another slice.
fn begin(world: &mut World) {
    for _ in 0..3 {
        world.step();
        if goes_on(world) {
            return;
        }
    }
    panic!("no search");
}

/// How many slices it takes to the end.
fn slices(world: &mut World) -> usize {
    let mut slices = 1;
    while goes_on(world) {
        world.step();
        slices += 1;
        assert!(slices < 300, "it never ends");
    }
    slices
}

#[test]
fn it_takes_several_slices_and_says_what_trying_everything_says() {
    for (sizes, placed) in [(TOO_MANY, false), (FITTING, true)] {
        assert_eq!(fits(&mut [101; 5], &sizes), placed);
        let mut world = World::new();
        tight(&mut world, 5, &sizes);
        begin(&mut world);
        let slices = slices(&mut world);
        world.settle();
        assert!(slices > 1, "{slices}");
        assert_eq!(world.binds, if placed { sizes.len() } else { 0 });
        let reason = (!placed).then_some(Reason::DoesNotFit);
        assert_eq!(world.reason("g"), reason);
    }
}

#[test]
fn events_are_applied_between_two_slices_and_the_turn_is_kept() {
    let mut world = World::new();
    tight(&mut world, 5, &TOO_MANY);
    begin(&mut world);
    // Another queue, whose turn it would be, and a pod that runs beside.
    world.apply((
        queue("other"),
        node("cpu", 0),
        pod("single", 2).queue("other"),
        pod("runs", 0).on("cpu"),
    ));
    world.step();
    assert!(goes_on(&world));
    assert_eq!(world.places("runs"), "cpu");
    assert_eq!(world.places("single"), "-");
    slices(&mut world);
    world.settle();
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
    assert!(world.is_placed("single"));
}

#[test]
fn time_that_passes_and_news_of_no_interest_do_not_begin_it_anew() {
    let whole = |disturb: &dyn Fn(&mut World)| {
        let mut world = World::new();
        tight(&mut world, 5, &TOO_MANY);
        begin(&mut world);
        for _ in 0..2 {
            disturb(&mut world);
            world.step();
        }
        let slices = slices(&mut world);
        assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
        slices
    };
    let undisturbed = whole(&|_| {});
    assert!(undisturbed > 2);
    assert_eq!(undisturbed, whole(&|world| world.pass(3_000)));
    // The node has no GPU.
    let beside = |world: &mut World| world.apply(pod("runs", 0).on("cpu"));
    assert_eq!(undisturbed, whole(&beside));
}

#[test]
fn a_node_that_comes_begins_it_anew_and_it_finds_a_place() {
    let mut world = World::new();
    tight(&mut world, 5, &TOO_MANY);
    begin(&mut world);
    world.step();
    world.apply(node("more", 2));
    world.step();
    // The new node is too small for any of them.
    assert!(goes_on(&world));
    world.then(node("n5", 10));
    assert_eq!(world.binds, TOO_MANY.len());
    assert!(!goes_on(&world));
}

#[test]
fn room_that_goes_begins_it_anew() {
    let mut world = World::new();
    tight(&mut world, 5, &FITTING);
    begin(&mut world);
    world.then(pod("foreign", 3).foreign().on("n0"));
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
}

#[test]
fn a_gang_that_goes_or_changes_takes_its_search_along() {
    let mut world = World::new();
    tight(&mut world, 5, &TOO_MANY);
    begin(&mut world);
    world.apply(pod("single", 2));
    world.delete(&names("p", TOO_MANY.len()));
    world.settle();
    assert!(!goes_on(&world));
    assert!(world.is_placed("single"));
    assert_eq!(world.binds, 1);

    let mut world = World::new();
    tight(&mut world, 5, &TOO_MANY);
    begin(&mut world);
    // One is not needed any more: then there is room, and for the last one never.
    world.then(gang("g", 16).generation(2));
    assert_eq!(world.binds, 16);
    assert_eq!(world.reason("g"), None);
}

#[test]
fn what_a_new_member_could_use_is_watched_from_then_on() {
    let mut world = World::new();
    tight(&mut world, 5, &FITTING);
    begin(&mut world);
    world.apply((gang("g", 18).generation(2), pod("p17", 6).of("g")));
    world.step();
    assert!(goes_on(&world));
    // All others are too large for it.
    world.then(node("n5", 7));
    assert_eq!(world.places("p17"), "n5");
    assert_eq!(world.binds, 18);
}

#[test]
fn a_queue_that_closes_ends_it() {
    let mut world = World::new();
    world.apply((queue("team"), node(&names("n", 5), 101)));
    ask(&mut world, &TOO_MANY);
    world.apply(gang("g", 17).queue("team").generation(2));
    begin(&mut world);
    world.apply(queue("team").closed());
    world.step();
    assert_eq!(world.reason("g"), Some(Reason::QueueClosed));
    assert!(slices(&mut world) < 4, "nothing is left but to tell it");
}

#[test]
fn it_ends_within_its_bound_and_says_so() {
    let mut world = spent(2);
    tight(&mut world, 5, &TOO_MANY);
    begin(&mut world);
    assert_eq!(slices(&mut world), 3 + 1, "and one step to tell it");
    world.settle();
    assert_eq!(world.binds, 0);
    let reason = world.reason("g");
    assert_eq!(reason, Some(Reason::NotFoundWithinBound));
    let said = world.message("g");
    assert!(said.contains("within the bound of the search"), "{said}");
}

#[test]
fn what_changes_all_the_time_does_not_make_it_endless() {
    let mut world = spent(6);
    tight(&mut world, 5, &TOO_MANY);
    begin(&mut world);
    let mut steps = 0;
    while goes_on(&world) {
        // Room comes and goes, and never enough.
        world.apply(node("small", 1 + steps % 2));
        world.step();
        steps += 1;
        assert!(steps < 10, "it never ends");
    }
    let reason = world.reason("g");
    assert_eq!(reason, Some(Reason::NotFoundWithinBound));
}

#[test]
fn what_searches_may_take_comes_back_with_time() {
    let mut world = spent(0);
    tight(&mut world, 5, &TOO_MANY);
    world.settle();
    let reason = world.reason("g");
    assert_eq!(reason, Some(Reason::NotFoundWithinBound));
    world.pass(2_000);
    world.then(node("small", 1));
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
}

#[test]
fn what_is_told_does_not_depend_on_who_searched_right_before() {
    // Enough for the first, and not for the others.
    let mut world = spent(10);
    tight(&mut world, 5, &TOO_MANY);
    for group in ["h", "i"] {
        world.apply(gang(group, 17));
        members(&mut world, group, &TOO_MANY);
    }
    world.settle();
    let told = |world: &World| ["g", "h", "i"].map(|name| world.reason(name));
    let bounded = Some(Reason::NotFoundWithinBound);
    assert!(told(&world).contains(&bounded), "{:?}", told(&world));
    for _ in 0..4 {
        world.later(2_000);
    }
    assert_eq!(told(&world), [Some(Reason::DoesNotFit); 3]);
    assert!(!world.engine.search_on(), "nobody is left");
}

#[test]
fn what_a_whole_search_does_not_find_is_not_searched_for_again() {
    let mut world = spent(0);
    too_hard(&mut world);
    world.settle();
    let reason = Some(Reason::NotFoundWithinBound);
    assert_eq!(world.reason("g"), reason);
    assert!(world.engine.search_on());
    world.settle();
    assert_eq!(world.reason("g"), reason);
    assert!(!world.engine.search_on());
}

#[test]
fn what_was_cut_short_is_searched_for_at_once_where_no_time_passes() {
    let mut world = spent(0);
    tight(&mut world, 5, &FITTING);
    world.settle();
    assert_eq!(world.binds, 0);
    assert!(world.engine.search_on());
    world.settle();
    assert_eq!(world.binds, FITTING.len());
    assert!(!world.engine.search_on());
}

#[test]
fn a_process_that_starts_anew_in_the_midst_of_it_comes_to_the_same() {
    let mut world = World::new();
    tight(&mut world, 5, &FITTING);
    begin(&mut world);
    world.take_over();
    world.settle();
    assert_eq!(world.binds, FITTING.len());
}

#[test]
fn the_same_events_give_the_same_slices_and_places() {
    let run = || {
        let mut world = World::new();
        tight(&mut world, 5, &FITTING);
        world.settle();
        (world.steps, world.places(&names("p", FITTING.len())))
    };
    assert_eq!(run(), run());
}

#[test]
fn a_rack_is_searched_after_the_other_in_equal_parts() {
    let mut world = spent(4);
    world.apply(topology("default", "rack"));
    // The first rack would take all steps; in the other the gang fits in few ways.
    for rack in ["a", "b"] {
        world.apply(node(&names(rack, 5), 101).label("rack", rack));
    }
    world.apply(pod("foreign", 3).foreign().on("a0"));
    ask(&mut world, &FITTING);
    world.then(gang("g", 17).required("rack").generation(2));
    assert_eq!(world.binds, FITTING.len());
}
