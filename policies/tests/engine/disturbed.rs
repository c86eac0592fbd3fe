//! Bad input, and changes in the middle of an eviction plan: no loop, no eviction that has become
//! useless, and whoever waits is told why.

use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{
    DisruptionBudgetFacts, LabelSelector, PodFacts, PodPhase, QueueFacts, Uid,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::{Evictions, Settings};
use gpu_batch_testing::{Sketch, World, gang, node, pod, queue};

const HOUR_MS: u64 = 3_600_000;

/// The queue `a` below the queue `above`, with a quota of GPUs, and perhaps a limit.
fn queue_a(quota: u64, limit: Option<u64>) -> Sketch<QueueFacts> {
    let queue = queue("a").parent("above");
    queue.entry("nvidia.com/gpu", None, (quota, limit), 1)
}

/// Pods of the queue `a` with a priority.
fn prio(names: &str, gpus: u64, priority: i32) -> Sketch<PodFacts> {
    pod(names, gpus)
        .queue("a")
        .with(|pod| pod.priority = priority)
}

/// A world that evicts one pod in a second. Evicted pods stay until the test deletes them.
fn one_a_second() -> World {
    let evictions = Evictions {
        per_second: 1,
        ..Settings::default().evictions
    };
    let mut world = World::with(Settings {
        evictions,
        ..Settings::default()
    });
    world.grace_ms = Some(30_000);
    world
}

/// The gang `p` takes two nodes, from `x` and `y`; `x` was evicted already.
fn amid_evictions() -> World {
    amid_evictions_for(true)
}

/// Such a world, whose gang `p` is preemptible or not.
fn amid_evictions_for(preemptible: bool) -> World {
    let mut world = one_a_second();
    world.then((
        node("n1 n2", 8),
        queue("above"),
        queue_a(16, None),
        prio("x", 8, 10).on("n1"),
        prio("y", 8, 10).on("n2"),
        gang("p", 2)
            .queue("a")
            .with(|gang| gang.preemptible = Some(preemptible)),
        prio("p-0 p-1", 8, 100).of("p"),
    ));
    world.run(500);
    assert_eq!(world.evicted, ["x"]);
    assert_eq!(world.reason("p"), Some(Reason::WaitingForEviction));
    world
}

/// Checks that the plan of `p` has ended after its first eviction, and that no other follows.
fn check_nobody_else_goes(world: &mut World, reason: Reason) {
    world.run(60_000);
    assert_eq!(world.evicted, ["x"]);
    assert_eq!(world.reason("p"), Some(reason));
    for member in ["p-0", "p-1"] {
        assert_eq!(world.stored(member).nominated, None, "{member}");
    }
    world.delete("x");
    world.then(prio("s", 8, 1).late());
    assert_eq!(world.places("s y"), "n1 n2", "the room is free at once");
}

#[test]
fn a_beneficiary_whose_queue_gets_a_limit_or_is_closed_evicts_nobody_else() {
    let ends: [(Sketch<QueueFacts>, Reason); 3] = [
        (queue_a(8, Some(15)), Reason::OverLimit),
        (queue("above").limit(15), Reason::OverLimit),
        (queue_a(16, None).closed(), Reason::QueueClosed),
    ];
    for (changed, reason) in ends {
        let mut world = amid_evictions();
        world.then(changed);
        world.run(60_000);
        assert_eq!(world.evicted, ["x"], "{reason:?}");
        assert_eq!(world.reason("p"), Some(reason));
        assert_eq!(world.stored("p-0").nominated, None, "{reason:?}");
    }
}

#[test]
fn a_beneficiary_that_is_not_preemptible_evicts_nobody_else_beyond_a_lower_quota() {
    let mut world = amid_evictions_for(false);
    world.then(queue_a(15, None));
    world.run(60_000);
    assert_eq!(world.evicted, ["x"]);
    assert_eq!(world.reason("p"), Some(Reason::NonPreemptibleOverQuota));
}

#[test]
fn a_beneficiary_whose_queue_is_deleted_evicts_nobody_else() {
    let mut world = amid_evictions();
    world.lose_queue("a");
    world.run(60_000);
    assert_eq!(world.evicted, ["x"]);
    assert_eq!(world.reason("p"), Some(Reason::QueueNotFound));
}

#[test]
fn a_beneficiary_that_loses_its_priority_evicts_nobody_else() {
    let mut world = amid_evictions();
    world.change("p-0 p-1", |pod| pod.priority = 10);
    check_nobody_else_goes(&mut world, Reason::DoesNotFit);
}

/// A budget of the namespace of all pods here. `selects`: the value of the label `app` that it
/// selects; `None`: every pod.
pub(crate) fn budget(name: &str, selects: Option<&str>, allowed: u32) -> Object {
    let app = selects.map(|app| ("app".into(), app.into()));
    Object::DisruptionBudget(DisruptionBudgetFacts {
        uid: Uid(6 << 64 | name.len() as u128),
        namespace: "default".into(),
        name: name.into(),
        selector: Some(LabelSelector {
            match_labels: app.into_iter().collect(),
            match_expressions: Vec::new(),
        }),
        allowed,
        problems: Vec::new(),
    })
}

#[test]
fn budgets_that_match_nothing_hold_nothing_up_and_one_that_matches_all_keeps_all() {
    let kept: [(&[Object], &[&str]); 4] = [
        (&[budget("of-nobody", Some("nobody"), 0)], &["x"]),
        (&[budget("of-all", None, 1)], &["x"]),
        (&[budget("of-all", None, 0)], &[]),
        // Each of them alone would allow it; the API server evicts no pod that two select.
        (&[budget("of-all", None, 9), budget("all", None, 9)], &[]),
    ];
    for (budgets, evicted) in kept {
        let mut world = one_a_second();
        for budget in budgets {
            world.apply(budget.clone());
        }
        world.then((
            node("n1", 8),
            (queue("above"), queue_a(8, None)),
            prio("x", 8, 10)
                .on("n1")
                .with(|pod| pod.phase = PodPhase::Running),
            prio("p", 8, 100),
        ));
        world.run(60_000);
        assert_eq!(world.evicted, evicted, "{budgets:?}");
        let waits = match evicted.len() {
            0 => Reason::DoesNotFit,
            _ => Reason::WaitingForEviction,
        };
        assert_eq!(world.reason_of_pod("p"), Some(waits));
        if evicted.is_empty() {
            let none = world.explain("pod/p").eviction.unwrap().unwrap_err();
            let names = match budgets {
                [_] => "disruption budget default/of-all",
                _ => "disruption budgets default/all and default/of-all",
            };
            let guarded = "; gangs that a disruption budget guards stay, as default/pod/x does: ";
            let guarded = guarded.to_owned() + names;
            assert!(none.message.ends_with(&guarded), "{}", none.message);
        }
    }
}

/// The second victim is not sent, and nothing else happens that could end the plan.
#[test]
fn a_plan_that_fails_while_it_is_sent_ends_at_once() {
    let mut world = one_a_second();
    let runs = |name: &str, node: &str| {
        let victim = prio(name, 8, 10).on(node);
        victim.with(|pod| pod.phase = PodPhase::Running)
    };
    world.then((
        node("n1 n2", 8),
        (queue("above"), queue_a(16, None)),
        (runs("x", "n1"), runs("y", "n2")),
        gang("p", 2).queue("a"),
        prio("p-0 p-1", 8, 100).of("p"),
    ));
    assert_eq!(world.evictions, 1);
    world.then(budget("of-all", None, 0));
    let told = world.told_of("PodGroup p: EvictionPlanFailed");
    assert_eq!(told.len(), 1, "{:?}", world.told);
    assert!(
        told[0].contains("a disruption budget keeps pod"),
        "{told:?}"
    );
}

/// Each of two pods may be evicted by itself, and a gang that needs both nodes is told of the
/// budget that does not allow both.
#[test]
fn explain_names_the_budget_that_allows_too_few_evictions() {
    let mut world = one_a_second();
    world.apply(budget("of-all", None, 1));
    let running = |pods| prio(pods, 8, 10).with(|pod| pod.phase = PodPhase::Running);
    world.then((
        node("n1 n2", 8),
        (queue("above"), queue_a(16, None)),
        (running("x").on("n1"), running("y").on("n2")),
        gang("p", 2).queue("a"),
        prio("p-0 p-1", 8, 100).of("p"),
    ));
    world.run(60_000);
    assert_eq!(world.evicted, [""; 0]);
    let none = world.explain("p").eviction.unwrap().unwrap_err();
    let used_up = "the disruption budget default/of-all allows fewer evictions";
    assert_eq!(none.message, used_up);
}

#[test]
fn a_checkpoint_in_the_future_loses_nothing_and_saves_nothing() {
    let checkpoint = |pods: Sketch<PodFacts>, ms: Option<u64>| {
        pods.with(|pod| pod.hints.last_checkpoint_ms = ms)
    };
    for future_ms in [2_000_000_000_000, u64::MAX] {
        let mut world = one_a_second();
        world.then((
            node("n1 n2", 8),
            (queue("above"), queue_a(16, None)),
            prio("x", 8, 10).on("n1"),
            checkpoint(prio("y", 8, 10).on("n2"), Some(future_ms)),
            prio("p", 8, 100),
        ));
        // It has lost nothing, and `x` what it did since its start.
        world.run(60_000);
        assert_eq!(world.evicted, ["y"]);
        let told = world.told_of("Pod y: Preempted").join(" ");
        let lost = "0 s of work on 8 GPUs since its last checkpoint are lost";
        assert!(told.contains(lost), "{told}");
    }
}

#[test]
fn victims_that_never_go_cost_a_few_others_and_then_a_pause() {
    let mut world = one_a_second();
    world.apply((node("n1 n2 n3 n4 n5 n6", 8), queue("above")));
    world.apply(queue_a(48, None));
    for number in 1..=6 {
        let victim = prio(&format!("v{number}"), 8, 10);
        world.apply(victim.on(&format!("n{number}")));
    }
    world.then(prio("p", 8, 100));
    world.run(HOUR_MS / 2);
    assert_eq!(world.evictions, 3);
    assert_eq!(world.reason_of_pod("p"), Some(Reason::DoesNotFit));
    world.run(2 * HOUR_MS);
    assert!(world.evictions <= 5, "{:?}", world.evicted);
    // None was asked twice, and room that comes at last is used.
    let late = world.evicted[0].clone();
    let freed = world.node_of(&late);
    world.delete(&late);
    world.run(1_000);
    assert_eq!(world.node_of("p"), freed);
}

#[test]
fn a_plan_whose_node_vanishes_with_its_victims_is_made_anew_elsewhere() {
    for garbage_is_collected in [true, false] {
        let mut world = one_a_second();
        world.then((
            node("n1 n2 n3", 8),
            (queue("above"), queue_a(24, None)),
            prio("x", 8, 10).on("n1"),
            prio("y", 8, 20).on("n2"),
            prio("z", 8, 30).on("n3"),
            prio("p", 8, 100),
        ));
        world.run(500);
        assert_eq!(world.evicted, ["x"]);
        world.lose_node("n1");
        if garbage_is_collected {
            world.delete("x");
        }
        world.run(5_000);
        assert_eq!(world.evicted, ["x", "y"]);
        assert_eq!(world.stored("p").nominated.as_deref(), Some("n2"));
        world.delete("y");
        world.run(1_000);
        assert_eq!(world.places("p z"), "n2 n3");
        world.run(60_000);
        assert_eq!(world.evictions, 2);
    }
}

/// The time of an engine never goes back: until the clock has caught up, it stands still.
#[test]
fn a_clock_that_goes_back_delays_what_is_planned_and_makes_no_plan_anew() {
    for jumps in [[10_000, 0], [0, 10_000]] {
        let mut world = amid_evictions();
        let began_ms = world.now_ms;
        for jump_ms in jumps {
            world.now_ms = began_ms + jump_ms;
            world.settle();
        }
        world.now_ms = began_ms;
        world.run(20_000);
        assert_eq!(world.evicted, ["x", "y"], "{jumps:?}");
        world.delete("x y");
        world.run(1_000);
        assert_eq!(world.nodes_of("p-0 p-1"), ["n1", "n2"], "{jumps:?}");
        assert_eq!(world.evictions, 2, "{jumps:?}");
    }
}

/// After a day that nobody has seen, victims are late that have not left in it.
#[test]
fn a_clock_that_jumps_a_day_ahead_gives_late_victims_up_and_still_lets_the_gang_start() {
    let mut world = amid_evictions();
    world.pass(24 * HOUR_MS);
    world.run(10_000);
    assert_eq!(world.evicted, ["x"], "with `x` stuck there is no plan");
    assert_eq!(world.reason("p"), Some(Reason::DoesNotFit));
    world.delete("x");
    world.run(3_000);
    assert_eq!(world.evicted, ["x", "y"]);
    world.delete("y");
    world.run(1_000);
    assert_eq!(world.nodes_of("p-0 p-1"), ["n1", "n2"]);
    assert_eq!(world.evictions, 2);
}
