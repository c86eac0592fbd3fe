//! Eviction plans that are carried out: the time lines S01 to S12 of the given cases, and what else
//! may happen on the way.

use gpu_batch_policies::command::EvictionCause;
use gpu_batch_policies::facts::{MatchOperator, PodFacts, Readiness};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::{Evictions, Settings};
use gpu_batch_testing::{Sketch, To, World, gang, node, pod, queue, quota, refused, throttled};

/// Pods of the queue `a` with a priority.
pub(crate) fn prio(names: &str, gpus: u64, priority: i32) -> Sketch<PodFacts> {
    pod(names, gpus)
        .queue("a")
        .with(|pod| pod.priority = priority)
}

/// They have run for so many seconds.
fn aged(pods: Sketch<PodFacts>, seconds: u64) -> Sketch<PodFacts> {
    pods.with(|pod| {
        let bound_ms = pod.bound_ms.map(|ms| ms + 30_000 - seconds * 1_000);
        pod.bound_ms = bound_ms;
    })
}

/// Evictions are sent one a second, and pods take half a minute to leave.
pub(crate) fn one_a_second() -> World {
    let mut world = World::with(Settings {
        evictions: Evictions {
            per_second: 1,
            ..Settings::default().evictions
        },
        ..Settings::default()
    });
    world.grace_ms = Some(30_000);
    world
}

/// The gang `p` takes the nodes of `x` and `y`, which are evicted one a second.
fn two_for_one_gang() -> World {
    let mut world = one_a_second();
    world.then((
        node("n1 n2", 8),
        quota("a", 16),
        prio("x", 8, 10).on("n1"),
        prio("y", 8, 10).on("n2"),
        gang("p", 2).queue("a"),
        prio("p-0 p-1", 8, 100).of("p"),
    ));
    world
}

fn nominated(world: &World, pod: &str) -> Option<String> {
    world.stored(pod).nominated.as_deref().map(Into::into)
}

/// The gangs that come later have no higher priority than the victims: by the rules such a gang
/// would preempt victims of its own queue.
#[test]
fn s01_room_that_is_left_over_ten_minutes_is_nobody_elses() {
    let mut world = World::with_grace(600);
    let victims = "v-0 v-1 v-2 v-3 v-4 v-5 v-6 v-7";
    world.then((
        node("n1", 8),
        (quota("a", 4), quota("b", 4)),
        gang("v", 1).queue("b"),
        pod(victims, 1).of("v").on("n1"),
        pod("p-0", 4).queue("a"),
    ));
    world.run(1_000);
    let mut evicted = world.evicted.clone();
    evicted.sort();
    assert_eq!(evicted, ["v-4", "v-5", "v-6", "v-7"]);
    assert_eq!(world.cause, Some(EvictionCause::Reclaim));
    assert_eq!(nominated(&world, "p-0").as_deref(), Some("n1"));
    assert_eq!(world.reason_of_pod("p-0"), Some(Reason::WaitingForEviction));
    world.run(59_000);
    world.then((
        pod("s1", 1).queue("b").late(),
        pod("s2", 1).queue("a").late(),
    ));
    world.run(140_000);
    world.delete("v-7 v-6");
    world.run(400_000);
    assert_eq!(world.places("s1 s2 p-0"), "- - -");
    world.delete("v-5 v-4");
    world.run(1_000);
    assert_eq!(world.places("s1 s2 p-0"), "- - n1");
    assert_eq!(world.evictions, 4);
}

#[test]
fn s02_a_victim_that_never_leaves_is_given_up_and_another_is_found() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1 n2", 8),
        quota("a", 16),
        aged(prio("x", 8, 10).on("n1"), 60),
        aged(prio("y", 8, 20).on("n2"), 3_600),
        prio("p", 8, 100),
    ));
    world.run(1_000);
    assert_eq!(world.evicted, ["x"]);
    world.run(85_000);
    assert_eq!(world.evicted, ["x"]);
    world.run(60_000);
    assert_eq!(world.evicted, ["x", "y"]);
    world.delete("y");
    world.run(1_000);
    assert_eq!(world.places("p"), "n2");
}

#[test]
fn s03_a_beneficiary_that_is_deleted_frees_its_hold_and_drops_evictions() {
    let mut world = two_for_one_gang();
    world.run(500);
    assert_eq!(world.evictions, 1);
    world.delete("p-0 p-1");
    world.run(120_000);
    assert_eq!(world.evictions, 1);
    let evicted = world.evicted[0].clone();
    world.delete(&evicted);
    world.then(prio("s", 8, 1).late());
    assert!(world.is_placed("s"));
}

#[test]
fn s04_a_gang_of_higher_priority_takes_the_room_that_is_held() {
    let mut world = World::with_grace(60);
    world.then((
        node("n1 n2", 8),
        quota("a", 16),
        aged(prio("x", 8, 10).on("n1"), 60),
        aged(prio("y", 8, 20).on("n2"), 9 * 3_600),
        prio("p", 8, 50),
    ));
    world.run(10_000);
    assert_eq!(world.evicted, ["x"]);
    world.then(prio("q", 8, 100).late());
    world.run(1_000);
    assert_eq!(world.evicted, ["x", "y"]);
    assert_eq!(nominated(&world, "q").as_deref(), Some("n1"));
    assert_eq!(nominated(&world, "p").as_deref(), Some("n2"));
    assert_eq!(
        world.told_of("Pod p: EvictionPlanFailed"),
        [
            "Pod p: EvictionPlanFailed: the eviction plan has come to nothing: the gang \
             default/pod/q, which comes before it, takes that room, or what queues give for it"
        ]
    );
    world.run(60_000);
    world.delete("x y");
    world.run(1_000);
    assert_eq!(world.places("q p"), "n1 n2");
    assert_eq!(world.evictions, 2);
}

#[test]
fn s05_a_successor_finishes_with_the_same_victims() {
    let mut world = one_a_second();
    world.then((
        node("n1 n2 n3", 8),
        quota("a", 24),
        aged(prio("x", 8, 10).on("n1"), 60),
        aged(prio("y", 8, 10).on("n2"), 120),
        aged(prio("z", 8, 10).on("n3"), 9 * 3_600),
        gang("p", 2).queue("a"),
        prio("p-0 p-1", 8, 100).of("p"),
    ));
    assert_eq!(world.evictions, 1);
    world.pass(20_000);
    world.take_over();
    world.run(20_000);
    let mut evicted = world.evicted.clone();
    evicted.sort();
    assert_eq!(evicted, ["x", "y"]);
    world.delete("x y");
    world.run(1_000);
    assert_eq!(world.nodes_of("p-0 p-1"), ["n1", "n2"]);
    assert!(world.is_placed("z"));
}

#[test]
fn s05_a_successor_keeps_room_that_is_free_already_for_whom_it_was_made() {
    let mut world = two_for_one_gang();
    world.run(2_000);
    assert_eq!(world.evictions, 2);
    world.delete("x");
    world.settle();
    world.take_over();
    world.then(prio("s", 8, 10).late());
    world.run(2_000);
    assert_eq!(world.places("s p-0 p-1"), "- - -");
    world.delete("y");
    world.run(1_000);
    assert_eq!(world.nodes_of("p-0 p-1"), ["n1", "n2"]);
    assert_eq!(world.evictions, 2);
}

#[test]
fn s06_an_eviction_that_is_refused_ends_the_plan() {
    let mut world = one_a_second();
    world.answers(To::EvictionOf("w3"), refused());
    world.grace_ms = None;
    world.then((
        node("n1 n2 n3 n4", 8),
        quota("a", 32),
        prio("w1", 8, 10).on("n1"),
        prio("w2", 8, 10).on("n2"),
        prio("w3", 8, 10).on("n3"),
        prio("w4", 8, 10).on("n4"),
        gang("p", 4).queue("a"),
        prio("p-0 p-1 p-2 p-3", 8, 100).of("p"),
    ));
    world.run(3_600_000 / 4);
    assert_eq!(world.evicted, ["w1", "w2"]);
    assert!(world.evictions <= 6, "{}", world.evictions);
    assert_eq!(world.places("w3 w4 p-0"), "n3 n4 -");
    assert_eq!(world.reason("p"), Some(Reason::DoesNotFit));
    assert!(!world.told_of("PodGroup p: EvictionPlanFailed").is_empty());
    // Those that were evicted in vain get their room back.
    world.then(prio("w1b w2b", 8, 10).late());
    assert!(world.is_placed("w1b") && world.is_placed("w2b"));
}

#[test]
fn s07_a_second_claimant_sees_what_the_first_one_takes() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1 n2 n3", 8),
        quota("a", 24),
        prio("x", 8, 10).on("n1"),
        prio("y", 8, 10).on("n2"),
        prio("z", 8, 10).on("n3"),
        gang("p", 2).queue("a"),
        prio("p-0 p-1", 8, 100).of("p"),
        (
            gang("q", 2).queue("a").with(|gang| gang.created_ms += 1),
            prio("q-0 q-1", 8, 100).of("q"),
        ),
    ));
    world.run(1_000);
    assert_eq!(world.evictions, 2);
    let evicted = world.evicted.join(" ");
    world.delete(&evicted);
    world.run(120_000);
    assert!(world.is_placed("p-0") && !world.is_placed("q-0"));
    assert_eq!(world.evictions, 2);
    assert_eq!(world.reason("q"), Some(Reason::DoesNotFit));
}

#[test]
fn s08_after_three_plans_that_a_rival_spoils_the_gang_makes_a_pause() {
    let mut world = World::with_grace(30);
    world.then((node("n1", 8), quota("a", 8), prio("p", 8, 100)));
    assert!(world.is_placed("p"));
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 8),
        quota("a", 8),
        prio("x0", 8, 10).on("n1"),
        prio("p", 8, 100),
    ));
    for round in 0..60 {
        let running = format!("x{round}");
        world.run(1_000);
        if world.evicted.last() == Some(&running) {
            // Another scheduler binds its pod in the millisecond in which the node is free.
            let rival = format!("r{round}");
            world.apply(pod(&rival, 8).foreign().on("n1"));
            world.delete(&running);
            world.run(60_000);
            let next = format!("x{}", round + 1);
            world.apply(prio(&next, 8, 10).on("n1"));
            world.delete(&rival);
            world.settle();
        } else {
            world.run(60_000);
            let next = format!("x{}", round + 1);
            world.apply(prio(&next, 8, 10).on("n1"));
            world.delete(&running);
            world.settle();
        }
    }
    assert!(world.evictions <= 4, "{}", world.evictions);
    assert!(world.reason_of_pod("p").is_some());
}

#[test]
fn s09_a_node_that_is_not_ready_for_four_minutes_costs_nobody_its_room() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1 n2", 8),
        (queue("a"), queue("b")),
        pod("a1", 8).queue("a").on("n1"),
        pod("b1 b2", 4).queue("b").on("n2"),
        pod("p", 4).queue("a"),
    ));
    world.run(10_000);
    let since_ms = Some(world.now_ms);
    let lost = node("n1", 8).with(|node| node.readiness = Readiness::Lost { since_ms });
    world.then(lost);
    world.run(240_000);
    world.then(node("n1", 8));
    world.run(600_000);
    assert_eq!(world.evictions, 0);
    assert_eq!(world.places("a1 b1 b2 p"), "n1 n2 n2 -");
}

/// The gang that comes later has no higher priority: by the rules it would preempt the mover.
#[test]
fn s10_the_place_of_a_mover_is_kept_for_the_pod_that_is_made_anew() {
    let mut world = World::with_grace(30);
    let owned = |name: &str| pod(name, 4).queue("a").owned_by(name);
    world.then((
        node("n1 n2", 8),
        quota("a", 16),
        aged(owned("x").on("n1"), 7_200).with(|pod| own(pod, 7)),
        aged(owned("y").on("n2"), 3_600).with(|pod| own(pod, 8)),
        pod("p", 8).queue("a"),
    ));
    world.run(5_000);
    assert_eq!(world.evicted, ["y"]);
    assert_eq!(world.cause, Some(EvictionCause::Consolidate));
    world.then(prio("s", 4, 0).late());
    world.run(30_000);
    world.delete("y");
    world.run(20_000);
    assert_eq!(world.places("p s"), "n2 -");
    world.then(owned("y-b").with(|pod| own(pod, 8)).late());
    world.run(5_000);
    assert_eq!(world.places("y-b p s"), "n1 n2 -");
    assert_eq!(world.evictions, 1);
}

fn own(pod: &mut PodFacts, uid: u128) {
    if let Some(owner) = &mut pod.owner {
        owner.uid = gpu_batch_policies::facts::Uid(uid << 64);
    }
}

#[test]
fn s11_an_evicted_gang_waits_its_delay_anew() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1 n2", 8).label("host", "any"),
        node("n1", 8).label("host", "n1"),
        quota("a", 16),
        aged(prio("m", 8, 50).on("n1"), 60).with(|pod| {
            pod.hints.preemption_delay_ms = Some(300_000);
        }),
        aged(prio("l", 8, 10).on("n2"), 9 * 3_600),
        prio("p", 8, 100).needs("host", MatchOperator::In, &["n1"]),
    ));
    world.run(1_000);
    assert_eq!(world.evicted, ["m"]);
    world.run(29_000);
    world.delete("m");
    world.then(prio("m-b", 8, 50).late().with(|pod| {
        pod.hints.preemption_delay_ms = Some(300_000);
    }));
    assert_eq!(world.places("p"), "n1");
    world.run(1_000);
    assert_eq!(world.reason_of_pod("m-b"), Some(Reason::PreemptionDelay));
    world.run(290_000);
    assert_eq!(world.evicted, ["m"]);
    world.run(15_000);
    assert_eq!(world.evicted, ["m", "l"]);
    world.delete("l");
    world.run(1_000);
    assert_eq!(world.places("m-b"), "n2");
}

#[test]
fn s12_free_nodes_that_come_before_the_evictions_are_used_instead() {
    let mut world = one_a_second();
    world.then((
        node("n1 n2", 8),
        quota("a", 32),
        prio("x", 8, 10).on("n1"),
        prio("y", 8, 10).on("n2"),
        gang("p", 2).queue("a"),
        prio("p-0 p-1", 8, 100).of("p"),
    ));
    world.run(500);
    assert_eq!(world.evictions, 1);
    world.then(node("n3 n4", 8));
    world.run(10_000);
    assert_eq!(world.nodes_of("p-0 p-1"), ["n3", "n4"]);
    assert_eq!(world.evictions, 1);
}

#[test]
fn nobody_is_evicted_where_that_is_switched_off() {
    let mut world = World::with(Settings {
        evictions: Evictions {
            in_flight: 0,
            per_second: 20,
        },
        ..Settings::default()
    });
    world.then((
        node("n1", 8),
        quota("a", 8),
        prio("x", 8, 10).on("n1"),
        prio("p", 8, 100),
    ));
    world.run(60_000);
    assert_eq!(world.evictions, 0);
    assert_eq!(world.reason_of_pod("p"), Some(Reason::DoesNotFit));
    let none = world.explain("pod/p").eviction.unwrap().unwrap_err();
    let off = "evictions are switched off: evictions.inFlight is 0 in the configuration";
    assert_eq!(none.message, off);
}

#[test]
fn an_eviction_that_is_put_off_is_sent_again_later() {
    let mut world = World::with_grace(30);
    world.answers(To::EvictionOf("x"), throttled());
    world.then((
        node("n1", 8),
        quota("a", 8),
        prio("x", 8, 10).on("n1"),
        prio("p", 8, 100),
    ));
    world.run(5_000);
    assert!((4..=6).contains(&world.evictions), "{}", world.evictions);
    world.answers_again(&To::EvictionOf("x"));
    world.run(2_000);
    assert_eq!(world.evicted, ["x"]);
    world.delete("x");
    world.run(1_000);
    assert!(world.is_placed("p"));
}

/// The queue `b` holds 8 and has a quota of 4 when the plan is made, and holds 4 when the eviction
/// that the API server has put off is to be sent again.
#[test]
fn a_queue_that_holds_no_more_than_its_own_by_then_gives_nothing() {
    let mut world = World::with_grace(30);
    world.answers(To::EvictionOf("v"), throttled());
    world.then((
        node("n1", 4).label("disk", "fast"),
        node("n2", 4),
        (quota("a", 4), quota("b", 4)),
        prio("v", 4, 0).queue("b").on("n1"),
        prio("w", 4, 100).queue("b").on("n2"),
        pod("p", 4)
            .queue("a")
            .needs("disk", MatchOperator::In, &["fast"]),
    ));
    world.run(500);
    assert_eq!(world.evictions, 1);
    world.end("w");
    world.answers_again(&To::EvictionOf("v"));
    world.run(60_000);
    assert_eq!(world.evicted, [""; 0]);
    let told = world.told_of("Pod p: EvictionPlanFailed").join(" ");
    let why = "the queue b does not hold more than its own any more";
    assert!(told.ends_with(why), "{told}");
}

/// The queue `b` gives `v` to `p`, and would hold no more than its own if `w` gave way to the small
/// gang `q` before that.
#[test]
fn a_plan_that_would_spoil_another_one_waits_until_that_one_has_begun() {
    let mut world = World::with_grace(30);
    let on =
        |pod: Sketch<PodFacts>, disk: &'static str| pod.needs("disk", MatchOperator::In, &[disk]);
    let of_b = |name: &str, gpus, priority| prio(name, gpus, priority).queue("b");
    world.then((
        node("n1", 2).label("disk", "fast"),
        node("n2", 8).label("disk", "large"),
        (quota("a", 2), quota("b", 8)),
        (of_b("v", 2, 0).on("n1"), of_b("w", 8, 10).on("n2")),
        on(pod("p", 2).queue("a"), "fast"),
        on(of_b("q", 1, 100), "large"),
    ));
    world.run(200);
    assert_eq!(world.evicted, ["v"]);
    let none = world.explain("pod/q").eviction.unwrap();
    assert!(none.is_ok(), "{none:?}");
    world.run(2_000);
    assert_eq!(world.evicted, ["v", "w"]);
    assert_eq!(world.told_of("Pod p: EvictionPlanFailed"), [""; 0]);
    world.delete("v w");
    world.run(1_000);
    assert_eq!(world.places("p q"), "n1 n2");
}

/// While the API server puts the eviction of `v` off, `w` stays.
#[test]
fn what_a_queue_has_promised_is_told_to_a_gang_that_waits_for_it() {
    let mut world = World::with_grace(30);
    world.answers(To::EvictionOf("v"), throttled());
    let of_b = |name: &str, gpus, priority| prio(name, gpus, priority).queue("b");
    let large = |pod: Sketch<PodFacts>| pod.needs("disk", MatchOperator::In, &["large"]);
    world.then((
        node("n1", 2),
        node("n2", 8).label("disk", "large"),
        (quota("a", 2), quota("b", 8)),
        (of_b("v", 2, 0).on("n1"), of_b("w", 8, 10).on("n2")),
        pod("p", 2).queue("a"),
        large(of_b("q", 1, 100)),
    ));
    world.run(5_000);
    assert_eq!(world.evicted, [""; 0]);
    let none = world.explain("pod/q").eviction.unwrap().unwrap_err();
    let promised =
        "the queue b gives for the gang default/pod/p, and would hold too little for that";
    assert_eq!(none.message, promised);
    world.answers_again(&To::EvictionOf("v"));
    world.run(3_000);
    assert_eq!(world.evicted, ["v", "w"]);
}

#[test]
fn a_beneficiary_that_asks_for_less_or_for_another_queue_is_planned_anew() {
    let mut world = one_a_second();
    world.then((
        node("n1 n2", 8),
        (quota("a", 16), quota("b", 0)),
        prio("x", 8, 10).on("n1"),
        prio("y", 8, 10).on("n2"),
        gang("p", 2).queue("a"),
        prio("p-0 p-1", 8, 100).of("p"),
    ));
    world.run(500);
    world.then(gang("p", 2).queue("b"));
    world.run(10_000);
    assert_eq!(world.evictions, 1);
    assert_eq!(nominated(&world, "p-0"), None);
}

/// An eviction plan is for what a gang asks for, in which the gang's runtime has no part.
#[test]
fn a_beneficiary_that_says_another_runtime_keeps_its_plan() {
    let mut world = two_for_one_gang();
    assert_eq!(nominated(&world, "p-0").as_deref(), Some("n1"));
    let group = gang("p", 2).queue("a").generation(2);
    world.then(group.with(|gang| gang.expected_runtime_ms = Some(60_000)));
    assert_eq!(nominated(&world, "p-0").as_deref(), Some("n1"));
    assert_eq!(world.reason("p"), Some(Reason::WaitingForEviction));
    world.run(10_000);
    assert_eq!(world.evictions, 2);
    world.delete("x y");
    world.settle();
    assert_eq!(world.nodes_of("p-0 p-1"), ["n1", "n2"]);
}

#[test]
fn a_member_that_is_planned_anew_for_its_node_is_nominated_again() {
    let mut world = two_for_one_gang();
    world.run(500);
    assert_eq!(world.evicted, ["x"]);
    // The plan ends, and with it both nominations; the next plan begins at once.
    world.then(gang("p", 1).queue("a"));
    world.run(2_000);
    let nodes = ["p-0", "p-1"].map(|pod| nominated(&world, pod));
    let nodes: Vec<String> = nodes.into_iter().flatten().collect();
    assert_eq!(nodes, ["n1"]);
    assert_eq!(world.evictions, 1);
}

#[test]
fn a_gang_that_loses_a_member_while_it_waits_is_nominated_as_a_whole() {
    let mut world = one_a_second();
    world.then((
        (node("n1 n2", 8), node("n3 n4 n5", 8).cordoned()),
        quota("a", 40),
        prio("x", 8, 10).on("n1"),
        prio("y", 8, 10).on("n2"),
        gang("p", 3).queue("a"),
        prio("p-0", 8, 100).of("p").on("n3"),
        prio("p-1", 8, 100).of("p").on("n4"),
        prio("p-2", 8, 100).of("p").on("n5"),
    ));
    world.delete("p-2");
    world.then(prio("p-3 p-4", 8, 100).of("p").late());
    world.run(600);
    let nodes = |world: &World| ["p-3", "p-4"].map(|pod| nominated(world, pod));
    assert_eq!(nodes(&world).into_iter().flatten().count(), 1);
    // Now the minimum wants two more members, and both victims.
    world.delete("p-1");
    world.run(10_000);
    assert_eq!(nodes(&world).into_iter().flatten().count(), 2);
    let mut evicted = world.evicted.clone();
    evicted.sort();
    assert_eq!(evicted, ["x", "y"]);
}

#[test]
fn victims_that_were_not_asked_to_leave_are_no_room_for_a_gang_that_comes_before() {
    let mut world = one_a_second();
    let fast = |name: &str, gpus: u64| {
        let pods = pod(name, gpus).queue("a");
        pods.needs("disk", MatchOperator::In, &["fast"])
    };
    world.then((
        node("n1", 12).label("disk", "fast"),
        node("n2", 13),
        (quota("a", 36), pod("other", 1).on("n2")),
        gang("x", 3).queue("a"),
        pod("x-0 x-1 x-2", 4).owned_by("x").of("x").on("n1"),
        // More GPUs would have to move for `first` than it is worth. What `second` takes from `x`
        // is no room for it as long as `x-1` and `x-2` have not been asked to leave.
        fast("first", 5),
        fast("second", 12).late(),
    ));
    world.run(300);
    assert_eq!(nominated(&world, "second").as_deref(), Some("n1"));
    assert_eq!(world.evicted, ["x-0"]);
    // What happens elsewhere lets both gangs be looked at again.
    world.delete("other");
    world.run(5_000);
    assert_eq!(nominated(&world, "first"), None);
    assert_eq!(nominated(&world, "second").as_deref(), Some("n1"));
    assert_eq!(world.evicted, ["x-0", "x-1", "x-2"]);
}

#[test]
fn a_pod_that_the_api_server_will_not_bind_is_nominated_no_more() {
    let mut world = World::with_grace(30);
    world.answers(To::BindOf("p"), refused());
    world.then((
        node("n1", 8),
        quota("a", 8),
        prio("x", 8, 10).on("n1"),
        prio("p", 8, 100),
    ));
    world.run(1_000);
    assert_eq!(nominated(&world, "p").as_deref(), Some("n1"));
    world.delete("x");
    world.settle();
    assert!(!world.is_placed("p"));
    assert_eq!(nominated(&world, "p"), None);
    world.answers_again(&To::BindOf("p"));
    world.run(5_000);
    assert_eq!(world.places("p"), "n1");
}

#[test]
fn what_a_gang_waits_for_is_told_with_the_date() {
    let mut world = World::with_grace(600);
    world.then((
        node("n1", 8),
        quota("a", 8),
        prio("x", 8, 10).on("n1"),
        prio("p", 8, 100).with(|pod| pod.hints.preemption_delay_ms = Some(172_800_000)),
    ));
    world.run(3_000);
    let (_, delayed) = world.condition("p");
    let lasts = "its preemptionDelay lasts for 48h, until 2027-01-17T08:00:00Z";
    assert!(delayed.contains(lasts), "{delayed}");
    let delayed = delayed.to_owned();
    world.run(60_000);
    assert_eq!(world.condition("p").1, delayed, "it is not written again");
    world.run(172_740_000);
    let (reason, waits) = world.condition("p");
    assert_eq!(reason, "WaitingForEviction");
    let since = "waits since 2027-01-17T08:00:00Z for 1 pod to leave: default/x";
    assert_eq!(waits, since);
}

#[test]
fn a_pod_group_is_told_what_it_loses_in_all_its_victims() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1 n2", 8),
        (quota("a", 16), queue("b")),
        gang("v", 2).queue("b"),
        aged(pod("v-0 v-1", 8).of("v").on("n1"), 600),
        gang("p", 2).queue("a"),
        pod("p-0 p-1", 8).of("p"),
    ));
    world.change("v-1", |pod| pod.node = Some("n2".into()));
    world.settle();
    world.run(1_000);
    let told = world.told_of("PodGroup v: Reclaimed");
    let [told] = told.as_slice() else {
        panic!("it is told once: {told:?}");
    };
    let lost = "9600 GPU-seconds of work on 16 GPUs of 2 pods since their last checkpoints or \
                starts are lost";
    assert!(told.ends_with(lost), "{told}");
    let told = world.told_of("Pod v-1: Reclaimed").join(" ");
    let lost = "600 s of work on 8 GPUs since its start are lost";
    assert!(told.ends_with(lost), "{told}");
}

#[test]
fn a_victim_is_told_of_what_the_claimant_asks_for() {
    let licence = "example.com/licence";
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 8).has(licence, 1),
        queue("a").entry(licence, None, (1, None), 1),
        queue("b"),
        pod("v", 8).with_one(licence).queue("b").on("n1"),
        pod("p", 0).with_one(licence).queue("a"),
    ));
    world.run(1_000);
    let told = world.told_of("Pod v: Reclaimed").join(" ");
    let over = "the queue b holds 1 of example.com/licence, its quota is 0";
    assert!(told.contains(over), "{told}");
}

#[test]
fn a_gang_is_told_that_its_plan_has_failed_with_the_room_that_others_take() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 8),
        quota("a", 8),
        gang("p", 1).queue("a"),
        prio("x", 8, 10).on("n1"),
        prio("p-0", 8, 100).of("p"),
    ));
    world.run(1_000);
    assert_eq!(world.evicted, ["x"]);
    world.apply(pod("rival", 8).foreign().on("n1"));
    world.delete("x");
    world.run(1_000);
    let failed = "PodGroup p: EvictionPlanFailed: the eviction plan has come to nothing: others \
                  have taken the room on the node n1, or it has less";
    assert_eq!(world.told_of("PodGroup p: Eviction"), [failed]);
}

#[test]
fn a_gang_is_told_which_victim_does_not_leave() {
    let mut world = World::with_grace(30);
    world.then((
        node("n1", 8),
        quota("a", 8),
        gang("p", 1).queue("a"),
        prio("x", 8, 10).on("n1"),
        prio("p-0", 8, 100).of("p"),
    ));
    world.run(120_000);
    let failed = "PodGroup p: EvictionPlanFailed: the eviction plan has come to nothing: the pod \
                  default/x does not leave";
    assert_eq!(world.told_of("PodGroup p: Eviction"), [failed]);
}

#[test]
fn explain_counts_on_the_takings_that_end_for_the_gang_as_the_engine_does() {
    let mut world = two_for_one_gang();
    world.run(500);
    assert_eq!(world.evictions, 1);
    let first = gang("r", 2).queue("a");
    world.then((
        first.with(|group| group.preemption_delay_ms = Some(3_600_000)),
        prio("r-0 r-1", 8, 200).of("r").late(),
    ));
    let plan = world.explain("r").eviction.unwrap().unwrap();
    let evicted: Vec<&str> = plan.evict.iter().map(|one| &*one.pod).collect();
    let stays = match world.evicted[0].as_str() {
        "x" => "default/y",
        _ => "default/x",
    };
    assert_eq!(evicted, [stays]);
}

/// `q` comes after `p` has begun to take the room of `v`, and goes before it: its queue has used
/// less of its quota. `p` makes another plan, and nobody is evicted for `q`.
#[test]
fn a_gang_of_another_queue_that_goes_before_takes_the_room_that_is_coming() {
    let mut world = World::with_grace(600);
    world.then((
        node("n1 n2 n3", 8),
        (quota("a", 16), quota("b", 8), quota("c", 0)),
        pod("x", 8).queue("a").on("n1"),
        pod("v", 8).queue("c").on("n2"),
        pod("w", 8).queue("c").on("n3"),
        pod("p", 8).queue("a"),
    ));
    world.run(1_000);
    assert_eq!(world.evictions, 1);
    let room = nominated(&world, "p").unwrap();
    world.then(pod("q", 8).queue("b").late());
    world.run(2_000);
    assert_eq!(nominated(&world, "q"), Some(room));
    assert_eq!(world.evictions, 2);
    assert_ne!(nominated(&world, "p"), nominated(&world, "q"));
    world.run(600_000);
    assert_eq!(world.evictions, 2);
}

#[test]
fn a_quota_is_taken_back_from_a_gang_that_was_still_being_bound() {
    let mut world = World::new();
    world.apply((node("n1", 8), quota("a", 0), quota("b", 8)));
    world.apply(pod("x", 2).on("n1").queue("a"));
    world.then((pod("u", 6).queue("a"), pod("z", 8).queue("b")));
    // Nothing else happens: no pod ends, and nobody comes.
    world.run(3_000);
    world.evicted.sort();
    assert_eq!(world.evicted, ["u", "x"]);
    assert_eq!(world.places("z"), "n1");
}
