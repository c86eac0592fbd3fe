//! Gangs of one queue that would take room from others, one after the other.

use crate::disturbed::budget;
use crate::takings::prio;
use gpu_batch_policies::event::Object;
use gpu_batch_policies::facts::{PodFacts, PodPhase};
use gpu_batch_policies::reason::Reason;
use gpu_batch_testing::{Sketch, To, World, gang, node, pod, queue, quota, throttled};

/// A reason why the gang `p` of the queue `a` has no eviction plan, the gang's minimum, and what
/// the reason changes in the pod `p-0`. A second member asks for more than there is.
type First = (&'static str, u32, fn(Sketch<PodFacts>) -> Sketch<PodFacts>);

/// Gangs like `q`, which lack room for one pod of 8 GPUs as `q` does, and have no plan.
const FIRSTS: [First; 3] = [
    ("it says that nobody is evicted for it", 1, |pod| {
        pod.with(|pod| pod.never_preempts = true)
    }),
    ("it asks for another model", 1, |pod| pod.model("A100")),
    ("it has a second shape", 2, |pod| pod),
];

/// The gangs `p` and `q` of the queue `a` wait for the room of `v`, and `p` finds no plan.
fn two_claimants(first: First, victim: Sketch<PodFacts>, prio_of_both: i32) -> World {
    let (_, minimum, change) = first;
    let mut world = World::of((node("n1", 8).model("H100"), quota("a", 8), queue("b")));
    world.apply((victim.on("n1"), gang("p", minimum).queue("a")));
    if minimum > 1 {
        world.apply(prio("p-1", 9, prio_of_both).of("p"));
    }
    world.apply(change(prio("p-0", 8, prio_of_both).of("p")));
    let late = gang("q", 1).queue("a").with(|gang| gang.created_ms += 1);
    world.then((late, prio("q-0", 8, prio_of_both).of("q")));
    world.run(60_000);
    world
}

/// The planner once passed over every gang that lacked as much as a gang without a plan, so that no
/// gang of the queue ever made one.
#[test]
fn a_gang_without_a_plan_keeps_no_other_gang_of_its_queue_from_its_own() {
    for first in FIRSTS {
        for (victim, priority) in [(pod("v", 8).queue("b"), 0), (prio("v", 8, 10), 100)] {
            let world = two_claimants(first, victim, priority);
            assert_eq!(world.evicted, ["v"], "{} {priority}", first.0);
            assert_eq!(world.places("q-0 p-0"), "n1 -", "{} {priority}", first.0);
        }
    }
}

/// A new leader that has never seen the PodGroup does not know whether its gang had its minimum.
#[test]
fn a_gang_whose_pod_group_is_gone_gives_back_what_is_not_its_own() {
    let group = gang("blow", 2).queue("b").facts();
    let mut world = World::of((node("n1", 8), quota("a", 8), queue("b"), group.clone()));
    world.then(pod("blow-0 blow-1", 4).of("blow").on("n1"));
    world.forget(Object::PodGroup(group).key());
    world.take_over();
    world.then(prio("p", 8, 0));
    world.run(60_000);
    assert_eq!(world.places("p"), "n1");
}

/// A disruption budget allows one eviction, and two gangs need one each.
#[test]
fn two_plans_do_not_count_on_the_last_eviction_of_one_budget() {
    let run = |pod: &mut PodFacts| pod.phase = PodPhase::Running;
    let mut world = World::with_grace(30);
    for victim in ["x", "y"] {
        world.answers(To::EvictionOf(victim), throttled());
    }
    world.then((
        node("n1 n2", 8),
        quota("a", 16),
        budget("both", None, 1),
        prio("x", 8, 10).on("n1").with(run),
        prio("y", 8, 10).on("n2").with(run),
        prio("p", 8, 100),
        prio("q", 8, 100).late(),
    ));
    world.run(5_000);
    let reasons = ["pod/p", "pod/q"].map(|gang| world.reason(gang));
    let both = [Reason::WaitingForEviction, Reason::DoesNotFit];
    assert_eq!(reasons, both.map(Some));
    world.then(budget("both", None, 2));
    world.run(5_000);
    assert_eq!(world.reason("pod/q"), Some(Reason::WaitingForEviction));
}
