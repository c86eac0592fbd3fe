//! Another gpu-batch, with another `schedulerName`, sees the same Queues and PodGroups.

use gpu_batch_policies::event::{Object, ObjectKey};
use gpu_batch_policies::facts::{GroupSource, PodGroupFacts, QueueFacts};
use gpu_batch_testing::{Sketch, World, gang, node, pod, queue};

/// A queue whose status the other one wrote.
fn others_queue() -> Sketch<QueueFacts> {
    queue("q").with(|queue| queue.is_told_by_other = true)
}

/// A PodGroup whose status the other one wrote.
fn others_group() -> Sketch<PodGroupFacts> {
    let group = gang("g", 1).queue("q");
    group.with(|group| group.is_told_by_other = true)
}

/// Whether the status of the queue is still the one that the other gpu-batch wrote.
fn is_left_alone(world: &World) -> bool {
    match &world.objects[&ObjectKey::Queue("q".into())] {
        Object::Queue(queue) => queue.is_told_by_other,
        other => panic!("{other:?} is no queue"),
    }
}

#[test]
fn a_queue_that_another_one_tells_of_is_told_of_once_a_gang_is_in_it() {
    let mut world = World::of((node("n1", 4), others_queue()));
    world.run(60_000);
    assert!(is_left_alone(&world));
    world.then(pod("a", 1).queue("q"));
    world.run(60_000);
    assert!(!is_left_alone(&world));
}

#[test]
fn a_queue_that_is_taken_from_us_is_taken_back_five_times() {
    let mut world = World::of((node("n1", 4), queue("q"), pod("a", 1).queue("q")));
    for time in 1..=6 {
        world.run(10_000);
        // The watch shows what was written last.
        world.then(queue("q"));
        world.then(others_queue());
        world.run(10_000);
        assert_eq!(is_left_alone(&world), time == 6, "{time}");
    }
    world.then(pod("b", 1).queue("q"));
    world.run(60_000);
    assert!(is_left_alone(&world));
    world.then(queue("q"));
    world.then(others_queue());
    world.take_over();
    world.run(60_000);
    assert!(!is_left_alone(&world), "a new leader tells of the queue");
}

/// The write of the other one came after ours, and the watch shows it alone.
#[test]
fn a_queue_is_taken_back_where_our_own_write_was_never_shown() {
    let mut world = World::of((node("n1", 4), others_queue(), pod("a", 1).queue("q")));
    world.run(10_000);
    assert!(!is_left_alone(&world), "we wrote");
    world.then(others_queue());
    world.run(10_000);
    assert!(!is_left_alone(&world), "we wrote again");
}

/// Both wrote the status of a new queue, the other one last.
#[test]
fn a_queue_that_was_told_of_by_both_while_it_was_empty_is_the_one_with_gangs() {
    let mut world = World::of((node("n1", 4), queue("q")));
    world.run(10_000);
    world.then(others_queue());
    world.run(10_000);
    assert!(is_left_alone(&world));
    world.then(pod("a", 1).queue("q"));
    world.run(60_000);
    assert!(!is_left_alone(&world));
}

/// Both schedulers write when the same second is over, so each time the one without gangs in the
/// queue sees the write of the one with gangs only after it has written, too, and the API server
/// takes its write last.
#[test]
fn two_that_write_at_once_leave_the_queue_to_the_one_with_gangs() {
    let mut day = World::of((node("n1", 4), queue("q"), pod("a", 1).queue("q")));
    let mut night = World::of((node("n1", 4), queue("q")));
    let mut written = (0, 0);
    for _ in 0..10 {
        day.run(1_000);
        night.run(1_000);
        if day.queue_statuses > written.0 {
            night.then(others_queue());
        }
        if night.queue_statuses > written.1 {
            day.then(others_queue());
            night.then(queue("q"));
        }
        written = (day.queue_statuses, night.queue_statuses);
    }
    assert!(!is_left_alone(&day), "{written:?}");
}

#[test]
fn a_group_without_pods_of_ours_that_another_one_tells_of_is_left_alone() {
    let mut world = World::of((node("n1", 4), queue("q"), others_group()));
    world.run(60_000);
    assert_eq!((world.gang_statuses, &*world.told), (0, &[] as &[String]));
    let status = world.queue("q");
    assert_eq!((status.pending, status.running), (0, 0));
    world.then(pod("a", 1).of("g"));
    world.run(10_000);
    assert_eq!(world.binds, 1);
    let key = ObjectKey::PodGroup(GroupSource::GpuBatch, "default".into(), "g".into());
    match &world.objects[&key] {
        Object::PodGroup(group) => assert!(!group.is_told_by_other && group.status.is_some()),
        other => panic!("{other:?} is no group"),
    }
}
