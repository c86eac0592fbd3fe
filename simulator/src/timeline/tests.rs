use super::*;
use crate::objects::{node, pod};
use gpu_batch_policies::facts::{PodFacts, Uid};

/// A world of one node with 8 GPUs, at time 0.
fn timeline() -> Timeline {
    let node = Object::Node(node("n", Uid(1), 64, 8, &[]));
    Timeline::new(Settings::default(), 0, vec![node])
}

fn arrival(number: u32, now_ms: UnixMs, gpus: u64) -> Event {
    let name = format!("p{number}");
    let facts: PodFacts = pod(&name, uid(number), now_ms, 1, gpus);
    Object::Pod(facts).into()
}

fn uid(number: u32) -> Uid {
    Uid(u128::from(number) + 100)
}

fn end(number: u32) -> Event {
    Event::Deleted(ObjectKey::Pod(uid(number)))
}

fn names(moment: &Moment) -> Vec<&str> {
    let names = moment.bound.iter().map(|bind| &*bind.pod.name);
    names.collect()
}

#[test]
fn who_arrives_is_bound_in_the_same_moment() {
    let mut timeline = timeline();
    let moment = timeline.advance(0, [arrival(1, 0, 2), arrival(2, 0, 6)]);
    assert_eq!(names(&moment), ["p1", "p2"]);
    assert!(timeline.engine().is_idle());
    assert_eq!(timeline.engine().audit(), Vec::<String>::new());
    assert_eq!(timeline.next_ms(), None);
}

#[test]
fn what_ends_leaves_room_for_what_arrives_in_the_same_moment() {
    let mut timeline = timeline();
    timeline.advance(0, [arrival(1, 0, 8)]);
    timeline.schedule(1_000, end(1));
    assert_eq!(timeline.next_ms(), Some(1_000));
    let moment = timeline.advance(1_000, [arrival(2, 1_000, 8)]);
    assert_eq!(names(&moment), ["p2"]);
}

#[test]
fn of_one_time_what_was_scheduled_first_happens_first() {
    let mut timeline = timeline();
    timeline.schedule(2_000, end(9));
    timeline.schedule(1_000, arrival(1, 1_000, 8));
    timeline.schedule(1_000, end(1));
    timeline.schedule(1_000, arrival(2, 1_000, 8));
    let moment = timeline.advance(1_000, []);
    assert_eq!(names(&moment), ["p2"], "p1 has come and gone");
    assert_eq!(timeline.next_ms(), Some(2_000));
}

#[test]
fn a_batch_is_known_as_a_whole_before_anything_is_decided() {
    let mut timeline = timeline();
    let mut important = pod("p2", uid(2), 0, 1, 8);
    important.priority = 1;
    let moment = timeline.advance(0, [arrival(1, 0, 8), Object::Pod(important).into()]);
    assert_eq!(names(&moment), ["p2"]);
}

#[test]
fn the_engine_goes_on_until_it_rests() {
    let nodes = (0..2_000).map(|number: u32| {
        let name = format!("n{number}");
        Object::Node(node(&name, Uid(u128::from(number) + 1_000_000), 64, 8, &[]))
    });
    let mut timeline = Timeline::new(Settings::default(), 0, nodes.collect());
    let moment = timeline.advance(0, (0..4_000).map(|number| arrival(number, 0, 4)));
    assert_eq!(moment.bound.len(), 4_000);
    assert!(timeline.steps() > 2, "one slice is not enough for so many");
}

#[test]
fn time_that_goes_back_stands_still() {
    let mut timeline = timeline();
    timeline.advance(5_000, []);
    timeline.schedule(1_000, arrival(1, 1_000, 1));
    assert_eq!(timeline.next_ms(), Some(5_000));
    assert_eq!(names(&timeline.advance(2_000, [])), ["p1"]);
    assert_eq!(timeline.now_ms(), 5_000);
}

#[test]
fn what_is_left_of_a_gang_is_evicted_and_gone() {
    let mut timeline = timeline();
    let member = |number: u32| {
        let mut facts = pod(&format!("p{number}"), uid(number), 0, 1, 1);
        facts.hints.min_member = Some(2);
        facts.owner = Some(gpu_batch_policies::facts::OwnerReference {
            api_version: "v1".into(),
            kind: "Run".into(),
            name: "r".into(),
            uid: Uid(7),
        });
        Event::from(Object::Pod(facts))
    };
    let moment = timeline.advance(0, [member(1), member(2)]);
    assert_eq!(names(&moment), ["p1", "p2"]);
    timeline.advance(1_000, [end(1)]);
    let due_ms = timeline.next_ms().unwrap();
    assert_eq!(
        due_ms, 61_000,
        "the grace period of a gang below its minimum"
    );
    let moment = timeline.advance(due_ms, []);
    assert_eq!(moment.evicted.len(), 1);
    assert_eq!(timeline.engine().pod_reports().len(), 0);
}

#[test]
fn what_has_ended_is_forgotten() {
    let mut timeline = timeline();
    let before = timeline.engine().inventory();
    for number in 0..1_000u32 {
        let now_ms = u64::from(number) * 1_000;
        timeline.advance(now_ms, [arrival(number, now_ms, 3)]);
        timeline.schedule(now_ms + 2_500, end(number));
    }
    while let Some(next_ms) = timeline.next_ms() {
        timeline.advance(next_ms, []);
    }
    let engine = timeline.engine();
    assert_eq!(engine.inventory(), before);
    assert!(engine.gang_reports().is_empty() && engine.is_idle());
    assert_eq!(engine.in_flight(), 0);
}
