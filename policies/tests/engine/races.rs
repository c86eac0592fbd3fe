//! The world changes between a decision and what comes of it.

use gpu_batch_policies::command::Action;
use gpu_batch_policies::event::Outcome;
use gpu_batch_policies::facts::Uid;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::Settings;
use gpu_batch_policies::status::Phase;
use gpu_batch_testing::{
    To, World, conflict, gang, lost, node, pod, queue, refused, throttled, topology,
};

/// One step, in which the engine asks to bind pod `a`: another scheduler has just bound it to node
/// `n2`. The watch tells of it before the answer to our bind comes, or never.
fn step_behind_rival(world: &mut World, told_first: bool) {
    let mut rivals = 0;
    for command in world.commands() {
        let rival = matches!(&command.action, Action::Bind(bind) if &*bind.pod.name == "a");
        if rival {
            rivals += 1;
            world.change("a", |pod| pod.node = Some("n2".into()));
            if !told_first {
                world.events.pop();
            }
        }
        world.carry_out(command, if rival { conflict() } else { Outcome::Done });
    }
    assert_eq!(rivals, 1);
}

/// Another scheduler binds a member after we have decided. The answer to our bind comes before the
/// watch tells of it, or after.
fn check_rival(told_first: bool) {
    let mut world = World::new();
    world.apply((node("n1", 4), node("n2", 8), gang("g", 2)));
    world.apply(pod("a b", 2).of("g"));
    step_behind_rival(&mut world, told_first);
    world.settle();
    // It counts where it is and nowhere else, and is not bound again.
    assert_eq!(world.places("a"), "n2");
    assert_eq!(world.places("b"), "n1");
    assert_eq!(world.binds, 2);
    assert_eq!(world.phase("g"), Phase::Running);
    world.then((pod("fills-n1", 2), pod("fills-n2", 6)));
    assert_eq!(world.places("fills-n1"), "n1");
    assert_eq!(world.places("fills-n2"), "n2");
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
    world.apply((
        topology("default", "zone"),
        node("n1", 4).label("zone", "z1"),
        node("n2", 8).label("zone", "z2"),
        gang("g", 3).required("zone"),
        pod("a b c", 1).of("g"),
    ));
    step_behind_rival(&mut world, false);
    world.settle();
    assert_eq!(world.places("a b c"), "n2 n2 n2");
    assert_eq!((world.binds, world.evictions), (3, 0));
}

#[test]
fn a_node_that_is_made_again_with_another_shape_has_its_new_room_only() {
    let mut world = World::of((node("n1", 8), pod("old", 6)));
    assert_eq!(world.places("old"), "n1");

    let smaller = node("n1", 4).with(|node| node.uid = Uid(7));
    world.lose_node("n1");
    world.then((smaller, pod("eight", 8), pod("four", 4)));
    // The pod of the old machine takes all of the new one until it is cleaned away.
    assert_eq!(world.places("four"), "-");
    assert_eq!(world.told_of("Node "), Vec::<&str>::new());
    world.delete("old");
    world.settle();
    assert_eq!(world.places("four"), "n1");
    assert_eq!(world.places("eight"), "-");
    assert_eq!(world.reason_of_pod("eight"), Some(Reason::DoesNotFit));
}

#[test]
fn a_gang_whose_node_is_made_again_while_it_is_bound_is_whole_or_waits() {
    let mut world = World::new();
    world.apply((node("n1", 8), gang("g", 2), pod("a b", 4).of("g")));
    // The binds are sent, and the node is another one before the answers come.
    assert!(world.step());
    let smaller = node("n1", 2).with(|node| node.uid = Uid(7));
    world.lose_node("n1");
    world.then(smaller);
    for name in ["a", "b"] {
        assert_eq!(world.places(name), "n1");
        world.delete(name);
    }
    world.then((node("n2", 8), pod("c d", 4).of("g")));
    assert_eq!(world.places("c"), "n2");
    assert_eq!(world.places("d"), "n2");
}

#[test]
fn the_work_of_a_deleted_queue_counts_as_foreign_at_once() {
    let mut world = World::of((
        node("n1", 8),
        queue("q").limit(8),
        pod("a", 6).on("n1").queue("q"),
    ));
    world.lose_queue("q");
    // The audit of each step compares what is divided with what it should be.
    world.settle();
    world.then(queue("q"));
    assert_eq!(world.places("a"), "n1");
}

/// The first members are bound, and the watch has not said so yet. They are ours all the same, so
/// the gang's next ones go near to them, and not near to one whose answer is still out.
#[test]
fn who_is_bound_before_the_watch_says_so_is_no_stranger() {
    let mut world = World::new();
    world.late_watch = true;
    world.apply((
        topology("default", "rack"),
        node("n1", 2).label("rack", "r1"),
        node("n2", 4).label("rack", "r2"),
        gang("g", 2),
        pod("a b", 1).of("g"),
    ));
    assert!(world.step());
    world.answers(To::Bind, lost());
    world.apply(pod("c", 1).of("g"));
    assert!(world.step());
    world.apply((node("n3", 2).label("rack", "r1"), pod("d", 1).of("g")));
    assert!(world.step());
    assert_eq!(world.nodes_of("a b"), ["n1", "n1"]);
    assert_eq!(world.places("c"), "n2");
    assert_eq!(world.places("d"), "n3");
}

/// What the world was told of a gang after so many milliseconds in steps of 100.
fn after(world: &mut World, milliseconds: u64) -> (Option<Reason>, String) {
    world.run(milliseconds);
    (world.reason("g"), world.message("g"))
}

#[test]
fn what_the_api_server_says_of_uncertain_bindings_is_told_from_the_second_failure_on() {
    let mut world = World::new();
    world.answers(To::Bind, lost());
    world.then((node("n1", 8), gang("g", 1), pod("a", 4).of("g")));
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
    let told = world.told_of("PodGroup g: BindingFailed: pod a is not bound");
    assert_eq!(told.len(), 1);
    assert_eq!(world.condition("a").0, "BindingFailed");

    world.answers_again(&To::Bind);
    assert_eq!(after(&mut world, 8_000).0, None, "tried again within 8 s");
    assert!(!world.pod("a").binding);
}

#[test]
fn bindings_that_the_api_server_throttles_are_told_from_the_second_time_on() {
    let mut world = World::new();
    world.answers(To::BindOf("b"), throttled());
    world.then((node("n1", 8), gang("g", 2), pod("a b", 4).of("g")));
    assert_eq!(after(&mut world, 0).0, None, "once is no news");
    let said = "pod b is not bound to node n1: the API server throttles requests (429); it is asked \
                again when it says";
    assert_eq!(
        after(&mut world, 1_000),
        (Some(Reason::BindingFailed), said.into())
    );
    assert_eq!(world.pod("b").reason, Some(Reason::BindingFailed));
    assert_eq!(world.places("a"), "n1");
    let statuses = world.gang_statuses;
    after(&mut world, 60_000);
    assert!(world.gang_statuses <= statuses + 1, "not with every try");
    let told = world.told_of("PodGroup g: BindingFailed: pod b is not bound");
    assert_eq!(told.len(), 1);

    world.answers_again(&To::BindOf("b"));
    assert_eq!(after(&mut world, 1_000).0, None);
    assert_eq!(world.phase("g"), Phase::Running);
}

#[test]
fn a_refused_binding_gives_the_room_back_and_is_tried_again_soon() {
    let mut world = World::new();
    world.answers(To::BindOf("a"), refused());
    world.then((node("n1", 8), gang("g", 1), pod("a", 8).of("g")));
    let said = "the API server refused to bind pod a: a webhook says no";
    assert_eq!(
        after(&mut world, 60_000),
        (Some(Reason::BindingFailed), said.into())
    );
    world.answers_again(&To::BindOf("a"));
    assert_eq!(after(&mut world, 8_000).0, None, "tried again within 8 s");
    assert_eq!(world.places("a"), "n1");
}
