//! The engine against a small world that does what it is told.

mod cards;
mod faults;
mod first_look;
mod freed;
mod histories;
mod line;
mod models;
mod owners;
mod partial;
mod parts;
mod past_use;
mod placement;
mod quarantine;
mod races;
mod requests;
mod review;
mod search;
mod sub_groups;
mod sums;
mod telling;
mod topologies;
mod what_if;
mod world;

use crate::facts::{GroupSource, Placement};
use crate::reason::Reason;
use crate::report::PodState;
use crate::settings::Settings;
use crate::status::Phase;
use world::{WithTopology, World, gang, node, pod, queue, topology};

#[test]
fn a_pod_is_bound_to_a_node_with_room() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(pod("a", 1));
    world.settle();
    assert_eq!(world.node_of("a").as_deref(), Some("n1"));
    assert_eq!(world.binds, 1);
    // This world tells of the pod before it ends the request, as watches often do.
    assert_eq!(world.scheduled, 1);
}

#[test]
fn binpack_fills_the_fullest_node_first() {
    let mut world = World::new();
    for name in ["n1", "n2", "n3"] {
        world.apply(node(name, 8));
    }
    world.apply(pod("a", 4).on("n2"));
    world.apply(pod("b", 4));
    world.settle();
    assert_eq!(world.node_of("b").as_deref(), Some("n2"));
}

#[test]
fn a_gang_starts_whole_or_not_at_all() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 3));
    for name in ["a", "b", "c"] {
        world.apply(pod(name, 4).of("g"));
    }
    world.settle();
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("default/g"), Some(Reason::DoesNotFit));
    world.apply(node("n2", 8));
    world.settle();
    assert_eq!(world.binds, 3);
    assert_eq!(world.gang("default/g").status.phase, Phase::Running);
}

#[test]
fn a_gang_below_its_minimum_waits_for_members() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    world.apply(pod("a", 1).of("g"));
    world.settle();
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("default/g"), Some(Reason::WaitingForMembers));
    world.apply(pod("b", 1).of("g"));
    world.settle();
    assert_eq!(world.binds, 2);
}

#[test]
fn a_required_rack_holds_the_whole_gang() {
    let mut world = World::new();
    world.apply(topology("default", &["zone", "rack"]));
    for (name, rack) in [("n1", "r1"), ("n2", "r2"), ("n3", "r2")] {
        world.apply(node(name, 8).label("zone", "z1").label("rack", rack));
    }
    world.apply(gang("g", 2).required("rack"));
    world.apply(pod("a", 8).of("g"));
    world.apply(pod("b", 8).of("g"));
    world.settle();
    assert_eq!(world.nodes_of(&["a", "b"]), ["n2".into(), "n3".into()]);
}

#[test]
fn racks_of_one_name_under_two_zones_are_two_racks() {
    let mut world = World::new();
    world.apply(topology("default", &["zone", "rack"]));
    for (name, zone) in [("n1", "z1"), ("n2", "z2")] {
        world.apply(node(name, 8).label("zone", zone).label("rack", "rack-1"));
    }
    world.apply(gang("g", 2).required("rack"));
    world.apply(pod("a", 8).of("g"));
    world.apply(pod("b", 8).of("g"));
    world.settle();
    assert_eq!(world.binds, 0);
    assert_eq!(world.reason("default/g"), Some(Reason::DoesNotFit));
    assert!(
        world.message("default/g").contains("in one rack"),
        "{}",
        world.message("default/g")
    );
}

#[test]
fn free_gpus_of_4_and_3_hold_members_of_2_3_and_2() {
    let mut world = World::new();
    world.apply(node("n4", 4));
    world.apply(node("n3", 3));
    world.apply(gang("g", 3));
    for (name, gpus) in [("a", 2), ("b", 3), ("c", 2)] {
        world.apply(pod(name, gpus).of("g"));
    }
    world.settle();
    assert_eq!(world.binds, 3);
}

#[test]
fn a_limit_holds_and_opens_when_work_ends() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(queue("team").limit(4));
    world.apply(pod("a", 4).queue("team"));
    world.settle();
    world.apply(pod("b", 4).queue("team"));
    world.settle();
    assert_eq!(world.reason("default/pod/b"), Some(Reason::OverLimit));
    world.end("a");
    world.settle();
    assert!(world.node_of("b").is_some());
}

#[test]
fn an_unknown_queue_is_named() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(pod("a", 1).queue("nobody"));
    world.settle();
    assert_eq!(world.reason("default/pod/a"), Some(Reason::QueueNotFound));
    world.apply(queue("nobody"));
    world.settle();
    assert!(world.node_of("a").is_some());
}

#[test]
fn surplus_members_follow_the_minimum() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 1));
    for name in ["a", "b", "c"] {
        world.apply(pod(name, 4).of("g"));
    }
    world.settle();
    assert_eq!(world.binds, 2);
    assert_eq!(world.gang("default/g").status.phase, Phase::Running);
    assert_eq!(world.reason_of_pod("c"), Some(Reason::DoesNotFit));
}

#[test]
fn a_gated_pod_waits_behind_its_gate() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(pod("a", 1).gate("example.com/hold"));
    world.settle();
    assert_eq!(world.reason("default/pod/a"), Some(Reason::SchedulingGated));
    assert_eq!(world.pod("a").state, PodState::Gated);
    world.apply(pod("a", 1));
    world.settle();
    assert!(world.node_of("a").is_some());
}

#[test]
fn work_without_gpus_keeps_away_from_gpu_nodes() {
    let mut world = World::new();
    world.apply(node("gpu", 8));
    world.apply(node("plain", 0));
    world.apply(pod("a", 0));
    world.settle();
    assert_eq!(world.node_of("a").as_deref(), Some("plain"));
}

#[test]
fn spread_puts_members_far_apart() {
    let mut world = World::new();
    world.apply(topology("default", &["rack"]));
    for (name, rack) in [("n1", "r1"), ("n2", "r1"), ("n3", "r2"), ("n4", "r2")] {
        world.apply(node(name, 8).label("rack", rack));
    }
    world.apply(gang("g", 2).spread());
    world.apply(pod("a", 1).of("g"));
    world.apply(pod("b", 1).of("g"));
    world.settle();
    let nodes = world.nodes_of(&["a", "b"]);
    assert!(
        nodes[0] < "n3".into() && nodes[1] >= "n3".into(),
        "{nodes:?}"
    );
}

#[test]
fn a_gang_that_stays_below_its_minimum_is_evicted_whole() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    world.apply(pod("a", 4).of("g"));
    world.apply(pod("b", 4).of("g"));
    world.settle();
    world.delete("b");
    world.settle();
    assert_eq!(world.evictions, 0);
    world.pass(61_000);
    world.settle();
    assert_eq!(world.evictions, 1);
}

#[test]
fn a_group_that_only_pods_mention_is_missing() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(pod("a", 1).of("later"));
    world.settle();
    assert_eq!(
        world.reason("default/later"),
        Some(Reason::PodGroupNotFound)
    );
    world.apply(gang("later", 1));
    world.settle();
    assert_eq!(world.binds, 1);
    assert_eq!(
        world.last_group,
        Some((GroupSource::GpuBatch, "later".into()))
    );
}

#[test]
fn a_refused_gang_is_not_tried_again_for_nothing() {
    let mut world = World::new();
    world.apply(node("n1", 4));
    world.apply(pod("a", 8));
    world.settle();
    let steps = world.steps;
    world.apply(pod("a", 8));
    world.settle();
    assert!(world.steps - steps <= 4, "{} steps", world.steps - steps);
    assert_eq!(world.reason("default/pod/a"), Some(Reason::DoesNotFit));
}

#[test]
fn a_shut_down_finishes_the_gangs_that_have_begun_and_no_other() {
    let mut settings = Settings::default();
    settings.in_flight.actions = 2;
    let mut world = World::with(settings);
    world.apply(node("n1", 8));
    for (name, pods) in [("g", ["a", "b", "c"]), ("h", ["d", "e", "f"])] {
        world.apply(gang(name, 3));
        for pod_name in pods {
            world.apply(pod(pod_name, 1).of(name));
        }
    }
    world.step();
    assert_eq!(world.binds, 2);
    world.shut_down();
    world.settle();
    assert_eq!(world.binds, 3);
    assert_eq!(world.nodes_of(&["a", "b", "c"]).len(), 3);
}

#[test]
fn the_member_that_starts_is_the_one_that_the_limit_allows() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(queue("team").limit(4));
    let mut group = gang("g", 1);
    group.queue = Some("team".into());
    world.apply(group);
    world.apply(pod("a-small", 1).of("g"));
    world.apply(pod("b-large", 8).of("g"));
    world.settle();
    assert!(world.node_of("a-small").is_some());
    assert_eq!(world.node_of("b-large"), None);
}

#[test]
fn a_member_that_was_made_smaller_lets_the_queue_go_on() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(queue("team").limit(4));
    world.apply(pod("a", 4).queue("team").on("n1"));
    world.settle();
    world.apply(pod("b", 2).queue("team"));
    world.settle();
    assert_eq!(world.reason("default/pod/b"), Some(Reason::OverLimit));
    world.apply(pod("a", 2).queue("team").on("n1"));
    world.settle();
    assert!(world.node_of("b").is_some());
}

#[test]
fn changed_settings_take_effect_at_once() {
    let mut settings = Settings::default();
    settings.in_flight.actions = 0;
    settings.staleness_grace_ms = None;
    let mut world = World::with(settings);
    for name in ["n1", "n2"] {
        world.apply(node(name, 8));
    }
    world.apply(pod("a", 1));
    world.apply(gang("g", 2));
    for name in ["b", "c"] {
        world.apply(pod(name, 1).of("g").on("n1"));
    }
    world.step();
    assert_eq!(world.binds, 0);
    world.configure(Settings {
        gpu_placement: Placement::Spread,
        staleness_grace_ms: Some(5_000),
        ..Settings::default()
    });
    world.settle();
    assert_eq!(world.binds, 1);
    world.apply(pod("d", 1));
    world.settle();
    assert_eq!(world.node_of("d").as_deref(), Some("n2"), "spread");
    world.delete("c");
    world.settle();
    world.pass(6_000);
    world.settle();
    assert_eq!(world.evictions, 1, "the new grace period");
}

#[test]
fn a_gang_that_has_recovered_is_not_evicted() {
    let mut settings = Settings::default();
    settings.in_flight.actions = 0;
    let mut world = World::with(settings);
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    for name in ["a", "b"] {
        world.apply(pod(name, 1).of("g").on("n1"));
    }
    world.settle();
    world.delete("b");
    world.settle();
    world.pass(61_000);
    world.step();
    world.apply(pod("c", 1).of("g").on("n1"));
    world.step();
    world.let_act();
    world.settle();
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_limit_on_a_model_is_no_lack_of_nodes() {
    let mut world = World::new();
    world.apply(node("n1", 8).label("nvidia.com/gpu.product", "H100"));
    let mut team = queue("team").limit(2);
    team.resources[0].product = Some("H100".into());
    world.apply(team);
    world.apply(pod("a", 4).queue("team"));
    world.settle();
    assert_eq!(world.reason("default/pod/a"), Some(Reason::OverLimit));
    world.apply(queue("team").limit(8));
    world.settle();
    assert!(world.node_of("a").is_some());
}

#[test]
fn a_member_that_is_moved_to_another_gang_starts_no_clock() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    for name in ["a", "b"] {
        world.apply(pod(name, 1).of("g").on("n1"));
    }
    world.settle();
    world.apply(pod("b", 1).on("n1"));
    world.settle();
    world.pass(61_000);
    world.settle();
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_bad_group_says_so_before_it_has_members() {
    let mut world = World::new();
    let mut group = gang("g", 2);
    group.priority_class = Some("nobody".into());
    world.apply(group);
    world.settle();
    assert_eq!(world.reason("default/g"), Some(Reason::InvalidSpec));
}

#[test]
fn the_member_that_a_limit_allows_starts_though_an_earlier_one_is_too_large() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(queue("team").limit(4));
    let mut group = gang("g", 1);
    group.queue = Some("team".into());
    world.apply(group);
    world.apply(pod("a-large", 8).of("g"));
    world.apply(pod("b-small", 1).of("g"));
    world.settle();
    assert_eq!(world.node_of("a-large"), None);
    assert!(world.node_of("b-small").is_some());
}

#[test]
fn members_that_are_done_and_cleaned_away_are_not_lost() {
    let mut world = World::new();
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    world.apply(pod("a", 4).of("g"));
    world.apply(pod("b", 4).of("g"));
    world.settle();
    world.end("b");
    world.settle();
    world.delete("b");
    world.settle();
    world.pass(61_000);
    world.settle();
    assert_eq!(world.evictions, 0);
}

#[test]
fn a_place_that_others_fill_before_it_is_asked_for_is_given_up_with_its_gang() {
    let mut settings = Settings::default();
    settings.in_flight.actions = 0;
    let mut world = World::with(settings);
    world.apply(node("n1", 8));
    world.apply(gang("g", 2));
    for name in ["a", "b"] {
        world.apply(pod(name, 4).of("g"));
    }
    world.step();
    assert!(world.node_of("a").is_some(), "the place is chosen");
    world.apply(pod("x", 4).on("n1"));
    world.let_act();
    world.settle();
    assert_eq!(world.binds, 0, "not even the member that would fit");
    assert_eq!(world.reason("default/g"), Some(Reason::DoesNotFit));
}

#[test]
fn a_status_is_written_once_more_when_an_older_write_may_have_come_late() {
    let mut world = World::new();
    world.loses_statuses = true;
    world.apply(node("n1", 8));
    world.apply(gang("g", 1));
    world.apply(pod("a", 1).of("g"));
    world.step();
    world.step();
    world.loses_statuses = false;
    world.pass(2_000);
    world.settle();
    let written = world.gang_statuses;
    world.pass(10_000);
    world.settle();
    assert_eq!(world.gang_statuses, written + 1);
    world.pass(60_000);
    world.settle();
    assert_eq!(world.gang_statuses, written + 1, "and not for ever");
}

#[test]
fn a_bind_that_is_lost_again_and_again_is_sent_ever_more_rarely() {
    let mut world = World::new();
    world.loses_binds = true;
    world.apply(node("n1", 8));
    world.apply(pod("a", 1));
    world.settle();
    assert_eq!(world.binds, 2, "the second at once");
    for _ in 0..60 {
        world.pass(1_000);
        world.settle();
    }
    assert_eq!(world.binds, 12, "after 0.5, 1, 2, 4, 8, 8, 8 ... s more");
    world.loses_binds = false;
    world.pass(8_000);
    world.settle();
    assert_eq!(world.pod("a").node.as_deref(), Some("n1"));
    assert_eq!(world.binds, 13);
}
