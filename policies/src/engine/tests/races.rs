//! The world changes between a decision and what comes of it.

use super::world::{WithTopology, World, gang, node, pod, queue, topology};
use crate::facts::Uid;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::status::Phase;
use alloc::{string::String, vec::Vec};

/// Another scheduler binds a member after we have decided. The answer to our bind comes before the
/// watch tells of it, or after.
fn check_rival(told_first: bool) {
    let mut world = World::new();
    world.apply(node("n1", 4));
    world.apply(node("n2", 8));
    world.apply(gang("g", 2));
    world.rival = Some(("a", "n2", told_first));
    for name in ["a", "b"] {
        world.apply(pod(name, 2).of("g"));
    }
    world.settle();
    // It counts where it is and nowhere else, and is not bound again.
    assert_eq!(world.node_of("a").as_deref(), Some("n2"));
    assert_eq!(world.node_of("b").as_deref(), Some("n1"));
    assert_eq!(world.binds, 2);
    assert_eq!(world.gang("default/g").status.phase, Phase::Running);
    world.apply(pod("fills-n1", 2));
    world.apply(pod("fills-n2", 6));
    world.settle();
    assert_eq!(world.node_of("fills-n1").as_deref(), Some("n1"));
    assert_eq!(world.node_of("fills-n2").as_deref(), Some("n2"));
}

#[test]
fn a_pod_that_somebody_else_binds_between_decision_and_bind_counts_where_it_is() {
    check_rival(false);
    check_rival(true);
}

/// The leader before has sent a member to another zone, and its request comes before ours.
#[test]
fn members_not_sent_yet_join_one_that_is_bound_in_another_domain() {
    let mut settings = Settings::default();
    settings.in_flight.actions = 1;
    let mut world = World::with(settings);
    world.apply(topology("default", &["zone"]));
    world.apply(node("n1", 4).label("zone", "z1"));
    world.apply(node("n2", 8).label("zone", "z2"));
    world.apply(gang("g", 3).required("zone"));
    world.rival = Some(("a", "n2", false));
    for name in ["a", "b", "c"] {
        world.apply(pod(name, 1).of("g"));
    }
    world.settle();
    for name in ["a", "b", "c"] {
        assert_eq!(world.node_of(name).as_deref(), Some("n2"));
    }
    assert_eq!((world.binds, world.evictions), (3, 0));
}

#[test]
fn a_node_that_is_made_again_with_another_shape_has_its_new_room_only() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(pod("old", 6));
    world.settle();
    assert_eq!(world.node_of("old").as_deref(), Some("n1"));

    let mut smaller = node("n1", 4);
    smaller.uid = Uid(7);
    world.lose_node("n1");
    world.apply(smaller);
    world.apply(pod("eight", 8));
    world.apply(pod("four", 4));
    world.settle();
    // The pod of the old machine takes all of the new one until it is cleaned away.
    assert_eq!(world.node_of("four"), None);
    let of_nodes = world.told.iter().filter(|line| line.starts_with("Node "));
    assert_eq!(of_nodes.count(), 0, "{:?}", world.told);
    world.delete("old");
    world.settle();
    assert_eq!(world.node_of("four").as_deref(), Some("n1"));
    assert_eq!(world.node_of("eight"), None);
    assert_eq!(world.reason_of_pod("eight"), Some(Reason::DoesNotFit));
}

#[test]
fn a_gang_whose_node_is_made_again_while_it_is_bound_is_whole_or_waits() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    for name in ["a", "b"] {
        world.apply(pod(name, 4).of("g"));
    }
    // The binds are sent, and the node is another one before the answers come.
    assert!(world.step());
    let mut smaller = node("n1", 2);
    smaller.uid = Uid(7);
    world.lose_node("n1");
    world.apply(smaller);
    world.settle();
    for name in ["a", "b"] {
        assert_eq!(world.node_of(name).as_deref(), Some("n1"));
        world.delete(name);
    }
    world.apply(node("n2", 8));
    for name in ["c", "d"] {
        world.apply(pod(name, 4).of("g"));
    }
    world.settle();
    assert_eq!(world.node_of("c").as_deref(), Some("n2"));
    assert_eq!(world.node_of("d").as_deref(), Some("n2"));
}

#[test]
fn the_work_of_a_deleted_queue_counts_as_foreign_at_once() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(queue("q").limit(8));
    world.apply(pod("a", 6).on("n1").queue("q"));
    world.settle();
    world.lose_queue("q");
    // The audit of each step compares what is divided with what it should be.
    world.settle();
    world.apply(queue("q"));
    world.settle();
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
}

/// The first members are bound, and the watch has not said so yet. They are ours all the same, so
/// the gang's next ones go near to them, and not near to one whose answer is still out.
#[test]
fn who_is_bound_before_the_watch_says_so_is_no_stranger() {
    let mut world = World::new();
    world.late_watch = true;
    world.apply(topology("default", &["rack"]));
    world.apply(node("n1", 2).label("rack", "r1"));
    world.apply(node("n2", 4).label("rack", "r2"));
    world.apply(gang("g", 2));
    for name in ["a", "b"] {
        world.apply(pod(name, 1).of("g"));
    }
    assert!(world.step());
    world.loses_binds = true;
    world.apply(pod("c", 1).of("g"));
    assert!(world.step());
    world.apply(node("n3", 2).label("rack", "r1"));
    world.apply(pod("d", 1).of("g"));
    assert!(world.step());
    assert_eq!(world.nodes_of(&["a", "b"]), ["n1".into(), "n1".into()]);
    assert_eq!(world.node_of("c").as_deref(), Some("n2"));
    assert_eq!(world.node_of("d").as_deref(), Some("n3"));
}

/// What the world was told of a gang after so many milliseconds in steps of 100.
fn after(world: &mut World, milliseconds: u64) -> (Option<Reason>, String) {
    for _ in 0..milliseconds / 100 {
        world.pass(100);
        world.settle();
    }
    (world.reason("default/g"), world.message("default/g"))
}

#[test]
fn what_the_api_server_says_of_uncertain_bindings_is_told_from_the_second_failure_on() {
    let mut world = World::new();
    world.loses_binds = true;
    world.apply(node("n1", 8));
    world.apply(gang("g", 1));
    world.apply(pod("a", 4).of("g"));
    world.settle();
    let said =
        "pod a is not bound to node n1: 2 tries have failed, the last with: the answer was lost";
    assert_eq!(
        after(&mut world, 0),
        (Some(Reason::BindingFailed), said.into())
    );
    let report = world.pod("a");
    assert!(report.binding, "{report:?}");
    assert_eq!(report.node.as_deref(), Some("n1"), "the room is kept");
    assert_eq!(report.reason, Some(Reason::BindingFailed));
    after(&mut world, 3_000);
    let told = |line: &String| line.starts_with("PodGroup g: BindingFailed: pod a is not bound");
    assert_eq!(world.told.iter().filter(|line| told(line)).count(), 1);
    let condition = world.engine().state.pods.iter().next();
    let condition = condition.and_then(|(_, pod)| pod.own.as_ref()?.unscheduled.clone());
    assert_eq!(&*condition.unwrap().reason, "BindingFailed");

    world.loses_binds = false;
    assert_eq!(after(&mut world, 8_000).0, None, "tried again within 8 s");
    assert!(!world.pod("a").binding);
}

#[test]
fn bindings_that_the_api_server_throttles_are_told_from_the_second_time_on() {
    let mut world = World::new();
    world.throttled = Vec::from(["b"]);
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    for name in ["a", "b"] {
        world.apply(pod(name, 4).of("g"));
    }
    world.settle();
    assert_eq!(after(&mut world, 0).0, None, "once is no news");
    let said = "pod b is not bound to node n1: the API server throttles requests (429); it is asked \
                again when it says";
    assert_eq!(
        after(&mut world, 1_000),
        (Some(Reason::BindingFailed), said.into())
    );
    assert_eq!(world.pod("b").reason, Some(Reason::BindingFailed));
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
    let statuses = world.gang_statuses;
    after(&mut world, 60_000);
    assert!(world.gang_statuses <= statuses + 1, "not with every try");
    let told = |line: &String| line.starts_with("PodGroup g: BindingFailed: pod b is not bound");
    assert_eq!(world.told.iter().filter(|line| told(line)).count(), 1);

    world.throttled.clear();
    assert_eq!(after(&mut world, 1_000).0, None);
    assert_eq!(world.gang("default/g").status.phase, Phase::Running);
}

#[test]
fn a_refused_binding_gives_the_room_back_and_is_tried_again_soon() {
    let mut world = World::new();
    world.refused = Vec::from(["a"]);
    world.apply(node("n1", 8));
    world.apply(gang("g", 1));
    world.apply(pod("a", 8).of("g"));
    world.settle();
    let said = "the API server refused to bind pod a: a webhook says no";
    assert_eq!(
        after(&mut world, 60_000),
        (Some(Reason::BindingFailed), said.into())
    );
    world.refused.clear();
    assert_eq!(after(&mut world, 8_000).0, None, "tried again within 8 s");
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
}
