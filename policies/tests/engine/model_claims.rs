//! What queues take back of one GPU model.

use gpu_batch_policies::facts::QueueFacts;
use gpu_batch_testing::{Sketch, World, gang, node, pod, queue};

const GPU: &str = "nvidia.com/gpu";

/// Queues with a quota of GPUs, and one of the model A100 if it is said.
fn queues(names: &str, gpus: u64, a100: Option<u64>) -> Sketch<QueueFacts> {
    let sketch = queue(names).entry(GPU, None, (gpus, None), 1);
    match a100 {
        Some(quota) => sketch.entry(GPU, Some("A100"), (quota, None), 1),
        None => sketch,
    }
}

/// Gangs of one pod with 8 GPUs: those on a node run, the others wait.
fn gang_of_8(world: &mut World, name: &str, queue: &str, at: Option<&str>) {
    let member = pod(&format!("{name}-0"), 8).of(name);
    world.apply(gang(name, 1).queue(queue));
    world.apply(match at {
        Some(node) => member.on(node),
        None => member,
    });
}

/// Nodes with 8 GPUs of these models, and queues.
fn world_of(nodes: &[(&str, &str)], queues: Sketch<QueueFacts>) -> World {
    let mut world = World::new();
    for (name, model) in nodes {
        world.apply(node(name, 8).model(model));
    }
    world.apply(queues);
    world
}

/// Each queue would be over its quota of the model with the gang that takes the node, and within it
/// without: they would take it from each other again and again.
#[test]
fn two_gangs_do_not_take_the_room_of_one_model_from_each_other() {
    let mut world = World::of((
        node("n1", 8).model("A100"),
        node("n2", 8).model("H100").cordoned(),
        queues("a b", 8, Some(2)),
    ));
    gang_of_8(&mut world, "v", "a", Some("n1"));
    gang_of_8(&mut world, "p", "b", None);
    world.settle();
    world.run(60_000);
    assert_eq!(world.evictions, 0, "{:?}", world.told);
}

/// The quota of the model is what a queue may claim of it, and no more.
#[test]
fn a_gang_that_names_no_model_claims_the_quota_of_a_model() {
    for (quota, expected) in [(8, 1), (7, 0)] {
        let mut world = world_of(&[("n1", "A100")], queues("a", 8, Some(0)));
        world.apply((
            node("n2", 8).model("H100").cordoned(),
            queues("b", 8, Some(quota)),
        ));
        gang_of_8(&mut world, "v", "a", Some("n1"));
        gang_of_8(&mut world, "p", "b", None);
        world.settle();
        world.run(60_000);
        assert_eq!(world.evictions, expected, "{quota}: {:?}", world.told);
    }
}

/// The queue `c`, which has nothing and asks for nothing, says that the models are divided.
fn names_models() -> Sketch<QueueFacts> {
    let entry = |sketch: Sketch<QueueFacts>, model| sketch.entry(GPU, Some(model), (0, None), 1);
    entry(entry(queue("c"), "A100"), "H100")
}

/// Of 24 GPUs each queue has a fair share of 12. Eight of these are on a node that takes nobody.
#[test]
fn an_entry_for_a_model_does_not_end_claims_for_fair_shares() {
    let mut world = world_of(&[("n1", "A100"), ("n2", "A100")], queues("a b", 0, None));
    world.apply((names_models(), node("n3", 8).model("H100").cordoned()));
    gang_of_8(&mut world, "u", "a", Some("n1"));
    gang_of_8(&mut world, "v", "a", Some("n2"));
    gang_of_8(&mut world, "p", "b", None);
    gang_of_8(&mut world, "q", "b", None);
    world.settle();
    world.run(60_000);
    assert_eq!(world.evictions, 1, "{:?}", world.told);
    assert!(world.is_placed("p-0") && !world.is_placed("q-0"));
}

/// Of 16 GPUs of the model each queue has a fair share of 8.
#[test]
fn gangs_that_need_a_model_claim_the_fair_share_of_it() {
    let mut world = world_of(&[("n1", "A100"), ("n2", "A100")], queues("a b", 0, None));
    world.apply((names_models(), node("n3", 8).model("H100")));
    for (name, queue, at) in [
        ("u", "a", Some("n1")),
        ("v", "a", Some("n2")),
        ("p", "b", None),
        ("q", "b", None),
    ] {
        let member = pod(&format!("{name}-0"), 8).of(name).model("A100");
        world.apply(gang(name, 1).queue(queue));
        world.apply(at.map_or(member.clone(), |node| member.on(node)));
    }
    world.settle();
    world.run(60_000);
    assert_eq!(world.evictions, 1, "{:?}", world.told);
    assert!(world.is_placed("p-0") && !world.is_placed("q-0"));
}

/// `a` holds eight GPUs of each model, and its fair share is eight of any.
#[test]
fn a_queue_over_its_fair_share_of_all_models_gives_of_each() {
    let mut world = world_of(&[("n1", "A100"), ("n2", "H100")], queues("a b", 0, None));
    world.apply(names_models());
    gang_of_8(&mut world, "u", "a", Some("n1"));
    gang_of_8(&mut world, "v", "a", Some("n2"));
    gang_of_8(&mut world, "p", "b", None);
    world.settle();
    world.run(60_000);
    assert_eq!(world.evictions, 1, "{:?}", world.told);
    assert!(world.is_placed("p-0"));
}

/// `a` is over its fair share of all GPUs, but holds no more of the model than it is guaranteed.
/// Surplus is never protected itself.
#[test]
fn no_fair_share_takes_what_the_quota_of_a_model_guarantees() {
    for (quota, expected) in [(8, 0), (0, 4)] {
        let mut world = world_of(&[("n1", "A100"), ("n2", "H100")], queues("b", 0, None));
        let a = queue("a").entry(GPU, Some("A100"), (quota, None), 1);
        world.apply((a, gang("u", 1).queue("a")));
        world.apply(pod("u-0 u-1 u-2 u-3 u-4 u-5 u-6 u-7", 1).of("u").on("n1"));
        world.apply(
            gang("v", 1)
                .queue("a")
                .with(|group| group.preemptible = Some(false)),
        );
        world.apply(pod("v-0", 8).of("v").on("n2"));
        world.apply((gang("p", 1).queue("b"), pod("p-0", 4).of("p")));
        world.settle();
        world.run(60_000);
        assert_eq!(world.evictions, expected, "{quota}: {:?}", world.told);
    }
}

/// No other queue asks for anything: the fair share of `a` is everything.
#[test]
fn an_entry_for_a_model_does_not_keep_a_queue_from_growing_by_preemption() {
    let mut world = world_of(&[("n1", "A100"), ("n2", "A100")], queues("a", 0, None));
    world.apply((names_models(), node("n3", 8).model("H100")));
    let of = |name: &str, pods: &str| pod(pods, 8).of(name).model("A100");
    world.apply((gang("v", 1).queue("a"), of("v", "v-0").on("n1")));
    let high = gang("p", 2)
        .queue("a")
        .with(|group| group.priority = Some(100));
    world.apply((high, of("p", "p-0 p-1")));
    world.settle();
    world.run(60_000);
    assert_eq!(world.evictions, 1, "{:?}", world.told);
    assert!(world.is_placed("p-0"));
}
