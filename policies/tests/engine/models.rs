//! Which GPU model a pod demands: the one that it can run on alone, whatever says so; and which
//! cards count.

use gpu_batch_policies::explain::EvictionAction;
use gpu_batch_policies::facts::{
    HAMI_REGISTER, MatchOperator, NodeFacts, PodFacts, Readiness, Taint, TaintEffect,
};
use gpu_batch_policies::reason::Reason;
use gpu_batch_policies::settings::{Evictions, Settings};
use gpu_batch_testing::{GPU, MODEL, START_MS, Sketch, World, gang, names, node, pod, queue};

const H100: &str = "nvidia.com/gpu@H100";
const MINUTE_MS: u64 = 60_000;

fn of(name: &str, gpus: u64, model: &str) -> Sketch<NodeFacts> {
    node(name, gpus).model(model)
}

/// A node of 8 H100 and one of 8 A100, each with another label, and the queue `team` with an entry
/// for H100.
fn two_models() -> World {
    let mut world = World::new();
    world.apply((
        of("h0", 8, "H100").label("pool", "new"),
        of("a0", 8, "A100").label("pool", "old"),
        queue("team").entry(GPU, Some("H100"), (8, None), 1),
    ));
    world
}

/// Whether a pod demands the model H100 among two models.
fn demands_h100(pod: Sketch<PodFacts>) -> bool {
    let mut world = two_models();
    world.then(pod.queue("team"));
    let (requested, fair) = world.share_of("team", H100);
    assert!(requested == fair && (requested == 0 || requested == 4));
    requested == 4
}

#[test]
fn what_can_run_on_one_model_alone_demands_it_whatever_says_so() {
    assert!(demands_h100(pod("by-product", 4).model("H100")));
    let pool = |operator, value| pod("p", 4).needs("pool", operator, &[value]);
    assert!(demands_h100(pool(MatchOperator::In, "new")));
    assert!(demands_h100(pool(MatchOperator::NotIn, "old")));
    let product = |operator, values| pod("p", 4).needs(MODEL, operator, values);
    assert!(demands_h100(product(MatchOperator::NotIn, &["A100"])));
    assert!(demands_h100(product(MatchOperator::In, &["H100", "B200"])));
    // Selectors that allow A100 leave the pod another model than H100.
    assert!(!demands_h100(product(MatchOperator::NotIn, &["H100"])));
    assert!(!demands_h100(product(MatchOperator::In, &["A100", "H100"])));
    assert!(!demands_h100(product(MatchOperator::Exists, &[])));
}

#[test]
fn what_can_run_anywhere_demands_the_only_model_while_there_is_no_other() {
    let mut world = World::of((
        of("h0", 8, "H100"),
        of("h1", 8, "H100"),
        queue("team").entry(GPU, Some("H100"), (8, None), 1),
        pod("runs", 8).queue("team"),
        pod("foreign", 8).foreign().on("h1"),
    ));
    world.then(pod("waits", 4).queue("team"));
    assert_eq!(world.share_of("team", H100), (12, 8));
    // Another model comes, but no node that is large enough for any of them.
    world.then(of("a0", 2, "A100"));
    assert_eq!(world.share_of("team", H100).0, 12);
    // The pod that waits may run on either model now; the one that runs holds H100.
    world.then((
        of("a1", 8, "A100").label("pool", "old"),
        pod("others", 8).foreign().on("a1"),
    ));
    assert_eq!(world.places("waits"), "-");
    assert_eq!(world.share_of("team", H100), (8, 0));
    world.lose_node("a1");
    world.settle();
    assert_eq!(world.share_of("team", H100), (12, 8));
}

#[test]
fn the_state_that_a_node_is_in_moves_no_demand() {
    let mut world = two_models();
    world.then((
        pod("full", 8).foreign().on("h0"),
        pod("busy", 8).foreign().on("a0"),
        pod("p", 4).queue("team"),
    ));
    assert_eq!(world.share_of("team", H100).0, 0);
    let a100 = || of("a0", 8, "A100").label("pool", "old");
    let taint = |key: &str| Taint {
        key: key.into(),
        value: "".into(),
        effect: TaintEffect::NoSchedule,
    };
    let tainted = |key| a100().with(|node| node.taints = vec![taint(key)]);
    let unreachable = tainted("node.kubernetes.io/unreachable");
    let lost = |since_ms| {
        let readiness = Readiness::Lost { since_ms };
        unreachable.clone().with(|node| node.readiness = readiness)
    };
    for node in [
        a100().cordoned(),
        tainted("node.kubernetes.io/not-ready"),
        lost(None),
    ] {
        world.then(node);
        assert_eq!(world.share_of("team", H100).0, 0);
    }
    // A node that is lost for long counts no more, and a taint for others keeps it out.
    world.later(5 * MINUTE_MS);
    assert_eq!(world.share_of("team", H100).0, 4);
    world.then(a100());
    assert_eq!(world.share_of("team", H100).0, 0);
    world.then(tainted("example.com/dedicated"));
    assert_eq!(world.share_of("team", H100).0, 4);
}

#[test]
fn a_promise_of_a_model_counts_for_all_that_can_run_on_it_alone() {
    let mut world = World::new();
    world.apply((
        of("h0", 8, "H100"),
        queue("team").entry(GPU, Some("H100"), (8, None), 1),
        queue("others"),
    ));
    // Served within its quota, although the others came first and hold nothing.
    world.then((
        pod("other", 8).queue("others"),
        pod("p", 8).queue("team").late(),
    ));
    assert_eq!(world.places("p"), "h0");
}

#[test]
fn a_limit_on_the_only_model_that_there_is_filters_its_nodes() {
    let mut world = World::of((
        of("h0", 8, "H100"),
        queue("team").entry(GPU, Some("H100"), (0, Some(4)), 1),
        pod("p", 8).queue("team"),
    ));
    assert_eq!(world.reason_of_pod("p"), Some(Reason::OverLimit));
    // The limit on H100 keeps no pod off nodes with A100.
    world.then(of("a0", 8, "A100"));
    assert_eq!(world.places("p"), "a0");
}

#[test]
fn a_share_is_worked_out_for_each_model_of_a_mixed_demand() {
    let mut world = World::new();
    world.apply((of("h0", 4, "H100"), of("a0", 8, "A100")));
    let team = queue("team").entry(GPU, Some("H100"), (0, None), 1);
    world.apply(team.entry(GPU, Some("A100"), (0, None), 1));
    world.then((
        pod(&names("h", 6), 2).queue("team").model("H100"),
        pod(&names("a", 6), 1).queue("team").model("A100"),
    ));
    // 12 H100 and 6 A100 are wanted; with 4 of 12 in proportion it would be 4 and 2.
    assert_eq!(world.share_of("team", H100).1, 4);
    assert_eq!(world.share_of("team", "nvidia.com/gpu@A100").1, 6);
    assert_eq!(world.share_of("team", GPU).1, 10);
}

#[test]
fn who_runs_on_a_model_by_chance_takes_no_share_of_it() {
    let mut world = World::of((
        of("h0", 4, "H100"),
        queue("team").entry(GPU, Some("H100"), (0, None), 1),
        queue("others"),
        pod("anywhere", 4).queue("others"),
    ));
    assert_eq!(world.places("anywhere"), "h0");
    world.then((
        of("a0", 8, "A100"),
        pod("picky", 4).queue("team").model("H100"),
    ));
    assert_eq!(world.share_of("team", H100).1, 4);
    assert_eq!(world.share_of("others", GPU).1, 4);
}

/// A node that has been lost for so long.
fn lost(name: &str, minutes: u64) -> Sketch<NodeFacts> {
    let since_ms = Some(START_MS - minutes * MINUTE_MS);
    node(name, 8).with(|node| node.readiness = Readiness::Lost { since_ms })
}

#[test]
fn a_node_that_was_lost_before_the_start_counts_for_the_rest_of_its_five_minutes() {
    let mut world = World::of((
        node("n0", 8),
        lost("short", 1),
        lost("long", 5),
        node("new", 8).with(|node| node.readiness = Readiness::Unsaid),
        queue("team"),
        pod("p", 64).queue("team"),
    ));
    assert_eq!(world.share_of("team", GPU).1, 16);
    world.later(4 * MINUTE_MS - 1);
    assert_eq!(world.share_of("team", GPU).1, 16);
    world.later(1);
    assert_eq!(world.share_of("team", GPU).1, 8);
    world.then(node("long", 8));
    assert_eq!(world.share_of("team", GPU).1, 16);
}

#[test]
fn a_node_that_is_not_ready_takes_no_pods_without_a_taint() {
    let mut world = World::of((lost("n0", 1), pod("p", 8)));
    assert_eq!(world.reason_of_pod("p"), Some(Reason::DoesNotFit));
    let message = world.pod("p").message;
    assert!(message.contains("1 was not ready"), "{message}");
    world.then(node("n0", 8));
    assert_eq!(world.places("p"), "n0");
}

/// A node on which HAMi offers ten slots on each of 8 cards.
fn hami(name: &str) -> Sketch<NodeFacts> {
    let register = vec![(HAMI_REGISTER.into(), "".into())];
    node(name, 80).with(|node| node.annotations.clone_from(&register))
}

#[test]
fn slots_of_hami_are_no_cards() {
    let mut world = World::of((
        hami("slots").label("gpu", "on"),
        queue("team"),
        gang("g", 1).queue("team"),
        pod("p", 9).of("g"),
        pod("one", 1).queue("team"),
        pod("cpu", 0).queue("team"),
    ));
    assert_eq!(world.reason("g"), Some(Reason::Unsupported));
    assert_eq!(world.reason_of_pod("one"), Some(Reason::Unsupported));
    assert_eq!(
        world.message("g"),
        "pod p: nvidia.com/gpu: only nodes of HAMi would do, which take pods that ask for parts of \
         cards; for whole cards add `nvidia.com/gpumem-percentage: 100` to the limits"
    );
    assert_eq!(world.places("cpu"), "slots");
    // Pods that only nodes with slots would suit count as asking for no GPUs, and slots are no GPUs
    // to divide.
    assert_eq!(world.share_of("team", GPU), (0, 0));
    // A node with cards comes: pods that fit run there.
    world.then((
        node("cards", 8),
        pod("chooses", 1).needs("gpu", MatchOperator::In, &["on"]),
    ));
    assert_eq!(world.places("one"), "cards");
    assert_eq!(world.reason("g"), Some(Reason::Unsupported));
    assert_eq!(world.reason_of_pod("chooses"), Some(Reason::Unsupported));
    assert_eq!(world.share_of("team", GPU), (1, 1));
    world.then(pod("full", 8));
    let message = world.pod("full").message;
    assert!(
        message.contains("1 offered slots of HAMi, for pods that ask for parts of cards"),
        "{message}"
    );
    // Without HAMi the cards are cards.
    world.then(node("slots", 32).label("gpu", "on"));
    assert_eq!(world.places("p"), "slots");
}

/// The world looks after each step whether what classes know of the nodes is right.
#[test]
fn a_node_without_a_condition_of_readiness_counts_again_when_it_is_ready() {
    let mut world = two_models();
    let unsaid = of("h1", 8, "H100").with(|node| node.readiness = Readiness::Unsaid);
    world.then((unsaid, pod("a", 1).queue("team")));
    world.later(6 * MINUTE_MS);
    world.then(of("h1", 8, "H100"));
    assert_eq!(world.binds, 1);
}

#[test]
fn a_queue_that_is_promised_a_model_alone_reclaims_it() {
    let defaults = Settings::default();
    let evictions = defaults.evictions;
    let mut world = World::with(Settings {
        evictions: Evictions {
            in_flight: 0,
            ..evictions
        },
        ..defaults
    });
    let quota = |name, model, gpus| queue(name).entry(GPU, model, (gpus, None), 1);
    world.then((
        (of("n1", 8, "H100"), of("n2", 8, "A100")),
        quota("promised", Some("H100"), 8),
        quota("others", None, 0),
        pod("h", 8).queue("others").model("H100"),
    ));
    world.then(pod("p", 8).queue("promised").model("H100").late());
    world.engine.set_evictions(evictions);
    let plan = world.explain("pod/p").eviction.unwrap().unwrap();
    let evicted: Vec<&str> = plan.evict.iter().map(|one| &*one.pod).collect();
    assert_eq!(
        (plan.action, evicted),
        (EvictionAction::Reclaim, vec!["default/h"])
    );
}
