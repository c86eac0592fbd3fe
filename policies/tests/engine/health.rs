//! Nodes whose GPUs have failed: who goes there, who is told, and who is evicted.

use crate::disturbed::budget;
use gpu_batch_policies::command::EvictionCause;
use gpu_batch_policies::event::Outcome;
use gpu_batch_policies::facts::{
    ConditionStatus, NodeCondition, NodeFacts, PodPhase, Taint, TaintEffect, Toleration,
    TolerationOperator, Uid,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::{Health, HealthRule, Settings, Sign};
use gpu_batch_testing::{GPU, START_MS, Sketch, World, gang, node, pod, queue, quota};

const BAD: &str = "GpuMemWatch";

/// A node that shows a condition since a time.
fn shows(name: &str, kind: &str, since_ms: u64) -> Sketch<NodeFacts> {
    node(name, 8).with(|node| {
        node.conditions = vec![NodeCondition {
            kind: kind.into(),
            status: ConditionStatus::True,
            since_ms: Some(since_ms),
        }];
    })
}

fn tainted(name: &str, key: &str) -> Sketch<NodeFacts> {
    node(name, 8).with(|node| {
        node.taints = vec![Taint {
            key: key.into(),
            value: "".into(),
            effect: TaintEffect::NoSchedule,
        }];
    })
}

/// Default settings in which one condition evicts after two minutes.
fn evicting() -> Settings {
    let mut health = Health::default();
    let sign = Sign::Condition {
        kind: BAD.into(),
        status: ConditionStatus::True,
    };
    health.rules.retain(|rule| rule.sign != sign);
    health.rules.push(HealthRule {
        sign,
        evict_after_ms: Some(120_000),
    });
    Settings {
        health,
        ..Settings::default()
    }
}

/// A gang of two that runs on two of three nodes.
fn running(settings: Settings) -> World {
    let mut world = World::with(settings);
    world.then((
        node("n1 n2 n3", 8),
        gang("g", 2),
        pod("g-0", 8).of("g").on("n1"),
        pod("g-1", 8).of("g").on("n2"),
    ));
    world
}

/// The owner of the gang makes its members anew.
fn come_back(world: &mut World) {
    world.then(pod("g-2 g-3", 8).of("g").late());
}

#[test]
fn pods_with_gpus_keep_off_a_node_with_a_bad_condition_and_others_do_not() {
    let mut world = World::of((shows("n1", BAD, START_MS), pod("a", 1), pod("b", 0)));
    assert_eq!(world.places("a b"), "- n1");
    assert_eq!(world.reason_of_pod("a"), Some(Reason::DoesNotFit));
    let message = "of 1 node, 1 had the condition GpuMemWatch";
    assert!(
        world.pod("a").message.contains(message),
        "{}",
        world.pod("a").message
    );
    let refused = &world.explain("pod/a").shortages[0].all.refused[0];
    assert_eq!(refused.because, "had the condition GpuMemWatch");
    assert!(refused.closed);
}

#[test]
fn a_condition_that_no_rule_names_closes_nothing() {
    let world = World::of((shows("n1", "OddlyWarm", START_MS), pod("a", 1)));
    assert_eq!(world.places("a"), "n1");
}

#[test]
fn a_condition_may_be_bad_when_it_is_false() {
    let node = shows("n1", "AcceleratedHardwareReady", START_MS);
    let node = node.with(|node| node.conditions[0].status = ConditionStatus::False);
    let world = World::of((node, pod("a", 1)));
    let message = "1 had the condition AcceleratedHardwareReady=False";
    assert!(world.pod("a").message.contains(message));
}

#[test]
fn to_tolerate_everything_helps_no_pod_with_gpus_over_the_taint_of_a_rule() {
    let brave = |name, gpus| {
        pod(name, gpus).shape(|shape| {
            shape.tolerations = vec![Toleration {
                key: "".into(),
                operator: TolerationOperator::Exists,
                value: "".into(),
                effect: None,
            }];
        })
    };
    let mut world = World::of((tainted("n1", "nvidia.com/gpu-xid-error"), brave("a", 1)));
    world.then(brave("b", 0));
    assert_eq!(world.places("a b"), "- n1");
    let message = "1 had the taint nvidia.com/gpu-xid-error";
    assert!(world.pod("a").message.contains(message));
}

#[test]
fn a_node_counts_as_well_a_minute_after_its_condition_has_gone() {
    let mut world = World::of((shows("n1", BAD, START_MS), pod("a", 8)));
    world.then(node("n1", 8));
    world.run(59_000);
    assert_eq!(world.places("a"), "-");
    world.run(1_000);
    assert_eq!(world.places("a"), "n1");
}

#[test]
fn another_machine_of_the_same_name_is_not_ailing() {
    let mut world = World::of((shows("n1", BAD, START_MS), pod("a", 8)));
    world.lose_node("n1");
    world.then(node("n1", 8).with(|node| node.uid = Uid(77)));
    assert_eq!(world.places("a"), "n1");
}

/// The node is open to nobody while the condition comes and goes, and nothing is told twice.
#[test]
fn a_condition_that_flaps_each_second_closes_the_node_once() {
    let mut world = running(Settings::default());
    world.then(node("n3", 0));
    for second in 0..300 {
        world.then(shows("n1", BAD, world.now_ms));
        if second == 10 {
            world.delete("g-0");
            world.then(pod("g-2", 8).of("g").late());
        }
        world.pass(500);
        world.then(node("n1", 8));
        world.pass(500);
    }
    assert_eq!(world.evictions, 1, "the rest of the gang is stale");
    assert_eq!(world.cause, Some(EvictionCause::Stale));
    assert_eq!(world.places("g-2"), "-");
    let told = world.told_of("PodGroup g: CardFailed");
    assert_eq!(
        told,
        [
            "PodGroup g: CardFailed: 1 member runs where GPUs may have failed: n1 has the condition \
          GpuMemWatch; no rule evicts the gang for that"
        ]
    );
    world.then(pod("g-3", 8).of("g").late());
    assert_eq!(world.places("g-2 g-3"), "- -");
    world.run(61_000);
    assert!(world.is_placed("g-2") && world.is_placed("g-3"));
}

#[test]
fn a_gang_on_failed_cards_is_told_and_stays_where_no_rule_evicts() {
    let mut world = running(Settings::default());
    world.then(shows("n2", BAD, world.now_ms));
    world.run(600_000);
    assert_eq!(
        (world.evictions, world.places("g-0 g-1")),
        (0, "n1 n2".into())
    );
    let told = "1 member runs where GPUs may have failed: n2 has the condition GpuMemWatch; no \
                rule evicts the gang for that";
    assert_eq!(
        world.told_of("PodGroup g: CardFailed"),
        [format!("PodGroup g: CardFailed: {told}")]
    );
    assert_eq!(world.explain("g").notes, [told]);
}

#[test]
fn a_gang_on_failed_cards_is_evicted_whole_after_the_delay_and_starts_elsewhere() {
    let mut world = running(evicting());
    world.then((shows("n2", BAD, world.now_ms), node("n4", 8)));
    world.run(119_000);
    assert_eq!(world.evictions, 0);
    world.run(1_000);
    // The members on failed cards go last.
    assert_eq!(world.evicted, ["g-0", "g-1"]);
    assert_eq!(world.cause, Some(EvictionCause::CardFailed));
    let told = world.told_of("PodGroup g: CardFailed");
    assert!(
        told[0].contains("the whole gang is evicted at "),
        "{told:?}"
    );
    assert_eq!(
        told[1..],
        [
            "PodGroup g: CardFailed: 2 bound members are evicted: the gang runs where GPUs have \
          failed (n2 has the condition GpuMemWatch), and starts again elsewhere"
        ]
    );
    come_back(&mut world);
    world.run(600_000);
    assert!(world.is_placed("g-2") && world.is_placed("g-3"));
    assert!(!world.places("g-2 g-3").contains("n2"));
    assert_eq!(world.evictions, 2);
}

#[test]
fn members_without_gpus_are_not_on_failed_cards() {
    let mut world = World::with(evicting());
    world.then((
        node("n1 n2", 8),
        gang("g", 2),
        pod("g-0", 0).of("g").on("n1"),
        pod("g-1", 8).of("g").on("n2"),
        shows("n1", BAD, START_MS),
    ));
    world.run(300_000);
    assert_eq!((world.evictions, world.told.len()), (0, 0));
}

/// When the delay ends the condition is not there: the gang leaves when it is back.
#[test]
fn a_condition_that_flaps_evicts_once_and_only_while_it_is_there() {
    let mut world = running(evicting());
    for _ in 0..130 {
        world.then(shows("n1", BAD, world.now_ms));
        world.pass(400);
        world.then(node("n1", 8));
        world.pass(600);
        assert!(world.evictions == 0 || world.now_ms >= START_MS + 120_000);
    }
    assert_eq!(world.evicted, ["g-1", "g-0"]);
    world.then(node("n4", 8));
    come_back(&mut world);
    for _ in 0..300 {
        world.then(shows("n1", BAD, world.now_ms));
        world.pass(500);
        world.then(node("n1", 8));
        world.pass(500);
    }
    assert!(!world.places("g-2 g-3").contains("n1"));
    assert_eq!(world.evictions, 2);
}

#[test]
fn a_condition_that_goes_before_the_delay_ends_evicts_nobody() {
    let mut world = running(evicting());
    world.then(shows("n1", BAD, world.now_ms));
    world.run(100_000);
    world.then(node("n1", 8));
    world.run(600_000);
    // What comes later counts anew.
    world.then(shows("n1", BAD, world.now_ms));
    world.run(119_000);
    assert_eq!(world.evictions, 0);
}

#[test]
fn the_delay_goes_on_under_another_scheduler() {
    let mut world = running(evicting());
    world.then(shows("n1", BAD, world.now_ms));
    world.run(100_000);
    world.take_over();
    world.run(19_000);
    assert_eq!(world.evictions, 0);
    world.run(1_000);
    assert_eq!(world.evicted, ["g-1", "g-0"]);
}

/// The member that is not on failed cards is leaving when another scheduler takes over.
#[test]
fn another_scheduler_ends_an_eviction_that_has_begun() {
    let mut world = running(evicting());
    world.grace_ms = Some(30_000);
    world.then(shows("n1", BAD, world.now_ms));
    world.pass(120_000);
    let commands = world.commands();
    let first = commands.into_iter().next().unwrap();
    world.carry_out(first, Outcome::Done);
    assert_eq!(world.evicted, ["g-1"]);
    world.take_over();
    world.run(1_000);
    assert_eq!(world.evicted, ["g-1", "g-0"]);
    assert_eq!(world.cause, Some(EvictionCause::CardFailed));
}

#[test]
fn a_disruption_budget_keeps_a_gang_whole_until_it_lets_all_members_leave() {
    let mut world = running(evicting());
    world.apply([budget("keep", None, 1)]);
    world.change("g-0 g-1", |pod| pod.phase = PodPhase::Running);
    world.then(shows("n1", BAD, world.now_ms));
    world.run(300_000);
    assert_eq!(world.evictions, 0);
    let note = &world.explain("g").notes[0];
    assert!(
        note.contains("once the disruption budget keep allows it"),
        "{note}"
    );
    world.apply([budget("keep", None, 2)]);
    world.run(10_000);
    assert_eq!(world.evicted, ["g-1", "g-0"]);
}

#[test]
fn a_gang_that_its_queue_would_not_take_back_stays() {
    let mut world = World::with(evicting());
    let queues = |closed| queue("a").with(move |queue| queue.closed = closed);
    world.then((
        queues(true),
        node("n1 n2", 8),
        pod("g", 8).queue("a").on("n1"),
        shows("n1", BAD, START_MS),
    ));
    world.run(300_000);
    assert_eq!(world.evictions, 0);
    world.then(queues(false));
    world.run(10_000);
    assert_eq!(world.evicted, ["g"]);
}

/// Without the condition `low` on n1 would be the victim: it lost less work.
#[test]
fn nobody_makes_room_where_gpus_have_failed() {
    let mut world = World::new();
    world.then((
        quota("a", 16),
        shows("n1", BAD, START_MS),
        node("n2", 8),
        pod("young", 8).queue("a").on("n1"),
        pod("old", 8).queue("a").on("n2").with(|pod| {
            pod.bound_ms = pod.bound_ms.map(|bound_ms| bound_ms - 30_000);
        }),
        pod("high", 8).queue("a").with(|pod| pod.priority = 9),
    ));
    world.run(1_000);
    assert_eq!(world.evicted, ["old"]);
    assert_eq!(world.places("high"), "n2");
}

#[test]
fn rules_may_change_while_the_scheduler_runs() {
    let mut world = World::of((shows("n1", BAD, START_MS), pod("a", 8)));
    let without_rules = Settings {
        health: Health {
            rules: Vec::new(),
            recovery_ms: 60_000,
        },
        ..Settings::default()
    };
    world.configure(without_rules);
    world.settle();
    assert_eq!(world.places("a"), "n1");
    world.configure(evicting());
    world.run(121_000);
    assert_eq!(world.evicted, ["a"]);
}

fn awaiting_upgrade(names: &str) -> Sketch<NodeFacts> {
    node(names, 8).label("nvidia.com/gpu-driver-upgrade-state", "upgrade-required")
}

#[test]
fn nodes_that_will_be_drained_for_a_driver_are_taken_last() {
    let mut world = World::of((awaiting_upgrade("n1 n2"), node("n3", 8), pod("a", 8)));
    assert_eq!(world.places("a"), "n3");
    world.then(pod("b", 8));
    assert_eq!(world.places("b"), "n1");
    // To a gang, too.
    world.then((node("n4", 8), gang("g", 2), pod("g-0 g-1", 4).of("g")));
    assert_eq!(world.places("g-0 g-1"), "n4 n4");
}

#[test]
fn time_slices_are_single_where_the_setting_says_so() {
    let shared = || {
        node("n1", 8)
            .label("nvidia.com/gpu.replicas", "4")
            .label("nvidia.com/gpu.sharing-strategy", "time-slicing")
    };
    let two = || pod("two", 2).shape(|shape| shape.largest_container = vec![(GPU.into(), 2)]);
    let world = World::of((shared(), two()));
    assert_eq!(world.places("two"), "n1");
    let mut world = World::with(Settings {
        time_slices_are_single: true,
        ..Settings::default()
    });
    world.then((shared(), two(), pod("one", 1)));
    assert_eq!(world.places("one two"), "n1 -");
    let message = "1 shared nvidia.com/gpu, one share for each container";
    assert!(
        world.pod("two").message.contains(message),
        "{}",
        world.pod("two").message
    );
}
