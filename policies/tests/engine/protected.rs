//! Which gangs no other queue can reclaim.

use fastrand::Rng;
use gpu_batch_policies::explain::Takers;
use gpu_batch_policies::facts::MatchOperator::In;
use gpu_batch_policies::facts::UNREADABLE_MS;
use gpu_batch_policies::settings::Settings;
use gpu_batch_testing::{START_MS, World, gang, leaf, node, pod, queue, quota};
use std::collections::BTreeMap;

/// Whether the gangs are protected, as their statuses say.
fn protected(world: &World, gangs: &[&str]) -> Vec<Option<bool>> {
    let status = |name: &&str| world.gang(name).status.protected;
    gangs.iter().map(status).collect()
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);

/// A gang of one pod that runs since so many hours.
fn runs(world: &mut World, name: &str, gpus: u64, (priority, hours): (i32, u64)) {
    let bound_ms = 1_000_000_000 - hours * 3_600_000;
    let group = gang(name, 1)
        .queue("team")
        .with(|group| group.priority = Some(priority));
    let member = pod(&format!("{name}-0"), gpus).of(name).on("n1");
    world.apply((group, member.with(|pod| pod.bound_ms = Some(bound_ms))));
}

#[test]
fn priority_comes_before_age_and_each_that_still_fits_is_taken() {
    let mut world = World::of((
        queue("team").entry("nvidia.com/gpu", None, (5, None), 1),
        node("n1", 16),
    ));
    runs(&mut world, "old", 2, (50, 9));
    runs(&mut world, "high", 2, (100, 0));
    runs(&mut world, "new", 2, (50, 1));
    runs(&mut world, "small", 1, (50, 0));
    world.settle();
    world.later(2_000);
    let found = protected(&world, &["high", "old", "new", "small"]);
    assert_eq!(found, [YES, YES, NO, YES], "5 = 2 + 2 + 1");
    world.end("old-0");
    world.later(2_000);
    let found = protected(&world, &["high", "old", "new", "small"]);
    assert_eq!(
        found,
        [YES, None, YES, YES],
        "room in the quota protects another gang"
    );
}

#[test]
fn what_is_not_preemptible_is_always_protected() {
    let mut world = World::of((
        queue("team").entry("nvidia.com/gpu", None, (4, None), 1),
        node("n1", 16),
    ));
    let fixed = gang("fixed", 1)
        .queue("team")
        .with(|group| group.preemptible = Some(false));
    world.apply((fixed, pod("fixed-0", 3).of("fixed").on("n1")));
    runs(&mut world, "old", 3, (0, 9));
    runs(&mut world, "one", 1, (0, 1));
    world.settle();
    world.later(2_000);
    assert_eq!(protected(&world, &["fixed", "old", "one"]), [YES, NO, YES]);
}

/// The quota was lowered: `fixed` holds more than all of it. Another queue could not have its own
/// quota if a second gang were protected beside it.
#[test]
fn what_is_not_preemptible_uses_up_a_quota_that_it_does_not_fit() {
    let mut world = World::of((
        queue("team").entry("nvidia.com/gpu", None, (6, None), 1),
        queue("other").entry("nvidia.com/gpu", None, (6, None), 1),
        node("n1", 12),
    ));
    let fixed = gang("fixed", 1)
        .queue("team")
        .with(|group| group.preemptible = Some(false));
    world.apply((fixed, pod("fixed-0", 7).of("fixed").on("n1")));
    runs(&mut world, "two", 2, (0, 9));
    world.settle();
    world.later(2_000);
    assert_eq!(protected(&world, &["fixed", "two"]), [YES, NO]);
    world.apply((gang("p", 1).queue("other"), pod("p-0", 5).of("p")));
    world.settle();
    assert_eq!(world.evicted, ["two-0"]);
    assert!(world.is_placed("p-0"));
}

/// Only the A100 has an entry: of the gang's GPUs four are left to the quota of GPUs. All six use
/// it up.
#[test]
fn a_gang_on_two_models_is_judged_by_both_quotas() {
    for (quota, expected) in [(3, [NO, YES]), (6, [YES, NO]), (7, [YES, YES])] {
        let mut world = World::of((
            queue("team")
                .entry("nvidia.com/gpu", None, (quota, None), 1)
                .entry("nvidia.com/gpu", Some("A100"), (2, None), 1),
            node("n1", 8).model("A100"),
            node("n2", 8).model("H100"),
            gang("both", 2).queue("team"),
            pod("b-0", 2).of("both").on("n1"),
            pod("b-1", 4).of("both").on("n2"),
            gang("more", 1).queue("team"),
            pod("m-0", 1).of("more").on("n2"),
        ));
        world.settle();
        world.later(2_000);
        assert_eq!(protected(&world, &["both", "more"]), expected, "{quota}");
    }
}

#[test]
fn surplus_pushes_no_minimum_out_of_the_quota() {
    let mut world = World::of((
        queue("team").entry("nvidia.com/gpu", None, (4, None), 1),
        node("n1", 16),
    ));
    let slices = gang("slices", 1)
        .sub_groups(leaf("a b", "", 1))
        .at_least(1)
        .queue("team");
    world.apply((
        gang("elastic", 2).queue("team"),
        pod("e0 e1 e2 e3 e4", 1).of("elastic").on("n1"),
        slices,
        pod("a0", 2).of_leaf("slices", "a").on("n1"),
        pod("b0", 2).of_leaf("slices", "b").on("n1"),
    ));
    world.settle();
    world.later(2_000);
    assert_eq!(protected(&world, &["elastic", "slices"]), [YES, YES]);
}

#[test]
fn of_quotas_that_promise_too_much_only_what_is_divided_protects() {
    let mut world = World::of((
        queue("team other").entry("nvidia.com/gpu", None, (8, None), 1),
        node("n1", 8),
        pod("w", 8).queue("other"),
    ));
    runs(&mut world, "one", 4, (0, 2));
    runs(&mut world, "two", 4, (0, 1));
    world.settle();
    world.later(2_000);
    assert_eq!(
        protected(&world, &["one", "two"]),
        [YES, NO],
        "half of 8 is left"
    );
    world.delete("w");
    world.later(2_000);
    assert_eq!(
        protected(&world, &["one", "two"]),
        [YES, YES],
        "nobody else wants any"
    );
}

/// The entry of a model decides alone about what runs on that model.
#[test]
fn a_gang_on_a_model_is_protected_by_the_quota_of_the_model() {
    let gpus = queue("team").entry("nvidia.com/gpu", None, (2, None), 1);
    let mut world = World::of((
        gpus.entry("nvidia.com/gpu", Some("H100"), (4, None), 1),
        node("n1", 16).model("H100"),
        node("n2", 16).model("A100"),
    ));
    runs(&mut world, "h100", 4, (0, 1));
    let group = gang("a100", 1).queue("team");
    world.apply((group, pod("a100-0", 4).of("a100").on("n2")));
    world.settle();
    world.later(2_000);
    assert_eq!(protected(&world, &["h100", "a100"]), [YES, NO]);
}

/// Of a quota of 8 GPUs, whatever they are, 4 are used on H100: 4 are left for others.
#[test]
fn what_a_quota_of_a_model_protects_uses_up_the_plain_quota() {
    let gpus = queue("team").entry("nvidia.com/gpu", None, (8, None), 1);
    let mut world = World::of((
        gpus.entry("nvidia.com/gpu", Some("H100"), (4, None), 1),
        node("n1", 16).model("H100"),
        node("n2", 16).model("A100"),
    ));
    runs(&mut world, "h100", 4, (0, 1));
    let group = gang("six four", 1).queue("team");
    world.apply((
        group,
        pod("six-0", 6).of("six").on("n2"),
        pod("four-0", 4).of("four").on("n2"),
    ));
    world.settle();
    world.later(2_000);
    let found = protected(&world, &["h100", "six", "four"]);
    assert_eq!(found, [YES, NO, YES]);
}

/// What is told follows every change, as if it were worked out of nothing.
#[test]
fn protection_follows_whatever_happens() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..40 {
        let mut random = Rng::with_seed(seed);
        let mut quota = random.u64(0..12);
        let queue = |quota| queue("team").entry("nvidia.com/gpu", None, (quota, None), 1);
        let mut world = World::of((queue(quota), node("n1", 64)));
        // By name: priority, age and GPUs.
        let mut running: BTreeMap<String, (i32, u64, u64)> = BTreeMap::new();
        for number in 0..30 {
            match random.u8(0..4) {
                0 if !running.is_empty() => {
                    let names: Vec<String> = running.keys().cloned().collect();
                    let name = random.choice(&names).expect("some run").clone();
                    running.remove(&name);
                    world.end(&format!("{name}-0"));
                }
                1 => {
                    quota = random.u64(0..12);
                    world.apply(queue(quota));
                }
                _ => {
                    let name = format!("g{number}");
                    let (priority, hours, gpus) = (random.i32(0..3), number + 1, random.u64(1..4));
                    runs(&mut world, &name, gpus, (priority, hours));
                    running.insert(name, (priority, hours, gpus));
                }
            }
            world.settle();
            world.later(2_000);
            let mut order: Vec<_> = running.iter().collect();
            order.sort_by_key(|(_, (priority, hours, _))| (-priority, std::cmp::Reverse(*hours)));
            let mut left = quota;
            for (name, (_, _, gpus)) in order {
                let expected = *gpus <= left;
                left -= if expected { *gpus } else { 0 };
                let found = world.gang(name).status.protected;
                assert_eq!(
                    found,
                    Some(expected),
                    "seed {seed}, {number}: {name} of {running:?}"
                );
                yes += u32::from(expected);
                no += u32::from(!expected);
            }
        }
    }
    assert!(yes > 500 && no > 500, "{yes} protected, {no} not");
}

/// What `explain` says of who could take the room of the gang `old`, which runs since 30 s.
fn takers(settings: Settings) -> Option<Takers> {
    let mut world = World::with(settings);
    world.then((
        queue("team").with(|queue| queue.reclaim_min_runtime_ms = Some(10 * 3_600_000)),
        node("n1", 16),
    ));
    let old = gang("old", 1).queue("team");
    let old = old.with(|group| group.priority = Some(50));
    world.then((old, pod("old-0", 2).of("old").on("n1")));
    world.explain("old").takers
}

#[test]
fn who_could_take_the_room_of_a_gang_is_told_with_the_time() {
    let taken = takers(Settings::default()).unwrap();
    let since_ms = START_MS - 30_000;
    assert!(taken.preemptible);
    assert_eq!(taken.reclaim_from_ms, Some(since_ms + 10 * 3_600_000));
    assert_eq!(taken.preempt_from_ms, Some(since_ms));
    assert_eq!(taken.move_from_ms, None, "nobody would make its pod anew");
    assert_eq!(
        taken.sentences,
        [
            "other queues could reclaim its minimum, which the quota of its queue does not \
             protect, from 2027-01-15T17:59:30Z on: reclaimMinRuntime of its queue",
            "gangs of its queue with a priority above 50 could preempt it at any time",
        ]
    );
}

#[test]
fn a_min_runtime_that_cannot_be_read_is_told_and_no_date() {
    let mut world = World::with_grace(30);
    world.then((
        queue("team").with(|queue| queue.reclaim_min_runtime_ms = Some(UNREADABLE_MS)),
        node("n1", 2),
        quota("other", 2),
        gang("old", 1).queue("team"),
        pod("old-0", 2).of("old").owned_by("old").on("n1"),
    ));
    let taken = world.explain("old").takers.unwrap();
    assert_eq!((taken.reclaim_from_ms, taken.move_from_ms), (None, None));
    assert_eq!(
        taken.sentences,
        [
            "other queues could reclaim its minimum, which the quota of its queue does not \
             protect, at no time: reclaimMinRuntime of its queue cannot be read",
            "gangs of its queue with a priority above 0 could preempt it at any time",
            "gangs of any queue could have it moved to other nodes at no time: reclaimMinRuntime \
             of its queue cannot be read",
        ]
    );
    world.then(pod("p", 2).queue("other"));
    let none = world.explain("pod/p").eviction.unwrap().unwrap_err();
    assert_eq!(none.next_ms, None);
    let stays = "no gang that runs may be evicted for it (since reclaimMinRuntime of its queue \
                 cannot be read: default/old)";
    assert_eq!(none.message, stays);
}

#[test]
fn nobody_could_take_room_where_evictions_are_switched_off() {
    let mut settings = Settings::default();
    settings.evictions.in_flight = 0;
    let taken = takers(settings).unwrap();
    assert_eq!(taken.reclaim_from_ms, None);
    let off = "nobody: evictions are switched off: evictions.inFlight is 0 in the configuration";
    assert_eq!(taken.sentences, [off]);
}

/// What the minimum leaves of a quota protects the oldest of the surplus.
#[test]
fn of_an_elastic_gang_the_quota_protects_the_minimum_and_the_oldest_of_the_others() {
    let mut world = World::new();
    world.apply((
        quota("team", 4),
        quota("other", 8),
        gang("e", 1).queue("team"),
    ));
    world.apply((node("n1 n2", 3), gang("p", 1).queue("other")));
    for (number, on) in [
        (0, "n1"),
        (1, "n1"),
        (2, "n1"),
        (3, "n2"),
        (4, "n2"),
        (5, "n2"),
    ] {
        let member = pod(&format!("e-{number}"), 1).of("e").on(on);
        let bound_ms = START_MS - 3_600_000 + number * 60_000;
        world.apply(member.with(|pod| pod.bound_ms = Some(bound_ms)));
    }
    let wants = |on: &str| {
        pod("p-0", 1)
            .of("p")
            .needs("kubernetes.io/hostname", In, &[on])
    };
    world.apply((
        node("n1", 3).label("kubernetes.io/hostname", "n1"),
        node("n2", 3).label("kubernetes.io/hostname", "n2"),
        wants("n1"),
    ));
    world.run(60_000);
    assert_eq!(world.evictions, 0, "{:?}", world.told);
    let takers = world.explain("e").takers.expect("it runs");
    let said = takers.sentences.join("; ");
    assert!(
        said.contains("other queues at most 2 of them, while"),
        "{said}"
    );
    world.apply(wants("n2"));
    world.run(60_000);
    assert_eq!(world.evictions, 1, "{:?}", world.told);
    assert_eq!(world.told_of("Pod e-5: Reclaimed").len(), 1);
}
