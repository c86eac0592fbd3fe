//! Quotas are obtainable, and safe, whatever makes fair shares smaller.

use gpu_batch_policies::facts::PodFacts;
use gpu_batch_testing::{Sketch, World, gang, names, node, pod, queue};

const GPU: &str = "nvidia.com/gpu";

/// Pods that ask for so many GPUs and CPUs each.
fn asking(names: &str, gpus: u64, cpus: u64) -> Sketch<PodFacts> {
    pod(names, gpus).shape(|shape| {
        let mut requests = shape.requests.iter_mut();
        let cpu = requests.find(|(name, _)| **name == *"cpu");
        if let Some((_, amount)) = cpu {
            *amount = cpus * 1_000;
        }
    })
}

/// One node of 8 GPUs and 100 CPUs, and the queue `a` with quotas of GPUs and CPUs.
fn world_of(gpus: u64, cpus: u64) -> World {
    World::of((
        node("n1", 8),
        queue("a")
            .entry("cpu", None, (cpus * 1_000, None), 1)
            .entry(GPU, None, (gpus, None), 1),
    ))
}

/// A pod of the queue waits that no node has enough CPUs for beside the others. It lowers the fair
/// share of GPUs to 4 of 8.
#[test]
fn surplus_within_its_quota_stays_where_a_pending_pod_lowers_the_fair_share() {
    let mut world = world_of(8, 4);
    world.apply(queue("b"));
    world.apply(gang("e", 1).queue("a"));
    world.apply(asking(&names("e-", 8), 1, 0).of("e").on("n1"));
    world.apply((gang("big", 1).queue("a"), asking("big-0", 1, 50).of("big")));
    world.apply((gang("p", 1).queue("b"), asking("p-0", 4, 0).of("p")));
    world.settle();
    world.run(60_000);
    let (_, share) = world.share_of("a", GPU);
    assert!(
        share < 8,
        "a world in which the fair share says less: {share}"
    );
    assert_eq!(world.evictions, 0, "{:?}", world.told);
}

/// The fair share of CPUs is a mean over all that the queue asks for.
#[test]
fn a_gang_preempts_within_the_quota_whatever_its_fair_share_of_cpus_is() {
    let mut world = world_of(8, 96);
    world.apply((
        gang("x", 1).queue("a"),
        asking("x-0", 8, 1).of("x").on("n1"),
    ));
    let high = gang("p", 1)
        .queue("a")
        .with(|group| group.priority = Some(100));
    world.apply((high, asking("p-0", 8, 20).of("p")));
    world.settle();
    world.run(60_000);
    assert_eq!(
        world.told_of("Pod x-0: Preempted").len(),
        1,
        "{:?}",
        world.told
    );
    assert!(world.is_placed("p-0"));
}

/// One claims by its quota, the other by its fair share.
#[test]
fn two_elastic_gangs_do_not_take_turns() {
    let mut world = world_of(8, 4);
    world.apply(queue("b"));
    for (name, of) in [("e", "a"), ("f", "b")] {
        world.apply(gang(name, 1).queue(of));
        world.apply(asking(&names(&format!("{name}-"), 8), 1, 0).of(name));
    }
    world.apply((gang("big", 1).queue("a"), asking("big-0", 1, 99).of("big")));
    world.settle();
    world.run(600_000);
    let evictions = world.evictions;
    world.run(3_600_000);
    assert_eq!(world.evictions, evictions, "{:?}", world.told);
}
