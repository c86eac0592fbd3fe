//! A new leader knows of a running gang what it is: complete, however far its minimum was
//! raised, or stale since the loss of a member.

use gpu_batch_policies::command::EvictionCause;
use gpu_batch_policies::facts::{JobFacts, OwnerReference, PodFacts, PodGroupFacts, Uid, UnixMs};
use gpu_batch_policies::status::{Phase, Staleness};
use gpu_batch_testing::{START_MS, Sketch, To, World, gang, inner, leaf, lost, names, node, pod};
use std::ops::RangeInclusive;

/// Three members run and fill the cluster; they are all that the minimum asks for.
fn three_of(group: Sketch<PodGroupFacts>) -> World {
    let mut world = World::of((node("n1", 3), group, pod("a b c", 1).of("g")));
    assert_eq!(world.binds, 3);
    world.run(5_000);
    world
}

/// The grace period has this long to run yet: nobody is evicted before, and then the two members
/// that are left.
fn check_left_of_grace(world: &mut World, left_ms: u64) {
    world.run(left_ms - 1_000);
    assert_eq!(world.evictions, 0);
    world.run(3_000);
    assert_eq!(world.evictions, 2);
}

/// No member is evicted, however long the gang runs on as it is.
fn check_left_alone(world: &mut World) {
    world.run(180_000);
    assert_eq!(world.evictions, 0);
}

/// How the old and the new scheduler learn that a minimum was raised.
#[derive(Debug, Clone, Copy)]
enum Down {
    /// The old scheduler sees the raised minimum and writes the status.
    Told,
    /// The minimum is raised while no scheduler runs.
    Unseen,
    /// No scheduler has ever written a status of the gang.
    NeverWritten,
}

fn raise(world: &mut World, group: Sketch<PodGroupFacts>, how: Down) {
    if matches!(how, Down::Told) {
        world.then(group);
        world.run(5_000);
    } else {
        world.apply(group);
    }
    world.take_over();
    world.settle();
    world.run(180_000);
}

#[test]
fn a_gang_whose_minimum_was_raised_is_never_evicted_for_it_after_a_restart() {
    for how in [Down::Told, Down::Unseen, Down::NeverWritten] {
        for late in [true, false] {
            let mut world = World::new();
            if matches!(how, Down::NeverWritten) {
                world.answers(To::GangStatus, lost());
            }
            world.then((node("n1", 3), gang("g", 3), pod("a b c", 1).of("g")));
            // Two more members wait for room since before the first binding, or came for the new
            // minimum.
            let more = pod("d e", 1).of("g");
            world.then(if late { more.late() } else { more });
            raise(&mut world, gang("g", 5).generation(2), how);
            assert_eq!(world.evictions, 0, "{how:?}, late: {late}");
            // Room for one more is not enough; for two it is.
            world.then(node("n2", 2));
            assert_eq!(world.phase("g"), Phase::Running);
        }
    }
}

/// Its minimum was lowered so that it could do without two members, and raised again.
#[test]
fn a_minimum_that_was_lowered_and_raised_again_evicts_nobody() {
    let mut world = World::of((node("n1", 5), gang("g", 5), pod("a b c d e", 1).of("g")));
    world.then(gang("g", 3).generation(2));
    world.delete("d e");
    world.settle();
    world.then(gang("g", 5).generation(3));
    world.run(5_000);
    world.take_over();
    check_left_alone(&mut world);
}

#[test]
fn a_minimum_that_is_raised_while_the_gang_is_bound_is_for_the_next_decision() {
    let mut world = World::new();
    world.apply((node("n1", 3), gang("g", 3), pod("a b c", 1).of("g")));
    // Room is found for the three, and before anybody knows what became of their bindings more are
    // asked for.
    world.step();
    world.then((gang("g", 4).generation(2), pod("d", 1).of("g")));
    assert_eq!(world.binds, 3);
    check_left_alone(&mut world);
}

/// Another scheduler bound the only member, and the time of it is not known.
#[test]
fn a_minimum_that_is_raised_evicts_no_member_without_a_time_of_its_binding() {
    let member = pod("a", 1).of("g").on("n1");
    let member = member.with(|pod| pod.bound_ms = None);
    let mut world = World::of((node("n1", 1), gang("g", 1), member, pod("b", 1).of("g")));
    assert_eq!(world.phase("g"), Phase::Running);
    raise(&mut world, gang("g", 3).generation(2), Down::Told);
    assert_eq!(world.evictions, 0);
}

/// An Indexed Job of so many pods.
fn job(pods: u32) -> JobFacts {
    JobFacts {
        uid: Uid(5 << 64),
        namespace: "default".into(),
        name: "train".into(),
        indexed: true,
        parallelism: pods,
        completions: Some(pods),
        succeeded: 0,
        active_deadline_ms: None,
        ignores_evictions: false,
        unknown_keys: Vec::new(),
    }
}

/// Pods of the Job.
fn pods_of_job(numbers: RangeInclusive<u32>) -> Sketch<PodFacts> {
    let owner = OwnerReference {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        name: "train".into(),
        uid: Uid(5 << 64),
    };
    let names: Vec<String> = numbers.map(|number| format!("train-{number}")).collect();
    pod(&names.join(" "), 1).with(|pod| pod.owner = Some(owner.clone()))
}

#[test]
fn a_job_that_asks_for_more_pods_loses_none_after_a_restart() {
    let mut world = World::of((node("n1", 3), job(3), pods_of_job(1..=3)));
    assert_eq!(world.binds, 3);
    world.then((job(5), pods_of_job(4..=5).late()));
    world.take_over();
    world.settle();
    assert_eq!(world.phase("job/train"), Phase::Pending);
    check_left_alone(&mut world);
}

/// The pods of an Indexed Job run, and one is lost; another scheduler takes its room.
fn job_that_lost_one() -> World {
    let mut world = World::of((node("n1", 3), job(3), pods_of_job(1..=3)));
    assert_eq!(world.binds, 3);
    world.run(5_000);
    world.delete("train-3");
    world.then(pod("x", 1).on("n1"));
    world
}

/// Nothing is written of the loss but what the Job controller writes: a pod in its place.
#[test]
fn the_grace_period_of_a_job_runs_from_the_creation_of_the_first_replacement() {
    let mut world = job_that_lost_one();
    world.run(10_000);
    let now_ms = world.now_ms;
    world.then(pods_of_job(4..=4).with(|pod| pod.created_ms = now_ms));
    for left_ms in [40_000, 20_000] {
        world.run(20_000);
        world.take_over();
        world.settle();
        assert_eq!(world.evictions, 0, "{left_ms} ms are left");
    }
    check_left_of_grace(&mut world, 20_000);
    assert_eq!(world.cause, Some(EvictionCause::Stale));
}

/// Before it lost a member, more were asked for, and they wait since then: they say nothing of when
/// the loss was.
#[test]
fn a_pod_that_waited_before_the_loss_tells_nothing_of_it() {
    let mut world = World::of((node("n1", 3), job(3), pods_of_job(1..=3)));
    world.run(5_000);
    let now_ms = world.now_ms;
    let more = pods_of_job(4..=4).with(|pod| pod.created_ms = now_ms);
    world.then((job(4), more));
    world.run(50_000);
    world.delete("train-3");
    world.then(pod("x", 1).on("n1"));
    world.take_over();
    world.settle();
    check_left_of_grace(&mut world, 60_000);
}

/// A role asks for more pods, and the gang for more of its slices.
#[test]
fn raised_minima_of_sub_groups_evict_nobody_after_a_restart() {
    let some = |minimum: u32, of: u32| {
        let all = inner("all", "").with(|all| all.min_sub_groups = Some(of));
        gang("g", 1).sub_groups([all, leaf("a b c", "all", minimum)])
    };
    for (changed, what) in [(some(2, 3), "slices"), (some(3, 2), "members")] {
        for told in [true, false] {
            let mut world = World::new();
            if !told {
                world.answers(To::GangStatus, lost());
            }
            world.apply((node("n1", 4), some(2, 2)));
            for slice in ["a", "b", "c"] {
                world.apply(pod(&names(slice, 3), 1).of_leaf("g", slice));
            }
            world.settle();
            assert_eq!(world.binds, 4, "{what}");
            world.run(5_000);
            world.apply(changed.clone().generation(2));
            world.take_over();
            world.run(180_000);
            assert_eq!(world.evictions, 0, "{what}, told: {told}");
        }
    }
}

fn staleness(world: &World) -> Option<Staleness> {
    world.gang("g").status.staleness
}

/// The condition `Stale` of a gang that lost a member at this time.
fn stale_since(since_ms: UnixMs) -> Option<Staleness> {
    Some(Staleness {
        stale: true,
        since_ms,
    })
}

#[test]
fn the_grace_period_runs_from_the_loss_whoever_leads() {
    // A member that waits since before the first binding, or none.
    for surplus in [false, true] {
        let mut world = three_of(gang("g", 3));
        if surplus {
            world.then(pod("d", 2).of("g"));
        }
        let not_stale = staleness(&world).unwrap();
        assert!(!not_stale.stale && not_stale.since_ms < world.now_ms);
        world.delete("c");
        world.settle();
        let lost_ms = world.now_ms;
        world.run(40_000);
        for _ in 0..2 {
            world.take_over();
            world.settle();
            assert_eq!(staleness(&world), stale_since(lost_ms));
            world.run(9_000);
        }
        assert_eq!(world.evictions, 0);
        world.run(4_000);
        assert_eq!(world.evictions, 2, "surplus: {surplus}");
        assert_eq!(world.cause, Some(EvictionCause::Stale));
        assert_eq!(staleness(&world), None);
    }
}

#[test]
fn a_loss_while_nobody_led_counts_from_the_restart() {
    let mut world = three_of(gang("g", 3));
    world.delete("c");
    world.take_over();
    check_left_of_grace(&mut world, 60_000);
}

/// A lost member's replacement got a place, and then the scheduler died: the loss stands.
#[test]
fn a_replacement_that_was_never_bound_replaces_nobody() {
    let mut world = three_of(gang("g", 3));
    world.delete("c");
    world.settle();
    let lost_ms = world.now_ms;
    world.run(20_000);
    world.answers(To::Bind, lost());
    world.then(pod("d", 1).of("g").late());
    assert_eq!(staleness(&world), stale_since(lost_ms));
    world.apply(node("n1", 2));
    world.take_over();
    world.settle();
    assert_eq!(staleness(&world), stale_since(lost_ms));
    check_left_of_grace(&mut world, 40_000);
}

/// Enough members are left for the gang, and too few for one of its roles.
#[test]
fn a_role_that_lost_a_member_while_nobody_led_is_below_its_minimum() {
    let mut world = World::of((
        node("n1", 6),
        gang("g", 1).sub_groups(leaf("a b", "", 2)),
        pod("a0 a1 a2 a3", 1).of_leaf("g", "a"),
        pod("b0 b1", 1).of_leaf("g", "b"),
    ));
    assert_eq!(world.binds, 6);
    world.run(5_000);
    world.delete("b1");
    world.take_over();
    world.run(63_000);
    assert_eq!(world.evictions, 5);
}

/// All members of the raised role are lost: no pod tells of the minimum that they were bound for.
#[test]
fn a_minimum_that_was_raised_for_a_role_without_members_evicts_nobody() {
    let group = |minimum| {
        let pair = inner("pair", "").with(|pair| pair.min_sub_groups = Some(2));
        let (lead, work) = (leaf("lead", "pair", minimum), leaf("work", "pair", 2));
        let groups = [pair, lead, work, leaf("spare", "", 1)];
        gang("g", 1).sub_groups(groups).at_least(1)
    };
    let mut world = World::of((
        node("n1", 4),
        group(1),
        pod("l0 l1", 1).of_leaf("g", "lead"),
        pod("w0 w1", 1).of_leaf("g", "work"),
        pod("s0", 1).of_leaf("g", "spare"),
    ));
    assert_eq!(world.nodes_of("l0 l1 w0 w1 s0"), ["n1"; 4]);
    world.run(5_000);
    // Another pod is where the member was, before one that replaces it waits.
    world.delete("l0");
    let replacement = pod("l2", 1).of_leaf("g", "lead");
    let replacement = replacement.with(|pod| pod.created_ms = START_MS + 5_000);
    world.then((pod("other", 1).on("n1"), replacement));
    world.apply(group(3).generation(2));
    world.take_over();
    check_left_alone(&mut world);
}

/// One role has a member more and the other a member less than the status tells, which is old:
/// the sum is what it was.
#[test]
fn a_role_below_its_minimum_is_noticed_behind_a_surplus_that_was_never_told() {
    let mut world = World::of((
        node("n1", 6),
        gang("g", 1).sub_groups([leaf("a", "", 2), leaf("b", "", 1)]),
        pod("a0 a1", 1).of_leaf("g", "a"),
        pod("b0", 1).of_leaf("g", "b"),
    ));
    world.run(5_000);
    world.answers(To::GangStatus, lost());
    world.then(pod("b1", 1).of_leaf("g", "b"));
    assert_eq!(world.binds, 4);
    world.delete("a1");
    world.take_over();
    world.answers_again(&To::GangStatus);
    world.run(59_000);
    assert_eq!(world.evictions, 0);
    world.run(3_000);
    assert_eq!(world.evictions, 3);
}

#[test]
fn a_member_that_did_its_part_and_was_cleaned_away_is_not_lost_after_a_restart() {
    let mut world = three_of(gang("g", 3));
    world.end("c");
    world.settle();
    world.delete("c");
    world.settle();
    world.run(5_000);
    world.take_over();
    check_left_alone(&mut world);
}

/// The status tells of members that ran before, and is not believed of those that run now.
#[test]
fn a_half_bound_gang_is_unwound_in_spite_of_an_old_status() {
    for stale in [false, true] {
        let group = gang("g", 2);
        let mut world = World::of((node("n1", 1), group.clone(), pod("a", 1).of("g")));
        world.apply(pod("b", 1).of("g").on("n1"));
        let mut status = world.gang("g").status;
        let since_ms = START_MS - 60_000;
        status.scheduled_since_ms = since_ms;
        status.staleness = Some(Staleness { stale, since_ms });
        world.apply(group.with(|group| group.status = Some(status.clone())));
        world.take_over();
        world.run(1_900);
        assert_eq!(world.evictions, 1, "stale: {stale}");
        assert_eq!(world.cause, Some(EvictionCause::Unwind));
    }
}

/// A gang that can go without one of its sub-groups, in both of which all members run.
fn two_halves() -> World {
    let group = gang("g", 1).at_least(1).sub_groups(leaf("a b", "", 2));
    let mut world = World::of((node("n1", 4), group));
    for leaf in ["a", "b"] {
        world.apply(pod(&names(leaf, 2), 1).of_leaf("g", leaf));
    }
    world.settle();
    assert_eq!(world.binds, 4);
    world.run(5_000);
    world
}

/// The API server knows times to the second: the replacement is no older than the binding.
#[test]
fn a_sub_group_whose_member_failed_at_once_is_left_alone_after_a_restart() {
    let mut world = two_halves();
    let bound_ms = world.stored("a0").bound_ms.unwrap();
    world.fail("a1");
    let replacement = pod("a1-again", 1)
        .of_leaf("g", "a")
        .gate("example.com/wait");
    world.then(replacement.with(|pod| pod.created_ms = bound_ms));
    world.take_over();
    check_left_alone(&mut world);
}

/// A late write has replaced the condition that tells when the member was bound. It started long
/// after that.
#[test]
fn a_member_that_started_late_does_not_make_its_replaced_sibling_older() {
    let mut world = two_halves();
    let bound_ms = world.stored("a0").bound_ms.unwrap();
    world.change("a0", |pod| {
        pod.bound_ms = None;
        pod.started_ms = Some(bound_ms + 60_000);
    });
    world.delete("a1");
    let replacement = pod("a1-again", 1)
        .of_leaf("g", "a")
        .gate("example.com/wait");
    world.then(replacement.with(|pod| pod.created_ms = bound_ms + 30_000));
    world.run(60_000);
    world.take_over();
    check_left_alone(&mut world);
}
