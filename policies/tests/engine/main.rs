//! The engine in small worlds that do what they are told, through the door that every shell uses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod backfill;
mod behind;
mod cards;
mod cheapest;
mod choices;
mod claimants;
mod counted;
mod delayed;
mod disks;
mod disturbed;
mod extended;
mod faults;
mod first_look;
mod foreseen;
mod free_volumes;
mod freed;
mod gpus;
mod health;
mod histories;
mod impossible;
mod instances;
mod layouts;
mod line;
mod locks;
mod model_claims;
mod models;
mod movers;
mod needed;
mod nominated;
mod numa;
mod obtainable;
mod others;
mod owners;
mod partial;
mod parts;
mod past_use;
mod placement;
mod planned;
mod preferences;
mod protected;
mod quarantine;
mod races;
mod related;
mod requests;
mod reservations;
mod review;
mod search;
mod shared_volumes;
mod slices;
mod sub_groups;
mod sums;
mod takings;
mod telling;
mod topologies;
mod unforeseen;
mod useful;
mod verdicts;
mod volumes;

use gpu_batch_policies::facts::Placement;
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::report::PodState;
use gpu_batch_policies::settings::Settings;
use gpu_batch_policies::status::Phase;
use gpu_batch_testing::{To, World, gang, lost, node, pod, queue, topology};

#[test]
fn a_pod_is_bound_to_a_node_with_room() {
    let world = World::of((node("n1", 8), pod("a", 1)));
    assert_eq!(world.places("a"), "n1");
    assert_eq!(world.binds, 1);
    // This world tells of the pod before it ends the request, as watches often do.
    assert_eq!(world.scheduled, 1);
}

#[test]
fn binpack_fills_the_fullest_node_first() {
    let world = World::of((node("n1 n2 n3", 8), pod("a", 4).on("n2"), pod("b", 4)));
    assert_eq!(world.places("b"), "n2");
}

#[test]
fn a_gang_starts_whole_or_not_at_all() {
    let mut world = World::of((node("n1", 8), gang("g", 3), pod("a b c", 4).of("g")));
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
    world.then(node("n2", 8));
    assert_eq!(world.binds, 3);
    assert_eq!(world.phase("g"), Phase::Running);
}

#[test]
fn a_gang_below_its_minimum_waits_for_members() {
    let mut world = World::of((node("n1", 8), gang("g", 2), pod("a", 1).of("g")));
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("g"), Some(Reason::WaitingForMembers));
    world.then(pod("b", 1).of("g"));
    assert_eq!(world.binds, 2);
}

#[test]
fn a_required_rack_holds_the_whole_gang() {
    let mut world = World::new();
    world.apply(topology("default", "zone rack"));
    for (name, rack) in [("n1", "r1"), ("n2", "r2"), ("n3", "r2")] {
        world.apply(node(name, 8).label("zone", "z1").label("rack", rack));
    }
    world.then((gang("g", 2).required("rack"), pod("a b", 8).of("g")));
    assert_eq!(world.nodes_of("a b"), ["n2", "n3"]);
}

#[test]
fn racks_of_one_name_under_two_zones_are_two_racks() {
    let mut world = World::new();
    world.apply(topology("default", "zone rack"));
    for (name, zone) in [("n1", "z1"), ("n2", "z2")] {
        world.apply(node(name, 8).label("zone", zone).label("rack", "rack-1"));
    }
    world.then((gang("g", 2).required("rack"), pod("a b", 8).of("g")));
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
    assert!(
        world.message("g").contains("in one rack"),
        "{}",
        world.message("g")
    );
}

#[test]
fn free_gpus_of_4_and_3_hold_members_of_2_3_and_2() {
    let mut world = World::new();
    world.apply((node("n4", 4), node("n3", 3), gang("g", 3)));
    for (name, gpus) in [("a", 2), ("b", 3), ("c", 2)] {
        world.apply(pod(name, gpus).of("g"));
    }
    world.settle();
    assert_eq!(world.binds, 3);
}

#[test]
fn a_limit_holds_and_opens_when_work_ends() {
    let mut world = World::of((
        node("n1", 8),
        queue("team").limit(4),
        pod("a", 4).queue("team"),
    ));
    world.then(pod("b", 4).queue("team"));
    assert_eq!(world.reason("pod/b"), Some(Reason::OverLimit));
    world.end("a");
    world.settle();
    assert!(world.is_placed("b"));
}

#[test]
fn an_unknown_queue_is_named() {
    let mut world = World::of((node("n1", 8), pod("a", 1).queue("nobody")));
    assert_eq!(world.reason("pod/a"), Some(Reason::QueueNotFound));
    world.then(queue("nobody"));
    assert!(world.is_placed("a"));
}

#[test]
fn surplus_members_follow_the_minimum() {
    let world = World::of((node("n1", 8), gang("g", 1), pod("a b c", 4).of("g")));
    assert_eq!(world.binds, 2);
    assert_eq!(world.phase("g"), Phase::Running);
    assert_eq!(world.reason_of_pod("c"), Some(Reason::DoesNotFit));
}

#[test]
fn a_gated_pod_waits_behind_its_gate() {
    let mut world = World::of((node("n1", 8), pod("a", 1).gate("example.com/hold")));
    assert_eq!(world.reason("pod/a"), Some(Reason::SchedulingGated));
    assert_eq!(world.pod("a").state, PodState::Gated);
    world.then(pod("a", 1));
    assert!(world.is_placed("a"));
}

#[test]
fn work_without_gpus_keeps_away_from_gpu_nodes() {
    let world = World::of((node("gpu", 8), node("plain", 0), pod("a", 0)));
    assert_eq!(world.places("a"), "plain");
}

#[test]
fn spread_puts_members_far_apart() {
    let mut world = World::new();
    world.apply(topology("default", "rack"));
    for (name, rack) in [("n1", "r1"), ("n2", "r1"), ("n3", "r2"), ("n4", "r2")] {
        world.apply(node(name, 8).label("rack", rack));
    }
    world.then((
        gang("g", 2).placed(Placement::Spread),
        pod("a b", 1).of("g"),
    ));
    let nodes = world.nodes_of("a b");
    assert!(*nodes[0] < *"n3" && *nodes[1] >= *"n3", "{nodes:?}");
}

#[test]
fn a_gang_that_stays_below_its_minimum_is_evicted_whole() {
    let mut world = World::of((node("n1", 8), gang("g", 2), pod("a b", 4).of("g")));
    world.delete("b");
    world.settle();
    assert_eq!(world.evictions, 0);
    world.later(61_000);
    assert_eq!(world.evictions, 1);
}

#[test]
fn a_group_that_only_pods_mention_is_missing() {
    let mut world = World::of((node("n1", 8), pod("a", 1).of("later")));
    assert_eq!(world.reason("later"), Some(Reason::PodGroupNotFound));
    world.then(gang("later", 1));
    assert_eq!(world.binds, 1);
    let bind = world.last_bind.expect("a binding");
    assert_eq!(bind.pod_group.as_deref(), Some("later"));
}

#[test]
fn a_refused_gang_is_not_tried_again_for_nothing() {
    let mut world = World::of((node("n1", 4), pod("a", 8)));
    let steps = world.steps;
    world.then(pod("a", 8));
    assert!(world.steps - steps <= 4, "{} steps", world.steps - steps);
    assert_eq!(world.reason("pod/a"), Some(Reason::DoesNotFit));
}

#[test]
fn a_shut_down_finishes_the_gangs_that_have_begun_and_no_other() {
    let mut settings = Settings::default();
    settings.in_flight.actions = 2;
    let mut world = World::with(settings);
    world.apply(node("n1", 8));
    for (name, pods) in [("g", "a b c"), ("h", "d e f")] {
        world.apply((gang(name, 3), pod(pods, 1).of(name)));
    }
    world.step();
    assert_eq!(world.binds, 2);
    world.engine.shut_down();
    world.settle();
    assert_eq!(world.binds, 3);
    assert_eq!(world.nodes_of("a b c").len(), 3);
}

#[test]
fn the_member_that_starts_is_the_one_that_the_limit_allows() {
    let world = World::of((
        node("n1", 8),
        queue("team").limit(4),
        gang("g", 1).queue("team"),
        pod("a-small", 1).of("g"),
        pod("b-large", 8).of("g"),
    ));
    assert!(world.is_placed("a-small"));
    assert_eq!(world.places("b-large"), "-");
}

#[test]
fn a_member_that_was_made_smaller_lets_the_queue_go_on() {
    let mut world = World::of((
        node("n1", 8),
        queue("team").limit(4),
        pod("a", 4).queue("team").on("n1"),
    ));
    world.then(pod("b", 2).queue("team"));
    assert_eq!(world.reason("pod/b"), Some(Reason::OverLimit));
    world.then(pod("a", 2).queue("team").on("n1"));
    assert!(world.is_placed("b"));
}

#[test]
fn changed_settings_take_effect_at_once() {
    let mut settings = Settings::default();
    settings.in_flight.actions = 0;
    settings.staleness_grace_ms = None;
    let mut world = World::with(settings);
    world.apply((
        node("n1 n2", 8),
        pod("a", 1),
        gang("g", 2),
        pod("b c", 1).of("g").on("n1"),
    ));
    world.step();
    assert_eq!(world.binds, 0);
    world.configure(Settings {
        gpu_placement: Placement::Spread,
        staleness_grace_ms: Some(5_000),
        ..Settings::default()
    });
    world.settle();
    assert_eq!(world.binds, 1);
    world.then(pod("d", 1));
    assert_eq!(world.places("d"), "n2", "spread");
    world.delete("c");
    world.settle();
    world.later(6_000);
    assert_eq!(world.evictions, 1, "the new grace period");
}

#[test]
fn a_gang_that_has_recovered_is_not_evicted() {
    let mut settings = Settings::default();
    settings.in_flight.actions = 0;
    let mut world = World::with(settings);
    world.then((node("n1", 8), gang("g", 2), pod("a b", 1).of("g").on("n1")));
    world.delete("b");
    world.settle();
    world.pass(61_000);
    world.step();
    world.apply(pod("c", 1).of("g").on("n1"));
    world.step();
    world.configure(Settings::default());
    world.settle();
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_limit_on_a_model_is_no_lack_of_nodes() {
    let mut world = World::of((
        node("n1", 8).model("H100"),
        queue("team").limit_of("H100", 2),
        pod("a", 4).queue("team"),
    ));
    assert_eq!(world.reason("pod/a"), Some(Reason::OverLimit));
    world.then(queue("team").limit(8));
    assert!(world.is_placed("a"));
}

#[test]
fn a_member_that_is_moved_to_another_gang_starts_no_clock() {
    let mut world = World::of((node("n1", 8), gang("g", 2), pod("a b", 1).of("g").on("n1")));
    world.then(pod("b", 1).on("n1"));
    world.later(61_000);
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_bad_group_says_so_before_it_has_members() {
    let mut world = World::new();
    world.then(gang("g", 2).with(|gang| gang.priority_class = Some("nobody".into())));
    assert_eq!(world.reason("g"), Some(Reason::InvalidSpec));
}

#[test]
fn the_member_that_a_limit_allows_starts_though_an_earlier_one_is_too_large() {
    let world = World::of((
        node("n1", 8),
        queue("team").limit(4),
        gang("g", 1).queue("team"),
        pod("a-large", 8).of("g"),
        pod("b-small", 1).of("g"),
    ));
    assert_eq!(world.places("a-large"), "-");
    assert!(world.is_placed("b-small"));
}

#[test]
fn members_that_are_done_and_cleaned_away_are_not_lost() {
    let mut world = World::of((node("n1", 8), gang("g", 2), pod("a b", 4).of("g")));
    world.end("b");
    world.settle();
    world.delete("b");
    world.settle();
    world.later(61_000);
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_place_that_others_fill_before_it_is_asked_for_is_given_up_with_its_gang() {
    let mut settings = Settings::default();
    settings.in_flight.actions = 0;
    let mut world = World::with(settings);
    world.apply((node("n1", 8), gang("g", 2), pod("a b", 4).of("g")));
    world.step();
    assert!(world.is_placed("a"), "the place is chosen");
    world.apply(pod("x", 4).on("n1"));
    world.configure(Settings::default());
    world.settle();
    assert_eq!(world.binds, 0, "not even the member that would fit");
    assert_eq!(world.reason("g"), Some(Reason::DoesNotFit));
}

#[test]
fn a_status_is_written_once_more_when_an_older_write_may_have_come_late() {
    let mut world = World::new();
    world.answers(To::GangStatus, lost());
    world.apply((node("n1", 8), gang("g", 1), pod("a", 1).of("g")));
    world.step();
    world.step();
    world.answers_again(&To::GangStatus);
    world.later(2_000);
    let written = world.gang_statuses;
    world.later(10_000);
    assert_eq!(world.gang_statuses, written + 1);
    world.later(60_000);
    assert_eq!(world.gang_statuses, written + 1, "and not for ever");
}

#[test]
fn a_bind_that_is_lost_again_and_again_is_sent_ever_more_rarely() {
    let mut world = World::new();
    world.answers(To::Bind, lost());
    world.then((node("n1", 8), pod("a", 1)));
    assert_eq!(world.binds, 2, "the second at once");
    for _ in 0..60 {
        world.later(1_000);
    }
    assert_eq!(world.binds, 12, "after 0.5, 1, 2, 4, 8, 8, 8 ... s more");
    world.answers_again(&To::Bind);
    world.later(8_000);
    assert_eq!(world.places("a"), "n1");
    assert_eq!(world.binds, 13);
}
