//! Which GPU model a pod demands: the one that it can run on alone, whatever says so; and which
//! cards count.

use super::world::{PodSketch, START_MS, World, gang, node, pod, queue};
use crate::facts::{HAMI_REGISTER, MatchOperator, NodeFacts, Readiness, Taint, TaintEffect};
use crate::gpu::PRODUCT_LABEL;
use crate::reason::Reason;
use alloc::format;

const GPU: &str = "nvidia.com/gpu";
const H100: &str = "nvidia.com/gpu@H100";
const MINUTE_MS: u64 = 60_000;

fn of(name: &str, gpus: u64, model: &str) -> NodeFacts {
    node(name, gpus).label(PRODUCT_LABEL, model)
}

/// What a queue asks for and holds of a key, and what of it would be fair.
fn status(world: &mut World, queue: &str, key: &str) -> (u64, u64) {
    let reports = world.engine().queue_reports();
    let report = reports.iter().find(|report| &*report.name == queue);
    let status = &report.expect("the queue").status;
    let of = |amounts: &[(alloc::boxed::Box<str>, u64)]| {
        let amount = amounts.iter().find(|(known, _)| **known == *key);
        amount.map_or(0, |(_, amount)| *amount)
    };
    (of(&status.requested), of(&status.fair_share))
}

/// A node of 8 H100 and one of 8 A100, each with another label, and the queue `team` with an entry
/// for H100.
fn two_models() -> World {
    let mut world = World::new();
    world.apply(of("h0", 8, "H100").label("pool", "new"));
    world.apply(of("a0", 8, "A100").label("pool", "old"));
    world.apply(queue("team").entry(GPU, Some("H100"), (8, None), 1));
    world
}

/// Whether a pod demands the model H100 among two models.
fn demands_h100(pod: PodSketch) -> bool {
    let mut world = two_models();
    world.apply(pod.queue("team"));
    world.settle();
    let (requested, fair) = status(&mut world, "team", H100);
    assert!(requested == fair && (requested == 0 || requested == 4));
    requested == 4
}

#[test]
fn what_can_run_on_one_model_alone_demands_it_whatever_says_so() {
    assert!(demands_h100(pod("by-product", 4).model("H100")));
    let pool = |operator, value| pod("p", 4).needs("pool", operator, &[value]);
    assert!(demands_h100(pool(MatchOperator::In, "new")));
    assert!(demands_h100(pool(MatchOperator::NotIn, "old")));
    let product = |operator, values| pod("p", 4).needs(PRODUCT_LABEL, operator, values);
    assert!(demands_h100(product(MatchOperator::NotIn, &["A100"])));
    assert!(demands_h100(product(MatchOperator::In, &["H100", "B200"])));
    // Selectors that allow A100 leave the pod another model than H100.
    assert!(!demands_h100(product(MatchOperator::NotIn, &["H100"])));
    assert!(!demands_h100(product(MatchOperator::In, &["A100", "H100"])));
    assert!(!demands_h100(product(MatchOperator::Exists, &[])));
}

#[test]
fn what_can_run_anywhere_demands_the_only_model_while_there_is_no_other() {
    let mut world = World::new();
    world.apply(of("h0", 8, "H100"));
    world.apply(of("h1", 8, "H100"));
    world.apply(queue("team").entry(GPU, Some("H100"), (8, None), 1));
    world.apply(pod("runs", 8).queue("team"));
    world.apply(pod("foreign", 8).foreign().on("h1"));
    world.settle();
    world.apply(pod("waits", 4).queue("team"));
    world.settle();
    assert_eq!(status(&mut world, "team", H100), (12, 8));
    // Another model comes, but no node that is large enough for any of them.
    world.apply(of("a0", 2, "A100"));
    world.settle();
    assert_eq!(status(&mut world, "team", H100).0, 12);
    // The pod that waits may run on either model now; the one that runs holds H100.
    world.apply(of("a1", 8, "A100").label("pool", "old"));
    world.apply(pod("others", 8).foreign().on("a1"));
    world.settle();
    assert_eq!(world.node_of("waits"), None);
    assert_eq!(status(&mut world, "team", H100), (8, 0));
    world.lose_node("a1");
    world.settle();
    assert_eq!(status(&mut world, "team", H100), (12, 8));
}

#[test]
fn the_state_that_a_node_is_in_moves_no_demand() {
    let mut world = two_models();
    world.apply(pod("full", 8).foreign().on("h0"));
    world.apply(pod("busy", 8).foreign().on("a0"));
    world.apply(pod("p", 4).queue("team"));
    world.settle();
    assert_eq!(status(&mut world, "team", H100).0, 0);
    let a100 = || of("a0", 8, "A100").label("pool", "old");
    let taint = |key: &str| Taint {
        key: key.into(),
        value: "".into(),
        effect: TaintEffect::NoSchedule,
    };
    let tainted = |key| NodeFacts {
        taints: [taint(key)].into(),
        ..a100()
    };
    let lost = |since_ms| NodeFacts {
        readiness: Readiness::Lost { since_ms },
        ..tainted("node.kubernetes.io/unreachable")
    };
    let cordoned = NodeFacts {
        unschedulable: true,
        ..a100()
    };
    for node in [
        cordoned,
        tainted("node.kubernetes.io/not-ready"),
        lost(None),
    ] {
        world.apply(node);
        world.settle();
        assert_eq!(status(&mut world, "team", H100).0, 0);
    }
    // A node that is lost for long counts no more, and a taint for others keeps it out.
    world.pass(5 * MINUTE_MS);
    world.settle();
    assert_eq!(status(&mut world, "team", H100).0, 4);
    world.apply(a100());
    world.settle();
    assert_eq!(status(&mut world, "team", H100).0, 0);
    world.apply(tainted("example.com/dedicated"));
    world.settle();
    assert_eq!(status(&mut world, "team", H100).0, 4);
}

#[test]
fn a_promise_of_a_model_counts_for_all_that_can_run_on_it_alone() {
    let mut world = World::new();
    world.apply(of("h0", 8, "H100"));
    world.apply(queue("team").entry(GPU, Some("H100"), (8, None), 1));
    world.apply(queue("others"));
    // Served within its quota, although the others came first and hold nothing.
    world.apply(pod("other", 8).queue("others"));
    world.apply(pod("p", 8).queue("team").late());
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("h0"));
}

#[test]
fn a_limit_on_the_only_model_that_there_is_filters_its_nodes() {
    let mut world = World::new();
    world.apply(of("h0", 8, "H100"));
    world.apply(queue("team").entry(GPU, Some("H100"), (0, Some(4)), 1));
    world.apply(pod("p", 8).queue("team"));
    world.settle();
    assert_eq!(world.reason_of_pod("p"), Some(Reason::OverLimit));
    // The limit on H100 keeps no pod off nodes with A100.
    world.apply(of("a0", 8, "A100"));
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("a0"));
}

#[test]
fn a_share_is_worked_out_for_each_model_of_a_mixed_demand() {
    let mut world = World::new();
    world.apply(of("h0", 4, "H100"));
    world.apply(of("a0", 8, "A100"));
    let team = queue("team").entry(GPU, Some("H100"), (0, None), 1);
    world.apply(team.entry(GPU, Some("A100"), (0, None), 1));
    for number in 0..6 {
        world.apply(pod(&format!("h{number}"), 2).queue("team").model("H100"));
        world.apply(pod(&format!("a{number}"), 1).queue("team").model("A100"));
    }
    world.settle();
    // 12 H100 and 6 A100 are wanted; with 4 of 12 in proportion it would be 4 and 2.
    assert_eq!(status(&mut world, "team", H100).1, 4);
    assert_eq!(status(&mut world, "team", "nvidia.com/gpu@A100").1, 6);
    assert_eq!(status(&mut world, "team", GPU).1, 10);
}

#[test]
fn who_runs_on_a_model_by_chance_takes_no_share_of_it() {
    let mut world = World::new();
    world.apply(of("h0", 4, "H100"));
    world.apply(queue("team").entry(GPU, Some("H100"), (0, None), 1));
    world.apply(queue("others"));
    world.apply(pod("anywhere", 4).queue("others"));
    world.settle();
    assert_eq!(world.node_of("anywhere").as_deref(), Some("h0"));
    world.apply(of("a0", 8, "A100"));
    world.apply(pod("picky", 4).queue("team").model("H100"));
    world.settle();
    assert_eq!(status(&mut world, "team", H100).1, 4);
    assert_eq!(status(&mut world, "others", GPU).1, 4);
}

/// A node that has been lost for so long.
fn lost(name: &str, minutes: u64) -> NodeFacts {
    NodeFacts {
        readiness: Readiness::Lost {
            since_ms: Some(START_MS - minutes * MINUTE_MS),
        },
        ..node(name, 8)
    }
}

#[test]
fn a_node_that_was_lost_before_the_start_counts_for_the_rest_of_its_five_minutes() {
    let mut world = World::new();
    world.apply(node("n0", 8));
    world.apply(lost("short", 1));
    world.apply(lost("long", 5));
    world.apply(NodeFacts {
        readiness: Readiness::Unsaid,
        ..node("new", 8)
    });
    world.apply(queue("team"));
    world.apply(pod("p", 64).queue("team"));
    world.settle();
    assert_eq!(status(&mut world, "team", GPU).1, 16);
    world.pass(4 * MINUTE_MS - 1);
    world.settle();
    assert_eq!(status(&mut world, "team", GPU).1, 16);
    world.pass(1);
    world.settle();
    assert_eq!(status(&mut world, "team", GPU).1, 8);
    world.apply(node("long", 8));
    world.settle();
    assert_eq!(status(&mut world, "team", GPU).1, 16);
}

#[test]
fn a_node_that_is_not_ready_takes_no_pods_without_a_taint() {
    let mut world = World::new();
    world.apply(lost("n0", 1));
    world.apply(pod("p", 8));
    world.settle();
    assert_eq!(world.reason_of_pod("p"), Some(Reason::DoesNotFit));
    let message = world.pod("p").message;
    assert!(message.contains("1 was not ready"), "{message}");
    world.apply(node("n0", 8));
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("n0"));
}

/// A node on which HAMi offers ten slots on each of 8 cards.
fn hami(name: &str) -> NodeFacts {
    NodeFacts {
        annotations: [(HAMI_REGISTER.into(), "".into())].into(),
        ..node(name, 80)
    }
}

#[test]
fn slots_of_hami_are_no_cards() {
    let mut world = World::new();
    world.apply(hami("slots").label("gpu", "on"));
    world.apply(queue("team"));
    world.apply(gang("g", 1).queue("team"));
    world.apply(pod("p", 9).of("g"));
    world.apply(pod("one", 1).queue("team"));
    world.apply(pod("cpu", 0).queue("team"));
    world.settle();
    assert_eq!(world.reason("default/g"), Some(Reason::Unsupported));
    assert_eq!(world.reason_of_pod("one"), Some(Reason::Unsupported));
    assert_eq!(
        world.message("default/g"),
        "pod p: nvidia.com/gpu: only nodes with slots of HAMi would do, which are not supported yet"
    );
    assert_eq!(world.node_of("cpu").as_deref(), Some("slots"));
    // Pods that only nodes with slots would suit count as asking for no GPUs, and slots are no GPUs
    // to divide.
    assert_eq!(status(&mut world, "team", GPU), (0, 0));
    // A node with cards comes: pods that fit run there.
    world.apply(node("cards", 8));
    world.apply(pod("chooses", 1).needs("gpu", MatchOperator::In, &["on"]));
    world.settle();
    assert_eq!(world.node_of("one").as_deref(), Some("cards"));
    assert_eq!(world.reason("default/g"), Some(Reason::Unsupported));
    assert_eq!(world.reason_of_pod("chooses"), Some(Reason::Unsupported));
    assert_eq!(status(&mut world, "team", GPU), (1, 1));
    world.apply(pod("full", 8));
    world.settle();
    let message = world.pod("full").message;
    assert!(
        message.contains("1 offered slots of HAMi, which are not supported yet"),
        "{message}"
    );
    // Without HAMi the cards are cards.
    world.apply(node("slots", 32).label("gpu", "on"));
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("slots"));
}

/// The world looks after each step whether what classes know of the nodes is right.
#[test]
fn a_node_without_a_condition_of_readiness_counts_again_when_it_is_ready() {
    let mut world = two_models();
    world.apply(NodeFacts {
        readiness: Readiness::Unsaid,
        ..of("h1", 8, "H100")
    });
    world.apply(pod("a", 1).queue("team"));
    world.settle();
    world.pass(6 * MINUTE_MS);
    world.settle();
    world.apply(of("h1", 8, "H100"));
    world.settle();
    assert_eq!(world.binds, 1);
}
