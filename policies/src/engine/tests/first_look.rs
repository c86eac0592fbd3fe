//! Whoever takes over knows of a running gang what it is: complete, however far its minimum was
//! raised, or stale since the loss of a member.

use super::partial::pass;
use super::world::{START_MS, World, amounts, gang, inner, leaf, node, pod};
use crate::command::EvictionCause;
use crate::event::Object;
use crate::facts::{JobFacts, OwnerReference, PodFacts, PodGroupFacts, PodShape, Uid, UnixMs};
use crate::status::{Phase, Staleness};
use alloc::{format, sync::Arc, vec::Vec};

/// Three members run and fill the cluster; they are all that the minimum asks for.
fn three_of(group: PodGroupFacts) -> World {
    let mut world = World::new();
    world.apply(node("n1", 3));
    world.apply(group);
    for name in ["a", "b", "c"] {
        world.apply(pod(name, 1).of("g"));
    }
    world.settle();
    assert_eq!(world.binds, 3);
    pass(&mut world, 5_000);
    world
}

/// The grace period has this long to run yet: nobody is evicted before, and then the two members
/// that are left.
fn check_left_of_grace(world: &mut World, left_ms: u64) {
    pass(world, left_ms - 1_000);
    assert_eq!(world.evictions, 0);
    pass(world, 3_000);
    assert_eq!(world.evictions, 2);
}

/// No member is evicted, however long the gang runs on as it is.
fn check_left_alone(world: &mut World) {
    pass(world, 180_000);
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

fn raise(world: &mut World, group: PodGroupFacts, how: Down) {
    if matches!(how, Down::Told) {
        world.apply(group);
        world.settle();
        pass(world, 5_000);
    } else {
        world.apply(group);
    }
    world.take_over();
    world.settle();
    pass(world, 180_000);
}

#[test]
fn a_gang_whose_minimum_was_raised_is_never_evicted_for_it_after_a_restart() {
    for how in [Down::Told, Down::Unseen, Down::NeverWritten] {
        for late in [true, false] {
            let mut world = World::new();
            world.loses_statuses = matches!(how, Down::NeverWritten);
            world.apply(node("n1", 3));
            world.apply(gang("g", 3));
            for name in ["a", "b", "c"] {
                world.apply(pod(name, 1).of("g"));
            }
            world.settle();
            // Two more members wait for room since before the first binding, or came for the new
            // minimum.
            for name in ["d", "e"] {
                let more = pod(name, 1).of("g");
                world.apply(if late { more.late() } else { more });
            }
            world.settle();
            raise(&mut world, gang("g", 5).generation(2), how);
            assert_eq!(world.evictions, 0, "{how:?}, late: {late}");
            // Room for one more is not enough; for two it is.
            world.apply(node("n2", 2));
            world.settle();
            assert_eq!(world.gang("default/g").status.phase, Phase::Running);
        }
    }
}

/// Its minimum was lowered so that it could do without two members, and raised again.
#[test]
fn a_minimum_that_was_lowered_and_raised_again_evicts_nobody() {
    let mut world = World::new();
    world.apply(node("n1", 5));
    world.apply(gang("g", 5));
    for name in ["a", "b", "c", "d", "e"] {
        world.apply(pod(name, 1).of("g"));
    }
    world.settle();
    world.apply(gang("g", 3).generation(2));
    world.settle();
    world.delete("d");
    world.delete("e");
    world.settle();
    world.apply(gang("g", 5).generation(3));
    world.settle();
    pass(&mut world, 5_000);
    world.take_over();
    check_left_alone(&mut world);
}

#[test]
fn a_minimum_that_is_raised_while_the_gang_is_bound_is_for_the_next_decision() {
    let mut world = World::new();
    world.apply(node("n1", 3));
    world.apply(gang("g", 3));
    for name in ["a", "b", "c"] {
        world.apply(pod(name, 1).of("g"));
    }
    // Room is found for the three, and before anybody knows what became of their bindings more are
    // asked for.
    world.step();
    world.apply(gang("g", 4).generation(2));
    world.apply(pod("d", 1).of("g"));
    world.settle();
    assert_eq!(world.binds, 3);
    check_left_alone(&mut world);
}

/// An Indexed Job of so many pods.
fn job(pods: u32) -> Object {
    Object::Job(JobFacts {
        uid: Uid(5 << 64),
        namespace: "default".into(),
        name: "train".into(),
        indexed: true,
        parallelism: pods,
        completions: Some(pods),
        active_deadline_ms: None,
        ignores_evictions: false,
    })
}

fn pod_of_job(number: u64, created_ms: u64) -> Object {
    let shape = PodShape {
        requests: amounts(&[("cpu", 1_000), ("nvidia.com/gpu", 1), ("pods", 1)]),
        ..PodShape::default()
    };
    let (uid, name) = (Uid(number.into()), format!("train-{number}"));
    let owner = OwnerReference {
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        name: "train".into(),
        uid: Uid(5 << 64),
    };
    Object::Pod(PodFacts {
        created_ms,
        owner: Some(owner),
        ..PodFacts::new(uid, "default", &name, Arc::new(shape))
    })
}

#[test]
fn a_job_that_asks_for_more_pods_loses_none_after_a_restart() {
    let mut world = World::new();
    world.apply(node("n1", 3));
    world.apply(job(3));
    for number in 1..=3 {
        world.apply(pod_of_job(number, START_MS - 60_000));
    }
    world.settle();
    assert_eq!(world.binds, 3);
    world.apply(job(5));
    for number in 4..=5 {
        world.apply(pod_of_job(number, START_MS));
    }
    world.settle();
    world.take_over();
    world.settle();
    assert_eq!(world.gang("default/job/train").status.phase, Phase::Pending);
    check_left_alone(&mut world);
}

/// A role asks for more pods, and the gang for more of its slices.
#[test]
fn raised_minima_of_sub_groups_evict_nobody_after_a_restart() {
    let slices = |minimum: u32| {
        let slices = ["a", "b", "c"].map(|name| leaf(name, "all", minimum));
        let groups: Vec<_> = [inner("all", "")].into_iter().chain(slices).collect();
        gang("g", 1).sub_groups(&groups)
    };
    let some = |minimum: u32, of: u32| {
        let mut group = slices(minimum);
        group.sub_groups[0].min_sub_groups = Some(of);
        group
    };
    for (changed, what) in [(some(2, 3), "slices"), (some(3, 2), "members")] {
        for told in [true, false] {
            let mut world = World::new();
            world.loses_statuses = !told;
            world.apply(node("n1", 4));
            world.apply(some(2, 2));
            for slice in ["a", "b", "c"] {
                for number in 0..3 {
                    world.apply(pod(&format!("{slice}{number}"), 1).of_leaf("g", slice));
                }
            }
            world.settle();
            assert_eq!(world.binds, 4, "{what}");
            pass(&mut world, 5_000);
            world.apply(changed.clone().generation(2));
            world.take_over();
            pass(&mut world, 180_000);
            assert_eq!(world.evictions, 0, "{what}, told: {told}");
        }
    }
}

fn staleness(world: &World) -> Option<Staleness> {
    world.gang("default/g").status.staleness
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
            world.apply(pod("d", 2).of("g"));
            world.settle();
        }
        let not_stale = staleness(&world).unwrap();
        assert!(!not_stale.stale && not_stale.since_ms < world.now_ms);
        world.delete("c");
        world.settle();
        let lost_ms = world.now_ms;
        pass(&mut world, 40_000);
        for _ in 0..2 {
            world.take_over();
            world.settle();
            assert_eq!(staleness(&world), stale_since(lost_ms));
            pass(&mut world, 9_000);
        }
        assert_eq!(world.evictions, 0);
        pass(&mut world, 4_000);
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
    pass(&mut world, 20_000);
    world.loses_binds = true;
    world.apply(pod("d", 1).of("g").late());
    world.settle();
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
    let roles = gang("g", 1).sub_groups(&[leaf("a", "", 2), leaf("b", "", 2)]);
    let mut world = World::new();
    world.apply(node("n1", 6));
    world.apply(roles);
    for name in ["a0", "a1", "a2", "a3", "b0", "b1"] {
        world.apply(pod(name, 1).of_leaf("g", &name[..1]));
    }
    world.settle();
    assert_eq!(world.binds, 6);
    pass(&mut world, 5_000);
    world.delete("b1");
    world.take_over();
    pass(&mut world, 63_000);
    assert_eq!(world.evictions, 5);
}

/// One role has a member more and the other a member less than the status tells, which is old:
/// the sum is what it was.
#[test]
fn a_role_below_its_minimum_is_noticed_behind_a_surplus_that_was_never_told() {
    let roles = gang("g", 1).sub_groups(&[leaf("a", "", 2), leaf("b", "", 1)]);
    let mut world = World::new();
    world.apply(node("n1", 6));
    world.apply(roles);
    for name in ["a0", "a1", "b0"] {
        world.apply(pod(name, 1).of_leaf("g", &name[..1]));
    }
    world.settle();
    pass(&mut world, 5_000);
    world.loses_statuses = true;
    world.apply(pod("b1", 1).of_leaf("g", "b"));
    world.settle();
    assert_eq!(world.binds, 4);
    world.delete("a1");
    world.take_over();
    world.loses_statuses = false;
    pass(&mut world, 59_000);
    assert_eq!(world.evictions, 0);
    pass(&mut world, 3_000);
    assert_eq!(world.evictions, 3);
}

#[test]
fn a_member_that_did_its_part_and_was_cleaned_away_is_not_lost_after_a_restart() {
    let mut world = three_of(gang("g", 3));
    world.end("c");
    world.settle();
    world.delete("c");
    world.settle();
    pass(&mut world, 5_000);
    world.take_over();
    check_left_alone(&mut world);
}

/// The status tells of members that ran before, and is not believed of those that run now.
#[test]
fn a_half_bound_gang_is_unwound_in_spite_of_an_old_status() {
    for stale in [false, true] {
        let mut world = World::new();
        world.apply(node("n1", 1));
        let mut group = gang("g", 2);
        world.apply(group.clone());
        world.apply(pod("a", 1).of("g"));
        world.settle();
        world.apply(pod("b", 1).of("g").on("n1"));
        let mut status = world.gang("default/g").status;
        let since_ms = START_MS - 60_000;
        status.scheduled_since_ms = since_ms;
        status.staleness = Some(Staleness { stale, since_ms });
        group.status = Some(status);
        world.apply(group);
        world.take_over();
        pass(&mut world, 1_900);
        assert_eq!(world.evictions, 1, "stale: {stale}");
        assert_eq!(world.cause, Some(EvictionCause::Unwind));
    }
}
